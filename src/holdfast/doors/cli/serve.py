"""`serve`, `dashboard`, `mcp` and `demo`: the doors that people's browsers and agents' tools come in by."""

import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast import client
from holdfast.app import open_settings
from holdfast.core.errors import CommandRefused
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json

if TYPE_CHECKING:
    from holdfast.setup.demo.player import Player


# `holdfast serve`: the web server in the foreground: the dashboard, the API and the earlier session API.


def register(app: typer.Typer) -> None:
    for verb in (serve, dashboard, mcp, demo):
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
    from holdfast.doors.web import server

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
    from holdfast.doors.web.keys import running_server

    return running_server(client.state_paths())


def _start_server(port: int) -> dict[str, Any]:
    paths = client.state_paths()
    failed = paths.run / "web.failed"
    # An old failure must not be taken for one of this start.
    failed.unlink(missing_ok=True)
    subprocess.Popen(
        [sys.executable, "-P", "-m", "holdfast.doors.web", "--state", str(paths.state), "--port", str(port)],
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
        from holdfast.doors.mcp.connection import serve_stdio

        serve_stdio()
        return
    from holdfast.doors.mcp import http as http_server
    from holdfast.doors.web import keys

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


# `holdfast demo`: a recorded day in a throw-away folder, and the dashboard on it.

PLACES = {"HOME": "home", "HOLDFAST_STATE": "state", "HOLDFAST_CONFIG": "config"}
LOOK_AT = "Who waits for you: g n · what was refused and why: g g · what needs doing: g t · all keys: ?"


def demo(
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the dashboard in the browser.")] = True,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the folder there afterwards.")] = False,
    still: Annotated[bool, typer.Option("--still", help="Nothing goes on after the day has been played.")] = False,
    json: Json = False,
) -> None:
    """Play a recorded day of agents into a throw-away folder, and open the dashboard on it, until Ctrl-C."""
    needs_web()
    if not shutil.which("git"):
        raise CommandRefused("the demo makes git repositories, and there is no git", fix="Install git.")
    from holdfast.setup.demo.player import Player

    # Ended by a signal, the demo still removes its folder.
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _as_interrupt)
    # The player changes this process's environment; the browser needs the person's own.
    mine = dict(os.environ)
    root = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        with render.err.status("A day begins …") as line:
            player = Player(root, lambda text: line.update(f"The day goes by … {text}"))
            try:
                played = player.play()
                line.update("The dashboard opens …")
                link = _open_dashboard(player)
                line.stop()
                _show_demo(player, played, link, keep=keep, json=json)
                if open_ and has_screen():
                    subprocess.Popen([sys.executable, "-m", "webbrowser", link], env=mine, stdout=subprocess.DEVNULL)
                _keep_running(player, still)
            except KeyboardInterrupt:
                pass
            finally:
                _close_demo(player)
    finally:
        if keep:
            there = " ".join(f"{name}={root}/{folder}" for name, folder in PLACES.items())
            render.err.print(f"It is still there. Look at it again: {there} holdfast dashboard", soft_wrap=True)
        else:
            shutil.rmtree(root, ignore_errors=True)


def _as_interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def _open_dashboard(player: "Player") -> str:
    done = _run_holdfast(player, "dashboard", "--no-open", "--json")
    if done.returncode:
        raise CommandRefused(f"the dashboard did not open: {done.stderr.strip()}", fix="See: holdfast doctor")
    value: str = msgspec.json.decode(done.stdout.splitlines()[-1])["data"]["link"]
    return value


def _run_holdfast(player: "Player", *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-c", "from holdfast.doors.cli import main; main()", *words]
    return subprocess.run(
        command, env=player.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def _show_demo(player: "Player", played: Any, link: str, *, keep: bool, json: bool) -> None:
    if json:
        payload = {"link": link, "root": str(player.root), "env": player.env, "seconds": round(played.seconds, 2),
                "hooks": played.hooks, "refused": played.refused, "surprises": played.surprises}  # fmt: skip
        render.json_line(payload)
        sys.stdout.flush()
        return
    render.out.print(
        f"A day of {len(player.day.casts)} sessions in {len(player.repos)} projects: {played.hooks} hooks, "
        f"{played.refused} refusals, played in {played.seconds:.0f} s into {player.root}"
    )
    print(link)
    render.out.print(LOOK_AT)
    render.out.print("Ctrl-C ends it." if keep else "Ctrl-C ends it and removes the folder.")


def _keep_running(player: "Player", still: bool) -> None:
    for _ in () if still else player.go_on(time.sleep):
        pass
    while True:
        time.sleep(3600)


def _close_demo(player: "Player") -> None:
    """A second Ctrl-C must not leave anything behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _run_holdfast(player, "dashboard", "--stop")
    finally:
        player.close()
