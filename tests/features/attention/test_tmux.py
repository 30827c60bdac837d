"""What a terminal gets whose tmux shows the session: a notification outside, a bell in the session's pane."""

import os
import pty
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.core.job import run_briefly
from holdfast.core.machine import environment_of
from holdfast.features.attention.channels import NotSent, notice_codes, send
from holdfast.features.attention.looking import terminal_of, tmux
from holdfast.features.attention.settings import AttentionSettings
from tests.features.attention.test_channels import MESSAGE
from tests.kit import alive, needs, wait_until

pytestmark = [pytest.mark.full, pytest.mark.skipif(bool(needs("tmux")), reason=needs("tmux"))]


class Terminal:
    """A real terminal: what programs write to it is in `seen`."""

    def __init__(self, *command: str, cwd: Path) -> None:
        main, other = pty.openpty()
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "HOME": str(cwd), "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *command], stdin=other, stdout=other, stderr=other, cwd=cwd, env=environment
        )
        os.close(other)
        self.seen = b""
        self._reader = threading.Thread(target=self._read, args=[main])
        self._reader.start()

    def _read(self, main: int) -> None:
        try:
            while piece := os.read(main, 65536):
                self.seen += piece
        except OSError:
            pass
        os.close(main)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self._reader.join()


@contextmanager
def terminal_with(*command: str, cwd: Path, servers: list[str]) -> Iterator[Terminal]:
    terminal = Terminal(*command, cwd=cwd)
    try:
        yield terminal
    finally:
        for server in servers:
            tmux(server, "kill-server")
        terminal.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Its name is short: so must be the address of a socket."""
    place = Path(tempfile.mkdtemp(prefix="hf-t-"))
    yield place
    shutil.rmtree(place)


def pane_process(server: str) -> int:
    """Of the first pane, once its program runs: tmux names it a moment before."""

    def found() -> int:
        pid = int((tmux(server, "list-panes", "-a", "-F", "#{pane_pid}").split() or ["0"])[0])
        return pid if "TMUX_PANE" in environment_of(pid) and terminal_of(pid) else 0

    wait_until(lambda: found() > 0, "a program runs in tmux")
    return found()


def notify(pid: int) -> None:
    send("terminal", MESSAGE, AttentionSettings(), [pid], run_briefly)


def test_the_terminal_outside_of_tmux_is_told_and_the_pane_rings(folder: Path) -> None:
    server = f"{folder}/s"
    start = ["tmux", "-f", "/dev/null", "-S", server, "new-session", "cat"]
    with terminal_with(*start, cwd=folder, servers=[server]) as outside:
        pid = pane_process(server)
        tmux(server, "new-window", "cat")  # the bell of a window that is not shown is kept
        notify(pid)
        wait_until(
            lambda: notice_codes(MESSAGE) in outside.seen, "the notification is outside", says=lambda: str(outside.seen)
        )
        wait_until(lambda: "1" in tmux(server, "list-windows", "-F", "#{window_bell_flag}").split(), "its window rings")


def test_tmux_within_tmux_leads_to_the_terminal_outside_of_both(folder: Path) -> None:
    inner, outer = f"{folder}/i", f"{folder}/o"
    # tmux refuses to be started within tmux unless TMUX is unset.
    nested = f"sh -c 'unset TMUX; tmux -f /dev/null -S {inner} new-session cat; true'"
    start = ["tmux", "-f", "/dev/null", "-S", outer, "new-session", nested]
    with terminal_with(*start, cwd=folder, servers=[inner, outer]) as outside:
        notify(pane_process(inner))
        wait_until(
            lambda: notice_codes(MESSAGE) in outside.seen, "the notification is outside", says=lambda: str(outside.seen)
        )


def test_with_nobody_attached_nothing_is_sent_but_the_bell(folder: Path) -> None:
    server = f"{folder}/s"
    tmux(server, "-f", "/dev/null", "new-session", "-d", "cat")
    try:
        pid = pane_process(server)
        notify(pid)
        tmux(server, "kill-server")
        wait_until(lambda: not alive(pid), "it ends with its tmux")
        with pytest.raises(NotSent):
            notify(pid)
    finally:
        tmux(server, "kill-server")
