"""`holdfast` alone: in a terminal a small live board of the sessions, elsewhere the same once, as plain lines."""

import sys
import time

from holdfast import client
from holdfast.cli import installing, render, sessions, status

EVERY_S = 1.0
CLEAR, HIDE, SHOW = "\x1b[H\x1b[J", "\x1b[?25l", "\x1b[?25h"


def show_board() -> None:
    if not client.running():
        status.overview()
    elif sys.stdout.isatty() and sys.stdin.isatty() and render.out.color_system:
        _redraw_until_interrupted()
    else:
        status.overview()


def _redraw_until_interrupted() -> None:
    sys.stdout.write(HIDE)
    try:
        while True:
            with render.out.capture() as drawn:
                _draw()
            sys.stdout.write(CLEAR + drawn.get())
            sys.stdout.flush()
            time.sleep(EVERY_S)
    except KeyboardInterrupt:
        pass  # Ctrl-C is how one leaves a board: nothing went wrong.
    finally:
        sys.stdout.write(SHOW)
        sys.stdout.flush()


def _draw() -> None:
    told = client.ask("status")
    sessions.who()
    render.out.print()
    for warning in status.warnings(told):
        render.out.print(f"! {warning}", style="yellow")
    counts = told["counts"]
    render.out.print(f"{counts['events']} events. Dashboard: holdfast dashboard. Leave with Ctrl-C.", style="dim")
    if not installing.where_installed():
        render.out.print(status.next_step({}, False), style="dim")
