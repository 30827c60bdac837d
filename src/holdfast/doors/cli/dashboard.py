"""`holdfast dashboard`: starts the web server if needed and opens it."""

import http.client
import os
import subprocess
import sys
import time
import webbrowser
from typing import Annotated, Any

import msgspec
import typer

from holdfast import client
from holdfast.core.caller import OWN_CODE_ONLY, PRELOADS
from holdfast.core.errors import CommandRefused
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json
from holdfast.doors.cli.web_options import needs_web, port_or_default

START_S = 20.0


def dashboard(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Instead of the one in the settings.")] = 0,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open it in the browser.")] = True,
    stop: Annotated[bool, typer.Option("--stop", help="End the web server.")] = False,
    json: Json = False,
) -> None:
    """Open the dashboard: every session, live."""
    needs_web()
    if stop:
        _stop_dashboard(json)
        return
    client.start_daemon()
    answer = _post_request(_running_server() or _start_server(port_or_default(port)), "link")
    render.finish_as_json(json, answer)
    print(answer["link"])
    if open_ and has_screen():
        webbrowser.open(answer["link"])
    else:
        render.err.print(
            "Open that in a browser on this machine; it works once. End it with: holdfast dashboard --stop"
        )


def _stop_dashboard(json: bool) -> None:
    running = _running_server()
    if running:
        _post_request(running, "stop")
        _wait_until(lambda: not _running_server())
        if _running_server():
            raise CommandRefused(
                f"it was asked to end, and still runs (pid {running['pid']})", fix="Try again, or kill it."
            )
    render.finish_as_json(json, {"stopped": bool(running)})
    render.out.print("The dashboard has ended." if running else "No dashboard was running.")


def _running_server() -> dict[str, Any] | None:
    from holdfast.doors.web.running import running_server

    return running_server(client.state_paths())


def _start_server(port: int) -> dict[str, Any]:
    paths = client.state_paths()
    failed = paths.run / "web.failed"
    # An old failure must not be taken for one of this start.
    failed.unlink(missing_ok=True)
    subprocess.Popen(
        [sys.executable, OWN_CODE_ONLY, "-m", "holdfast.doors.web", "--state", str(paths.state), "--port", str(port)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        # With foreign code before ours it would not be believed to act for a person.
        env={name: value for name, value in os.environ.items() if name not in PRELOADS},
    )  # fmt: skip
    _wait_until(lambda: _running_server() or failed.exists())
    running = _running_server()
    if not running:
        why = failed.read_text(errors="replace") if failed.exists() else "it did not begin to listen"
        raise CommandRefused(f"the dashboard could not start: {why}", fix="See it fail with: holdfast serve")
    return running


def _post_request(running: dict[str, Any], what: str) -> dict[str, Any]:
    """With the token that only the owner can read."""
    token = (client.state_paths().run / "http.token").read_text().strip()
    connection = http.client.HTTPConnection("127.0.0.1", running["port"], timeout=10)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection.request("POST", f"/api/v1/{what}", b"{}", headers)
        answer = connection.getresponse()
        body = answer.read()
    except OSError as error:
        raise CommandRefused(f"the dashboard does not answer: {error}", fix="Try again in a moment.") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise CommandRefused(f"the dashboard answered {answer.status}: {body[:200].decode(errors='replace')}")
    value: dict[str, Any] = msgspec.json.decode(body)
    return value


def _wait_until(true: Any) -> None:
    deadline = time.monotonic() + START_S
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)


# macOS has a screen without such a variable.
def has_screen() -> bool:
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
