"""What the hook tests share: a client in a world of its own, the daemon's side, and readers of what was left."""

from __future__ import annotations

import binascii
import contextlib
import os
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOOK_PY = ROOT / "src" / "holdfast" / "hook.py"
ASK = ("ask", "claude-code", "PreToolUse")
TELL = ("tell", "claude-code", "PostToolUse")
START = ("start", "claude-code", "SessionStart")


@dataclass
class Result:
    code: int
    out: bytes
    err: bytes
    seconds: float

    def quiet(self) -> Result:
        """As every hook must end: exit 0, nothing said."""
        assert (self.code, self.out, self.err) == (0, b"", b"")
        return self


@dataclass
class Frame:
    fields: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str:
        return dict(self.fields)[name]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.fields]


def parse_frame(raw: bytes) -> Frame:
    magic, header, body = struct.unpack(">4sII", raw[:12])
    assert magic == b"HFQ1"
    assert len(raw) == 12 + header + body
    words = raw[12 : 12 + header]
    assert words.endswith(b"\0")
    pairs = [word.split(b"=", 1) for word in words[:-1].split(b"\0")]
    return Frame([(name.decode(), os.fsdecode(value)) for name, value in pairs], raw[12 + header :])


def parse_records(raw: bytes) -> list[Frame]:
    """Every byte must belong to a valid record."""
    frames = []
    while raw:
        magic, crc, length = struct.unpack(">4sII", raw[:12])
        assert magic == b"HFS1"
        frame, raw = raw[12 : 12 + length], raw[12 + length :]
        assert binascii.crc32(frame) == crc
        frames.append(parse_frame(frame))
    return frames


def salvage(raw: bytes) -> list[Frame]:
    """As the daemon reads a damaged log: search for each HFS1 whose checksum holds."""
    frames, at = [], 0
    while (at := raw.find(b"HFS1", at)) >= 0:
        _, crc, length = struct.unpack(">4sII", raw[at : at + 12].ljust(12, b"\0"))
        frame = raw[at + 12 : at + 12 + length]
        good = len(frame) == length and binascii.crc32(frame) == crc
        frames += [parse_frame(frame)] if good else []
        at += 12 + length if good else 1
    return frames


@dataclass
class World:
    """A home, a state directory and a client, all temporary."""

    via: str
    command: list[str]
    folder: Path
    state: Path = field(init=False)
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        home, runtime = self.folder / "home", self.folder / "runtime"
        home.mkdir(mode=0o700)
        runtime.mkdir(mode=0o700)
        (self.modules / "holdfast").mkdir(parents=True)
        (self.modules / "holdfast" / "__init__.py").touch()  # hides an installed daemon: none may start by accident
        self.state = home / ".local" / "state" / "holdfast"
        self.environment = {
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(runtime),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.modules),
        }

    @property
    def modules(self) -> Path:
        return self.folder / "modules"

    @property
    def run_folder(self) -> Path:
        return self.state / "run"

    @property
    def log(self) -> Path:
        return self.state / "spool" / "spool.log"

    @property
    def emergency(self) -> Path:
        return self.folder / "runtime" / "holdfast-spool"

    def prepare(self) -> None:
        for folder in (self.run_folder, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def open(self, *words: str, env: dict | None = None, prefix: tuple[str, ...] = (), **more) -> subprocess.Popen:
        settings = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder}
        full = {k: v for k, v in {**self.environment, **(env or {})}.items() if v is not None}
        return subprocess.Popen([*prefix, *self.command, *words], env=full, **{**settings, **more})

    def run(self, *words: str, stdin: bytes = b"{}", timeout: float = 30, **more) -> Result:
        began = time.monotonic()
        with self.open(*(words or ASK), **more) as process:
            out, err = process.communicate(stdin if process.stdin else None, timeout=timeout)
        return Result(process.returncode, out, err, time.monotonic() - began)

    def own_logs(self) -> list[Path]:
        return sorted(self.log.parent.glob("????????????????????????????????.log"))

    def spooled(self) -> list[Frame]:
        return parse_records(self.log.read_bytes()) if self.log.exists() else []

    def only(self) -> Frame:
        """The one event, spooled in the shared log and nowhere else."""
        [frame] = self.spooled()
        assert not self.own_logs()
        return frame


def answer(text: bytes = b"") -> bytes:
    return b"HFA1" + struct.pack(">I", len(text)) + text


def read_frame(connection: socket.socket) -> bytes:
    raw = bytearray()
    while len(raw) < 12 or len(raw) < 12 + sum(struct.unpack(">II", raw[4:12])):
        chunk = connection.recv(1 << 20)
        if not chunk:
            break
        raw += chunk
    return bytes(raw)


class Daemon:
    """The daemon's side: takes one frame a connection and replies what the test says."""

    def __init__(self, world: World, reply: bytes | None = b"", *, backlog: int = 128, silent: bool = False):
        world.prepare()
        self.frames: list[Frame] = []
        self.reply, self.silent, self.held = reply, silent, []
        self.socket = socket.socket(socket.AF_UNIX)
        with contextlib.chdir(world.run_folder):
            Path("hook.sock").unlink(missing_ok=True)
            self.socket.bind("hook.sock")
        self.socket.listen(backlog)

    def __enter__(self) -> Daemon:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.take(connection)

    def take(self, connection: socket.socket) -> None:
        if self.reply is None:
            connection.close()
            return
        raw = read_frame(connection)
        if raw:
            self.frames.append(parse_frame(raw))
        if self.silent:
            self.held.append(connection)
            return
        with contextlib.suppress(OSError):
            connection.sendall(self.reply)
        connection.close()


def never_start(state: Path) -> None:
    """As after a failed start: the client leaves the daemon alone."""
    (state / "run").mkdir(parents=True, exist_ok=True, mode=0o700)
    age(state / "run" / "failed", 0)


def connect(world: World) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    with contextlib.chdir(world.run_folder):
        client.connect("hook.sock")
    return client


def until(condition, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not come about in time"
        time.sleep(0.01)


def age(path: Path, seconds: float) -> None:
    path.touch()
    then = time.time() - seconds
    os.utime(path, (then, then))
