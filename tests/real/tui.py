"""A terminal for a program, driven through a tmux server of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

COLUMNS, ROWS = 160, 50
ECHOED, ECHO_PATIENCE_S, AFTER_ECHO_S = 12, 10.0, 0.2


class TmuxMissing(Exception):
    """There is no tmux on this machine; tests skip."""


class TmuxGone(RuntimeError):
    """The terminal does not exist any more."""


class Tui:
    """Type, look at the screen, wait for text, kill; use it as a context manager."""

    def __init__(self, command: list[str], *, cwd: Path, env: dict[str, str]) -> None:
        tmux = shutil.which("tmux")
        if tmux is None:
            raise TmuxMissing("interactive tests need tmux, which is not on PATH (apt-get install tmux)")
        self._tmux, self._command, self._cwd, self._env = tmux, command, cwd, env
        # Socket addresses are limited to about 100 characters, pytest's folders are not.
        self._folder = Path(tempfile.mkdtemp(prefix="hf-tui-"))

    def __enter__(self) -> Self:
        settings = self._folder / "tmux.conf"
        # The pane stays after the program's end so that the last screen and the exit status can be read.
        settings.write_text("set -g remain-on-exit on\nset -g escape-time 0\nset -g history-limit 20000\n")
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        self._call("-f", str(settings), "new-session", "-d", *size, "-c", str(self._cwd), "--", *self._command)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        server = int(self._call("display-message", "-p", "#{pid}", check=False) or 0)
        self._call("kill-server", check=False)
        _await_end(server)
        shutil.rmtree(self._folder, ignore_errors=True)

    def type(self, words: str, *, enter: bool = True) -> None:
        """Type a line. Enter comes once the words are on the screen and a moment has passed: what a program reads in one
        piece with it, on a busy machine, it takes for a paste with a line break in it."""
        self._call("send-keys", "-l", "--", words)
        if enter:
            self._await_echo(words)
            time.sleep(AFTER_ECHO_S)
            self.keys("Enter")

    def _await_echo(self, words: str) -> None:
        """Until the end of the words is shown; not every program shows what is typed."""
        end, limit = words[-ECHOED:].strip(), time.monotonic() + ECHO_PATIENCE_S
        while end not in self.screen() and time.monotonic() < limit:
            time.sleep(0.05)

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names: Enter, Escape, C-c, C-d, Up, BTab ..."""
        self._call("send-keys", "--", *names)

    def screen(self) -> str:
        """What the terminal shows now."""
        return self._call("capture-pane", "-p")

    def history(self) -> str:
        """What it shows, and what has scrolled away."""
        return self._call("capture-pane", "-p", "-S", "-")

    def wait_for(self, pattern: str, timeout: float = 60.0) -> str:
        """Wait until the screen matches a regular expression; returns the screen."""
        return self._wait(lambda screen: re.search(pattern, screen) is not None, f"for {pattern!r}", timeout)

    def wait_gone(self, pattern: str, timeout: float = 30.0) -> str:
        """Wait until the screen no longer matches."""
        return self._wait(lambda screen: re.search(pattern, screen) is None, f"for {pattern!r} to go", timeout)

    def answer(self, question: str, *keys: str, timeout: float = 10.0) -> None:
        """Press keys at a dialog until it is gone: dialogs ignore keys for a moment, lest one be hit by accident."""
        self.wait_for(question)
        limit = time.monotonic() + timeout
        while re.search(question, self.screen()) and time.monotonic() < limit:
            self.keys(*keys)
            time.sleep(0.3)
        self.wait_gone(question, timeout=1)

    def leave(self, words: str = "/exit", timeout: float = 20.0) -> int:
        """Type a command that ends the program; Enter is repeated, since a list of completions may take the first."""
        self.type(words)
        limit = time.monotonic() + timeout
        while self._status() is None and time.monotonic() < limit:
            time.sleep(0.5)
            if self.alive:
                self.keys("Enter")
        return self.wait_exit(timeout=1)

    def wait_exit(self, timeout: float = 20.0) -> int:
        """Wait for the program to end by itself; its exit status (128 + n when signal n ended it)."""
        self._wait(lambda _: self._status() is not None, "for the program to end", timeout)
        return self._status() or 0

    def _status(self) -> int | None:
        dead, code, number = (self._pane("#{pane_dead}|#{pane_dead_status}|#{pane_dead_signal}") + "||").split("|")[:3]
        if dead == "1" and not code and not number:
            # tmux 3.3a often misses the death of its child and leaves a zombie, which to a pid check is alive.
            os.kill(int(self._pane("#{pid}")), signal.SIGCHLD)
        return int(code) if code else 128 + int(number) if number else None

    @property
    def pid(self) -> int:
        """The process in the terminal (for programs behind an npm wrapper: the wrapper)."""
        return int(self._pane("#{pane_pid}"))

    @property
    def alive(self) -> bool:
        """Whether the program still runs."""
        return self._pane("#{pane_dead}") == "0"

    def signal(self, number: int) -> None:
        """Signal the program's process group."""
        if self.alive:
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """kill -9: no farewell, no SessionEnd; on return the process is gone from the process table."""
        try:
            self.signal(signal.SIGKILL)
            self.wait_exit()
        except (ProcessLookupError, TmuxGone):
            pass

    def hang_up(self) -> None:
        """Close the terminal under the program, which gets SIGHUP."""
        self._call("kill-server", check=False)

    def _wait(self, test: Callable[[str], bool], what: str, timeout: float) -> str:
        limit = time.monotonic() + timeout
        while not test(screen := self.screen()):
            if time.monotonic() > limit:
                raise TimeoutError(f"waited {timeout:.0f} s {what}; the screen shows:\n{screen}")
            time.sleep(0.05)
        return screen

    def _pane(self, format: str) -> str:
        return self._call("display-message", "-p", format, check=False).strip()

    def _call(self, *words: str, check: bool = True) -> str:
        command = [self._tmux, "-S", str(self._folder / "s"), *words]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, timeout=20, check=False)
        if check and done.returncode != 0:
            raise TmuxGone(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout


def _await_end(pid: int, timeout: float = 5.0) -> None:
    """Return when a process is gone, so that nothing outlives the test."""
    limit = time.monotonic() + timeout
    while pid and Path(f"/proc/{pid}").exists() and time.monotonic() < limit:
        time.sleep(0.02)
