"""`serve`, `dashboard` and `mcp`: the doors that people's browsers and agents' tools come in by."""

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
from holdfast.app import open_settings
from holdfast.cli import render
from holdfast.cli.options import Json
from holdfast.core.errors import CommandRefused

# `holdfast serve`: the web server in the foreground: the dashboard, the API and the earlier session API.


def register(app: typer.Typer) -> None:
    for verb in (serve, dashboard, mcp):
        app.command()(verb)


def needs_web() -> None:
    try:
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        missing = f"the web part is not installed ({error.name})"
        raise CommandRefused(missing, fix="Install Holdfast again: its web parts are missing.") from None


def port_or_default(port: int) -> int:
    return port or open_settings().for_project("")["dashboard"].port


def serve(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="On 127.0.0.1, never elsewhere.")] = 0,
) -> None:
    """Run the web server here: the dashboard, the API, and the session API under /api/oak/ci/."""
    needs_web()
    from holdfast.web import server

    client.start_daemon()

    def tell(web_context: server.WebContext) -> None:
        render.out.print(f"Listening on {web_context.address}/api/oak/ci/ (Ctrl-C ends it)")
        render.out.print(f"Dashboard: {web_context.new_link()}")

    server.serve_dashboard(client.state_paths(), port_or_default(port), tell=tell)


# `holdfast dashboard`: starts the web server when none runs, and opens it with a link that works once.

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
    if json:
        render.json_line(answer)
        return
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
    if json:
        render.json_line({"stopped": bool(running)})
    else:
        render.out.print("The dashboard has ended." if running else "No dashboard was running.")


def _running_server() -> dict[str, Any] | None:
    from holdfast.web.keys import running_server

    return running_server(client.state_paths())


def _start_server(port: int) -> dict[str, Any]:
    paths = client.state_paths()
    failed = paths.run / "web.failed"
    # An old failure must not be taken for one of this start.
    failed.unlink(missing_ok=True)
    subprocess.Popen(
        [sys.executable, "-P", "-m", "holdfast.web", "--state", str(paths.state), "--port", str(port)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
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


# macOS has a screen without a variable that says so.
def has_screen() -> bool:
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


# `holdfast mcp`: memory, gates, tasks, state, leases, UAT and code search as tools for agents.


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Over streamable HTTP on 127.0.0.1 instead of stdio.")] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="With --http; 0 = any free one.")] = 0,
) -> None:
    """Serve MCP on stdio; agents start it themselves (`holdfast install` tells them how)."""
    if not http:
        from holdfast.mcp.connection import serve_stdio

        serve_stdio()
        return
    from holdfast.mcp import http as http_server
    from holdfast.web import keys

    client.start_daemon()
    paths = client.state_paths()
    token, sock = keys.read_or_create_token(paths), http_server.listen_on_port(port)
    _show_mcp_address(
        f"http://{http_server.HOST}:{sock.getsockname()[1]}{http_server.PATH}", str(paths.run / "http.token")
    )
    http_server.serve_http(sock, token, client.current_project())


def _show_mcp_address(address: str, token_file: str) -> None:
    render.out.print(f"Listening on {address} for {client.current_project()} (Ctrl-C ends it)")
    render.out.print(f'Header: "Authorization: Bearer …" with what is in {token_file}')
