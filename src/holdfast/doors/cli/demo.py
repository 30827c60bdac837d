"""`holdfast demo`: a recorded day in a throw-away folder, with the dashboard."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.core.errors import CommandRefused
from holdfast.doors.cli import render
from holdfast.doors.cli.dashboard import has_screen
from holdfast.doors.cli.options import Json
from holdfast.doors.cli.web_options import needs_web

if TYPE_CHECKING:
    from holdfast.setup.demo.player import Player

PLACES = {"HOME": "home", "HOLDFAST_STATE": "state", "HOLDFAST_CONFIG": "config"}
LOOK_AT = "Who waits for you: g n · what was refused and why: g g · what needs doing: g t · all keys: ?"


def demo(
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the dashboard in the browser.")] = True,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the folder there afterwards.")] = False,
    still: Annotated[bool, typer.Option("--still", help="Stop after the day has been played.")] = False,
    json: Json = False,
) -> None:
    """Play a recorded day of agents in a temporary folder and open the dashboard on it, until Ctrl-C."""
    needs_web()
    if not shutil.which("git"):
        raise CommandRefused("the demo makes git repositories, and there is no git", fix="Install git.")
    from holdfast.setup.demo.player import Player

    # Ended by a signal, the demo still removes its folder.
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _as_interrupt)
    # The player changes this process's environment; the browser needs the original.
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
    """A second Ctrl-C must leave nothing behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _run_holdfast(player, "dashboard", "--stop")
    finally:
        player.close()
