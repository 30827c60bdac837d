"""Talking to the daemon: one JSON request, JSON lines back. Starts the daemon when there is none."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.errors import DaemonUnreachable, HoldfastError
from holdfast.daemon.lease import holder
from holdfast.paths import Paths, default_state_dir

START_S = 15.0
SESSION_VARIABLES = ("HOLDFAST_SESSION", "CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID", "CODEX_SESSION_ID")


class Refused(HoldfastError):
    """The daemon refused"""

    @property
    def message(self) -> str:
        return self.detail


def paths() -> Paths:
    return Paths(default_state_dir().absolute())


def session() -> str:
    """The agent tells its shell which session it is (H4); nothing is guessed."""
    return next((os.environ[name] for name in SESSION_VARIABLES if os.environ.get(name)), "")


def project() -> str:
    from holdfast.git_context import look

    cwd = str(Path.cwd())
    return os.environ.get("HOLDFAST_PROJECT") or look(cwd).get("root", cwd)


def view(name: str, **args: Any) -> Any:
    return ask("view", name=name, args=args)


def command(name: str, **args: Any) -> Any:
    return ask("command", name=name, args=args)


def ask(op: str, **request: Any) -> Any:
    for line in stream(op, **request):
        if "done" in line:
            return line["done"]
    raise DaemonUnreachable("it closed the connection", fix="See: holdfast daemon logs")


def stream(op: str, *, start: bool = True, **request: Any) -> Iterator[dict[str, Any]]:
    message = {"op": op, "session": session(), "project": project()} | request
    with contextlib.closing(_connected(start)) as sock:
        sock.sendall(msgspec.json.encode(message) + b"\n")
        for text in sock.makefile("rb"):
            line = msgspec.json.decode(text)
            if "error" in line:
                raise Refused(line["error"])
            yield line


def running() -> int:
    """The daemon's pid, or 0."""
    return holder(paths().lease)


def _connected(start: bool) -> socket.socket:
    sock = _try()
    if sock is None and start:
        start_daemon()
        sock = _try()
    if sock is None:
        raise DaemonUnreachable(_why(), fix="Try: holdfast doctor")
    return sock


def start_daemon() -> int:
    """Starts one if none serves and waits until it does. Its pid."""
    place = paths().prepare()
    if not holder(place.lease):
        place.failed.unlink(missing_ok=True)
        subprocess.Popen(
            # -P: a `holdfast` folder in the repository where somebody types this must not be imported (P9).
            [sys.executable, "-P", "-m", "holdfast.daemon", "--state", str(place.state)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if (sock := _try()) is not None:
            sock.close()
            return holder(place.lease)
        if place.failed.exists():
            break
        time.sleep(0.02)
    raise DaemonUnreachable(_why(), fix="Try: holdfast doctor")


def stop_daemon(reason: str = "asked to") -> int:
    """Waits until the lease is free. The pid it had, or 0 when none was running."""
    pid = running()
    if not pid:
        return 0
    list(stream("stop", start=False, reason=reason))
    deadline = time.monotonic() + START_S
    while running() and time.monotonic() < deadline:
        time.sleep(0.02)
    return pid


def _try() -> socket.socket | None:
    """By a relative name: the address of a socket may not be longer than 108 bytes."""
    place = paths().control_socket
    before = os.open(".", os.O_RDONLY)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.chdir(place.parent)
        sock.connect(place.name)
        return sock
    except OSError:
        sock.close()
        return None
    finally:
        os.fchdir(before)
        os.close(before)


def _why() -> str:
    failed = paths().failed
    return failed.read_text().strip() if failed.exists() else f"no daemon serves {paths().state}"
