"""Runs programs that die with the daemon, together with everything they started (P6)."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from holdfast.core.job import Ran

GUARD = str(Path(__file__).with_name("guard.py"))
# Bytes kept of each stream.
LARGEST_OUTPUT = 8 << 20


def run_child(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 60.0,
    nice: int = 10,
) -> Ran:
    with started_child(argv, cwd=cwd, env=env, nice=nice) as process:
        readers = [_Collector(process.stdout), _Collector(process.stderr)]
        feeding = threading.Thread(target=_feed_stdin, args=(process, stdin), daemon=True)
        feeding.start()
        try:
            code = process.wait(timeout)
            timed_out = False
        except subprocess.TimeoutExpired:
            # 124 is the exit status of timeout(1).
            code, timed_out = 124, True
            process.terminate()  # The guard kills the group.
            process.wait(5)
        return Ran(code, readers[0].result(), readers[1].result(), timed_out)


@contextlib.contextmanager
def started_child(
    argv: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None, nice: int = 10
) -> Iterator[subprocess.Popen[bytes]]:
    """A guarded process that ends with the block."""
    # Only this process holds `ours`: when it closes, the guard reads end-of-file and kills the program.
    lifeline, ours = os.pipe()
    os.set_inheritable(lifeline, True)
    # -I and -S ignore the environment and site-packages, which also speeds up the guard.
    command = [sys.executable, "-I", "-S", "-c", _BEGIN, str(lifeline), str(nice), GUARD, *argv]
    process = subprocess.Popen(
        command, cwd=cwd, env=dict(env) if env is not None else None, pass_fds=[lifeline],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(lifeline)
    try:
        yield process
    finally:
        # This ends a program that is still running.
        os.close(ours)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                stream.close() if stream else None


# The lifeline is moved to descriptor 3 before the guard runs, so it needs no argument.
_BEGIN = (
    "import posix as os,sys\n"
    "fd,nice,guard=int(sys.argv[1]),int(sys.argv[2]),sys.argv[3]\n"
    "os.dup2(fd,3,inheritable=True) if fd!=3 else None\n"
    "os.close(fd) if fd!=3 else None\n"
    "os.nice(nice)\n"
    "sys.argv=[guard,*sys.argv[4:]]\n"
    "exec(compile(open(guard).read(),guard,'exec'),{'__name__':'__main__'})\n"
)


class _Collector:
    """Reads a stream to its end and keeps the first part, so that a chatty program cannot fill the memory."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[bytes] | None) -> None:
        with contextlib.suppress(OSError, ValueError):
            while stream and (chunk := os.read(stream.fileno(), 65536)):
                # Keep reading: the program would block on a full pipe.
                self._kept += chunk[: LARGEST_OUTPUT - len(self._kept)]

    def result(self) -> bytes:
        # A leftover process may keep the pipe open; the wait is bounded.
        self._thread.join(5)
        return bytes(self._kept)


def _feed_stdin(process: subprocess.Popen[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        if process.stdin:
            process.stdin.write(data)
            process.stdin.close()
