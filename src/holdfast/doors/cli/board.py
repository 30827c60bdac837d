"""`holdfast` without a command: a live board of the sessions."""

import shutil
import sys
import time

from holdfast import client
from holdfast.doors.cli import installing, render, sessions
from holdfast.doors.cli.status import next_step, show_overview, status_warnings

EVERY_S = 1.0
HOME, HIDE, SHOW = "\x1b[H", "\x1b[?25l", "\x1b[?25h"
CLEAR_LINE, CLEAR_BELOW = "\x1b[K", "\x1b[J"


def show_board() -> None:
    if not client.running_pid():
        show_overview()
    elif sys.stdout.isatty() and sys.stdin.isatty() and render.out.color_system:
        _redraw_until_interrupted()
    else:
        show_overview()


def _redraw_until_interrupted() -> None:
    sys.stdout.write(HIDE)
    try:
        while True:
            with render.out.capture() as drawn:
                _draw_board()
            sys.stdout.write(fit_screen(drawn.get(), shutil.get_terminal_size().lines))
            sys.stdout.flush()
            time.sleep(EVERY_S)
    except KeyboardInterrupt:
        pass  # Ctrl-C is how one leaves a board: nothing went wrong.
    finally:
        sys.stdout.write(SHOW)
        sys.stdout.flush()


def fit_screen(drawn: str, height: int) -> str:
    """Redraw in place, line by line, without flicker; what does not fit is omitted."""
    lines = drawn.rstrip("\n").split("\n")
    # One line for what is omitted, and the last line, which says how to leave.
    if len(lines) >= height > 3:
        left_out = len(lines) - height + 3
        lines = [*lines[: height - 3], f"… {left_out} more lines", lines[-1]]
    return HOME + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_BELOW


def _draw_board() -> None:
    answer = client.ask_daemon("status")
    sessions.show_live_sessions(sessions.ask_who())
    render.out.print()
    for warning in status_warnings(answer):
        render.out.print(f"! {warning}", style="yellow")
    counts = answer["counts"]
    render.out.print(
        f"{render.counted(counts['events'], 'event')}. Dashboard: holdfast dashboard. Leave with Ctrl-C.", style="dim"
    )
    if not installing.where_installed():
        render.out.print(next_step({}, False), style="dim")
