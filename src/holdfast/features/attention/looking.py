"""Looks whether the person is there: at the dashboard, at a session's terminal, or typing."""

import os
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core import machine
from holdfast.core.attention import VIEWING
from holdfast.core.ports import Reader, Ref

VIEWING_S = 4.0
TMUX_S = 1.0
ANCESTORS = 4
_PANE = "#{pane_id} #{window_active} #{pane_active} #{session_attached}"


class Seat(msgspec.Struct, frozen=True):
    """What was seen of one session's terminal."""

    focused: bool | None = None
    """None where nothing tells."""
    idle_s: float | None = None
    """Seconds since a key was pressed in it."""


class Presence(msgspec.Struct, frozen=True):
    page_visible: bool = False
    seats: dict[str, Seat] = {}


def observe(state_dir: Path, reader: Reader, sessions: set[str]) -> Presence:
    """Not pure: looks at files, processes and terminals. What cannot be seen is unknown, never an error."""
    seats = {session: _seat_of(reader, session) for session in sessions if session}
    return Presence(_is_fresh(state_dir / "run" / VIEWING), seats)


def _is_fresh(mark: Path) -> bool:
    try:
        return -1 < time.time() - mark.stat().st_mtime < VIEWING_S
    except OSError:
        return False


def agent_process(reader: Reader, session: str) -> dict[str, Any]:
    doc = reader.state(Ref("session", session)) or {}
    process: dict[str, Any] = doc.get("process") or {}
    return process


def is_alive(known: Mapping[str, Any]) -> bool:
    process = machine.look_up_process(int(known.get("pid") or 0))
    return process is not None and process.start == known.get("start")


def _seat_of(reader: Reader, session: str) -> Seat:
    pid = int(agent_process(reader, session).get("pid") or 0)
    terminal = terminal_of(pid)
    if not terminal:
        return Seat()
    return Seat(_tmux_focus(pid), _idle_s(terminal))


def terminal_of(pid: int) -> str:
    """The path of a process's terminal, if it is ours and still is one."""
    process = machine.look_up_process(pid)
    if process is None or not process.terminal:
        return ""
    number = process.terminal
    path = f"/dev/pts/{(number & 0xFF) | ((number >> 12) & 0xFFF00)}"
    try:
        found = os.stat(path)  # noqa: PTH116 - a device, compared by number
    except OSError:
        return ""
    ours = stat.S_ISCHR(found.st_mode) and found.st_uid == os.geteuid() and _same_device(found.st_rdev, number)
    return path if ours else ""


def _same_device(device: int, number: int) -> bool:
    minor = (number & 0xFF) | ((number >> 12) & 0xFFF00)
    return os.minor(device) == minor and os.major(device) == (number >> 8) & 0xFFF


def _idle_s(terminal: str) -> float | None:
    """The kernel notes when a program read from it, to a few seconds."""
    try:
        return max(0.0, time.time() - os.stat(terminal).st_atime)  # noqa: PTH116
    except OSError:
        return None


def _tmux_focus(pid: int) -> bool | None:
    """Whether the pane is on the screen of an attached client, and that terminal has the focus, where tmux knows."""
    environment = machine.environment_of(pid)
    server, pane = environment.get("TMUX", "").partition(",")[0], environment.get("TMUX_PANE", "")
    if not server or not pane:
        return None
    shown = tmux(server, "display-message", "-p", "-t", pane, _PANE).split()
    if len(shown) != 4:
        return None
    if shown[1:3] != ["1", "1"] or shown[3] == "0":
        return False
    # Without focus events tmux does not know which terminal has the focus.
    if tmux(server, "show-options", "-gv", "focus-events").strip() != "on":
        return None
    clients = tmux(server, "list-clients", "-t", pane, "-F", "#{client_flags}").split()
    return any("focused" in flags.split(",") for flags in clients)


def tmux_around(pid: int) -> str:
    """The server in one of whose panes it runs. Who starts tmux within tmux has to unset TMUX, so its parents are asked, too."""
    for _ in range(ANCESTORS):
        environment, terminal = machine.environment_of(pid), terminal_of(pid)
        server, pane = environment.get("TMUX", "").partition(",")[0], environment.get("TMUX_PANE", "")
        shown = tmux(server, "display-message", "-p", "-t", pane, "#{pane_tty}").strip() if server and terminal else ""
        if shown and shown == terminal:
            return server
        process = machine.look_up_process(pid)
        pid = process.parent if process else 0
    return ""


def tmux(server: str, *words: str) -> str:
    try:
        done = subprocess.run(
            ["tmux", "-S", server, *words], capture_output=True, text=True, timeout=TMUX_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
