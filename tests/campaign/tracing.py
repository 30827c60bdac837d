"""strace as the hand of fate: counts the system calls that change something, kills or fails at the Nth."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

CHANGING = (
    "write,pwrite64,writev,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,"
    "fallocate,fchmod,chmod,sendto,link,utimensat"
)
ERRORS = ("ENOSPC", "EIO", "EROFS", "EACCES")


def can_trace() -> bool:
    if not shutil.which("strace"):
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], check=False).returncode == 0


def prefix(out: Path | str = "/dev/null", inject: str = "") -> list[str]:
    words = ["strace", "-f", "-qq", "-o", str(out), "-e", f"trace={CHANGING}"]
    return [*words, *(["-e", f"inject={inject}"] if inject else []), "--"]


Call = tuple[str, int]
"""The name of a system call and which of that name it is: so strace counts, for each thread by itself."""


def killed_at(call: Call) -> str:
    return f"{call[0]}:signal=KILL:when={call[1]}"


def failing_from(call: Call, error: str) -> str:
    """From this call on, for good: a disk that is full stays so."""
    return f"{call[0]}:error={error}:when={call[1]}+"


def failing_once(call: Call, error: str) -> str:
    return f"{call[0]}:error={error}:when={call[1]}"


def counted(out: Path) -> list[Call]:
    """Every call of every thread, once."""
    seen: dict[tuple[str, str], int] = {}
    for line in out.read_text(errors="replace").splitlines():
        if found := re.match(r"(\d+)\s+(\w+)\(", line):
            seen[found[1], found[2]] = seen.get((found[1], found[2]), 0) + 1
    most: dict[str, int] = {}
    for (_, name), times in seen.items():
        most[name] = max(times, most.get(name, 0))
    return [(name, number) for name, times in most.items() for number in range(1, times + 1)]


@contextlib.contextmanager
def attached(pid: int, inject: str, out: Path | str = "/dev/null") -> Iterator[subprocess.Popen[bytes]]:
    """To a running daemon, all its threads; detached again at the end of the block."""
    command = [*prefix(out, inject)[:-1], "-p", str(pid)]
    tracer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 10
    while not _is_traced(pid) and tracer.poll() is None:
        assert time.monotonic() < deadline, "strace does not attach"
        time.sleep(0.005)
    try:
        yield tracer
    finally:
        with contextlib.suppress(ProcessLookupError):
            tracer.send_signal(signal.SIGINT)
        try:
            tracer.wait(10)
        except subprocess.TimeoutExpired:  # It sometimes goes on waiting for a tracee that is dead already.
            tracer.kill()
            tracer.wait(10)


def _is_traced(pid: int) -> bool:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        return all("TracerPid:\t0\n" not in Path(f"/proc/{pid}/task/{t}/status").read_text() for t in tasks)
    except OSError:
        return False
