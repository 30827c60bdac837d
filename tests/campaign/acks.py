"""The test's own list of what was acknowledged. It lives outside the state directory, as an agent's memory would."""

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from holdfast.app import all_features
from holdfast.core.ids import delivery_key
from holdfast.core.replay import Rebuild
from holdfast.daemon.ingest.frames import as_frame
from holdfast.stores import backup
from tests.kit import World, hook_command, spooled, wait_until

PATIENCE_S = 60.0


def payload(call: str, session: str = "s-1", **more: Any) -> bytes:
    fields = {"hook_event_name": "PreToolUse", "session_id": session, "tool_name": "Bash", "tool_use_id": call}
    return json.dumps({**fields, "tool_input": {"command": f"echo {call}"}, **more}).encode()


def frame(call: str, key: str = "", session: str = "s-1", **header: str) -> bytes:
    fields = {"key": key or delivery_key(), "mode": "ask", "agent": "claude-code", "event": "PreToolUse", "at": "5"}
    return as_frame({**fields, **header}, payload(call, session))


def send(world: World, request: bytes, timeout: float = 10.0) -> bytes | None:
    """The answer, or None when there was none: only an answer is an acknowledgement."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(timeout)
        sock.connect(str(world.paths.hook_socket))
        sock.sendall(request)
        return _answer(sock)
    return None


def _answer(sock: socket.socket) -> bytes | None:
    received = b""
    while chunk := sock.recv(65536):
        received += chunk
        if len(received) >= 8 and len(received) >= 8 + struct.unpack(">I", received[4:8])[0]:
            return received[8:]
    return None


def fire(world: World, call: str, mode: str = "tell", prefix: tuple[str, ...] = ()) -> int:
    """One real hook; its exit code. Exit 0 says that the event is safe, with the daemon or in the spool."""
    command = [*prefix, *hook_command(), mode, "claude-code", "PreToolUse"]
    done = subprocess.run(command, input=payload(call), env=world.env, capture_output=True, timeout=60, check=False)
    assert done.returncode != 2, "an agent would read this as a refusal"
    return done.returncode


class Acks:
    """Appended to a file of its own, so that even a test that dies knows what it was promised."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")

    def add(self, call: str) -> None:
        self._file.write(f"{call}\n")
        self._file.flush()

    def all(self) -> set[str]:
        return set(Path(self._file.name).read_text().split())


def calls(world: World) -> Counter[str]:
    return Counter(str(e.data.get("call", "")) for e in world.events(kinds=("tool.started",)))


def serving(world: World) -> int:
    """A daemon that serves, started as a hook starts it, and again if one that was going down stood in its way."""
    command = [sys.executable, "-P", "-m", "holdfast.daemon", "--state", str(world.paths.state)]
    deadline = time.monotonic() + PATIENCE_S
    started: subprocess.Popen[bytes] | None = None
    while not (world.pid > 0 and _listens(world)):
        assert time.monotonic() < deadline, f"no daemon serves: {_why(world)}"
        if world.pid <= 0 and (started is None or started.poll() is not None):
            world.paths.failed.unlink(missing_ok=True)
            started = subprocess.Popen(command, env=world.env, start_new_session=True, stderr=subprocess.DEVNULL)
        time.sleep(0.02)
    return world.pid


def _why(world: World) -> str:
    return world.paths.failed.read_text() if world.paths.failed.exists() else "it does not say why"


def _listens(world: World) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(world.paths.hook_socket))
        return True
    return False


def settled(world: World) -> Counter[str]:
    """After a restart and with everything drained, what the log has."""
    serving(world)
    wait_until(lambda: not spooled(world.paths.spool) and not emergency(world), "the spool is drained", PATIENCE_S)
    return calls(world)


def emergency(world: World) -> list[Path]:
    return spooled(Path(world.env["XDG_RUNTIME_DIR"]) / "holdfast-spool")


def judge(world: World, wanted: set[str], maybe: frozenset[str] | set[str] = frozenset()) -> None:
    """Everything promised is there, once; nothing else but what may have got through; the file is sound."""
    with contextlib.suppress(AssertionError):
        # A daemon that began on a full disk takes in what the journal has at its next tick.
        wait_until(lambda: wanted <= set(settled(world)), "all that was promised")
    found = settled(world)
    lost = sorted(wanted - set(found))
    assert not lost, f"{len(lost)} acknowledged events lost: {lost[:5]}"
    doubled = [call for call, times in found.items() if times > 1]
    assert not doubled, f"doubled: {doubled[:5]}"
    assert set(found) <= wanted | maybe, f"from nowhere: {sorted(set(found) - wanted - maybe)[:5]}"
    if world.paths.database.exists():  # else the log is a server's
        backup.check_database(world.paths.database)
    wait_until(lambda: state_is_replay(world), "state = replay of the log (P5)")


def state_is_replay(world: World) -> bool:
    with world.reader() as reader:
        work = Rebuild(all_features(), reader)
        work.read()
        return work.differences() == []


def as_root() -> bool:
    return os.geteuid() == 0
