"""What running any agent program has in common: a clean environment, a home of its own, and no process left over."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from .model_server import ModelServer
from .tui import Tui


@dataclass(frozen=True)
class Result:
    """How a headless run ended."""

    returncode: int
    stdout: str
    stderr: str
    seconds: float


class Agent:
    """One agent program with its project and home; subclasses say how it is configured and called."""

    # What the screen shows once the interactive interface takes input.
    ready = ""

    def __init__(self, executable: Path, project: Path, home: Path, model: ModelServer) -> None:
        self.executable = executable
        self.project = project
        self.home = home
        self.model = model
        home.mkdir(parents=True, exist_ok=True)
        self.env = self._base_env() | self.agent_env()
        self.prepare()

    def agent_env(self) -> dict[str, str]:
        """The variables this agent needs to talk to our model."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Write the user-level settings that keep dialogs away."""
        raise NotImplementedError

    def headless(self, prompt: str, args: tuple[str, ...]) -> list[str]:
        """The command line of a run without a terminal."""
        raise NotImplementedError

    def interactive(self, args: tuple[str, ...]) -> list[str]:
        """The command line of a run in a terminal."""
        return [str(self.executable), *args]

    def run(self, prompt: str, *args: str, timeout: float = 90.0, env: dict[str, str] | None = None) -> Result:
        """Run one prompt to its end without a terminal."""
        began = time.monotonic()
        process = self.start(prompt, *args, env=env)
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            _end_group(process)
        return Result(process.returncode, out, err, time.monotonic() - began)

    def start(self, prompt: str, *args: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """The same without waiting, for tests that signal it; its process group is its own."""
        return subprocess.Popen(
            self.headless(prompt, args),
            cwd=self.project,
            env=self.env | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @contextmanager
    def tui(self, *args: str, wait: bool = True, env: dict[str, str] | None = None) -> Iterator[Tui]:
        """An interactive session in a terminal of its own, gone when the block ends."""
        with Tui(self.interactive(args), cwd=self.project, env=self.env | (env or {})) as tui:
            if wait and self.ready:
                tui.wait_for(self.ready, timeout=60)
            yield tui

    def processes(self) -> list[psutil.Process]:
        """Everything alive that was started from here, however deep, recognised by its HOME."""
        return [one for one in psutil.process_iter() if _home_of(one) == str(self.home)]

    def close(self) -> None:
        """End what is left: agents start shells and helpers in sessions of their own, which no group signal reaches."""
        left = self.processes()
        for one in left:
            try:
                one.kill()
            except psutil.NoSuchProcess:
                pass
        psutil.wait_procs(left, timeout=5)

    def _base_env(self) -> dict[str, str]:
        """Nothing of the tester's own environment but PATH; the way out of the machine ends at our server."""
        temp = self.home / "tmp"
        temp.mkdir(exist_ok=True)
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.home),
            "TMPDIR": str(temp),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "HTTP_PROXY": self.model.url,
            "HTTPS_PROXY": self.model.url,
            "NO_PROXY": "127.0.0.1,localhost",
        }


def _home_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("HOME")
    except (psutil.Error, OSError):
        return None


def _end_group(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()
