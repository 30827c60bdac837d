"""The warm CLI server: the whole command line, loaded once; every command is a fork of it.

The daemon starts it after the first command that had to load everything, and holds its standard input, so it ends
with the daemon. It also ends after IDLE_S without a command, and as soon as one of its files changes on disk, so that
an upgrade never answers with old code. `warm_client` is the other half.
"""

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

from holdfast.client import NO_START
from holdfast.doors.cli import warm_client
from holdfast.doors.cli.warm_client import CONNECT, EXITED, MAGIC, STARTED
from holdfast.paths import Paths

# In seconds.
IDLE_S = 900.0
# Bytes of arguments and environment.
LARGEST_COMMAND = 8 << 20
# Standard input, output and error, and the lifeline of the calling process.
STREAMS = 4
REHEARSED = (["who"], ["status"], ["session", "list", "--all"], ["gate", "status"])
"""Run once in advance, with output discarded, so that imports at first use are loaded for all forks."""
PATIENCE_S = 5.0


def main() -> None:
    paths = Paths(Path(sys.argv[sys.argv.index("--state") + 1]))
    address = paths.run / warm_client.server_name()
    os.environ[NO_START] = "1"  # Forks take on the environment of whoever asks.
    command = _load_everything()
    listening = _listen_at(address)
    loaded = _loaded_files()
    # Forks are not awaited: the kernel reaps them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Nothing loaded now is garbage: forks share its pages as long as no collection touches them.
    gc.freeze()
    try:
        _serve_commands(listening, command, loaded)
    finally:
        with contextlib.suppress(OSError):
            address.unlink()


def _listen_at(address: Path) -> socket.socket:
    """Under a temporary name first: nobody finds it before it listens."""
    made = address.with_name(f"{address.name}.{os.getpid()}")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(made))
    made.chmod(0o600)
    listening.listen(64)
    made.rename(address)
    return listening


def _load_everything() -> Any:
    from holdfast.doors.cli.root import build_command

    command = build_command()
    for words in REHEARSED:
        _run_command(command, words)
    return command


def _loaded_files() -> dict[str, int]:
    files = {getattr(module, "__file__", None) for name, module in sys.modules.items() if name.startswith("holdfast")}
    return {file: os.stat(file).st_mtime_ns for file in files if file}


def _is_stale(loaded: dict[str, int]) -> bool:
    try:
        return any(os.stat(file).st_mtime_ns != changed for file, changed in loaded.items())
    except OSError:
        return True


def _serve_commands(listening: socket.socket, command: Any, loaded: dict[str, int]) -> None:
    while True:
        # Descriptor 0 is held by the daemon: readable means that it has ended.
        ready = select.select([listening.fileno(), 0], [], [], IDLE_S)[0]
        # Not accepted when stale: the client then runs the command itself.
        if not ready or 0 in ready or _is_stale(loaded):
            return
        channel, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _answer_request(channel, command)
        channel.close()


def _answer_request(channel: socket.socket, command: Any) -> NoReturn:
    """In the fork: become the requested command, and report its exit code."""
    code = 1
    try:
        # The command may start processes of its own and wait for them.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        channel.settimeout(PATIENCE_S)
        arguments = _take_over_process(channel, *_receive_command(channel))
        channel.settimeout(None)
        channel.sendall(STARTED + os.getpid().to_bytes(4, "little"))
        _borrow_connections(channel)
        code = _run_command(command, arguments)
    except OSError:
        pass  # The one who asked has gone.
    finally:
        with contextlib.suppress(OSError):
            # One byte for the exit code and three for the time, as in `warm_client.MESSAGE`.
            channel.sendall(EXITED + bytes((code & 0xFF,)) + _cpu_milliseconds().to_bytes(3, "little"))
        os._exit(0)


def _cpu_milliseconds() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return min(int((used.ru_utime + used.ru_stime) * 1000), (1 << 24) - 1)


def _receive_command(channel: socket.socket) -> tuple[list[bytes], list[int]]:
    head, streams, _, _ = socket.recv_fds(channel, len(MAGIC) + 4, STREAMS)
    size = int.from_bytes(head[len(MAGIC) :], "little")
    # The four descriptors come with the first bytes, or not at all.
    if head[: len(MAGIC)] != MAGIC or len(streams) != STREAMS or size > LARGEST_COMMAND:
        raise OSError("not a command")
    body = bytearray()
    while len(body) < size:
        chunk = channel.recv(size - len(body))
        if not chunk:
            raise OSError("cut off")
        body += chunk
    return bytes(body).split(b"\0"), streams


def _take_over_process(_channel: socket.socket, fields: list[bytes], streams: list[int]) -> list[str]:
    """Adopt the folder, environment and streams of the calling process; return its arguments."""
    folder, encoding, umask, count = fields[:4]
    words = 4 + int(count)
    os.umask(int(umask))
    os.environ.clear()
    os.environb.update(dict(entry.split(b"=", 1) for entry in fields[words:] if b"=" in entry))
    # The caller may be in another time zone.
    time.tzset()
    for number, fd in enumerate(streams[:3]):
        os.dup2(fd, number)
        os.close(fd)
    _open_streams(encoding.decode())
    os.chdir(folder)
    threading.Thread(target=_end_with, args=(streams[3],), daemon=True).start()
    return [os.fsdecode(word) for word in fields[4:words]]


def _open_streams(encoding: str) -> None:
    sys.stdin = open(0, encoding=encoding, errors="surrogateescape", closefd=False)
    sys.stdout = open(1, "w", encoding=encoding, closefd=False, buffering=1 if os.isatty(1) else -1)
    sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", closefd=False, buffering=1)
    from holdfast.doors.cli import render

    render.open_consoles()


def _end_with(lifeline: int) -> None:
    """The calling process was killed: nobody waits for the rest."""
    os.read(lifeline, 1)
    os._exit(1)


def _borrow_connections(channel: socket.socket) -> None:
    from holdfast import client

    def connection(timeout: float | None) -> socket.socket | None:
        channel.sendall(CONNECT + bytes(4))
        answer, fds, _, _ = socket.recv_fds(channel, 1, 1)
        if answer != b"c" or not fds:
            return None
        sock = socket.socket(fileno=fds[0])
        sock.settimeout(timeout)
        return sock

    client.borrow_connections(connection)


def _run_command(command: Any, arguments: list[str]) -> int:
    from holdfast.doors.cli.root import run_cli

    sys.argv = ["holdfast", *arguments]
    try:
        run_cli(command)
        code: Any = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 0
    if isinstance(code, str):
        print(code, file=sys.stderr, flush=True)
    return code if isinstance(code, int) else 1 if code else 0


if __name__ == "__main__":
    main()
