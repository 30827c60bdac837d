"""`holdfast demo`: a recorded day in a throw-away folder, and the dashboard on it."""

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

from holdfast.cli import render
from holdfast.cli.dashboard import _has_screen as has_screen
from holdfast.cli.options import Json
from holdfast.cli.serve import needs_web

if TYPE_CHECKING:
    from holdfast.demo.player import Player

LOOK_AT = "Who waits for you: g n · what was refused and why: g g · what needs doing: g t · all keys: ?"


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the dashboard in the browser.")] = True,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the folder there afterwards.")] = False,
    still: Annotated[bool, typer.Option("--still", help="Nothing goes on after the day has been played.")] = False,
    json: Json = False,
) -> None:
    """Play a recorded day of agents into a throw-away folder, and open the dashboard on it, until Ctrl-C."""
    needs_web()
    from holdfast.demo.player import Player

    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _as_interrupt)
    mine = dict(os.environ)
    root = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        with render.err.status("A day begins …") as line:
            player = Player(root, lambda text: line.update(f"The day goes by … {text}"))
            try:
                played = player.play()
                line.update("The dashboard opens …")
                link = _dashboard(player)
                line.stop()
                _tell(player, played, link, json)
                if open_ and has_screen():
                    subprocess.Popen([sys.executable, "-m", "webbrowser", link], env=mine, stdout=subprocess.DEVNULL)
                _stay(player, still)
            except KeyboardInterrupt:
                pass
            finally:
                _leave(player)
    finally:
        if keep:
            render.err.print(f"It is still there. Look at it again: HOLDFAST_STATE={root}/state holdfast dashboard")
        else:
            shutil.rmtree(root, ignore_errors=True)


def _as_interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def _dashboard(player: "Player") -> str:
    done = _holdfast(player, "dashboard", "--no-open", "--json")
    return msgspec.json.decode(done.splitlines()[-1])["data"]["link"]


def _holdfast(player: "Player", *words: str) -> bytes:
    command = [sys.executable, "-P", "-c", "from holdfast.cli import main; main()", *words]
    return subprocess.run(command, env=player.env, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout


def _tell(player: "Player", played: Any, link: str, json: bool) -> None:
    if json:
        told = {"link": link, "root": str(player.root), "env": player.env, "seconds": round(played.seconds, 2),
                "hooks": played.hooks, "refused": played.refused, "surprises": played.surprises}  # fmt: skip
        render.json_line(told)
        sys.stdout.flush()
        return
    render.out.print(
        f"A day of {len(player.day.casts)} sessions in {len(player.repos)} projects: {played.hooks} hooks, "
        f"{played.refused} refusals, played in {played.seconds:.0f} s into {player.root}"
    )
    print(link)
    render.out.print(LOOK_AT)
    render.out.print("Ctrl-C ends it and removes the folder.")


def _stay(player: "Player", still: bool) -> None:
    for _ in () if still else player.go_on(time.sleep):
        pass
    while True:
        time.sleep(3600)


def _leave(player: "Player") -> None:
    """A second Ctrl-C must not leave anything behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _holdfast(player, "dashboard", "--stop")
    finally:
        player.close()
