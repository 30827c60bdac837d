"""What git says of a checkout. Whoever asks brings the way to run a program."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.core import git
from holdfast.core.process import Ran, Run
from holdfast.search.index.place import root_of

PATIENCE_S = 120.0
LARGEST_STATUS = 2 << 20
MOST_DIRTY = 2_000
FRESH_NS = 50_000_000


def run_here(
    argv: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None, stdin: bytes = b"",
    timeout: float = PATIENCE_S, nice: int = 0,
) -> Ran:  # fmt: skip
    """For a process that is itself watched over: what it starts dies with it. `nice` is its own."""
    del nice
    try:
        done = subprocess.run(argv, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return Ran(124, b"", b"", timed_out=True)
    except OSError as error:
        return Ran(127, b"", str(error).encode())
    return Ran(done.returncode, done.stdout, done.stderr)


def names(root: str, run: Run) -> list[str] | None:
    """Tracked and new files that are not ignored. None where git cannot say."""
    if not os.path.lexists(os.path.join(root, ".git")):
        return None
    ran = run(git.files(others=True), cwd=root, env=git.environment(os.environ), timeout=PATIENCE_S)
    return list(dict.fromkeys(git.parse_names(ran.out))) if ran.code == 0 and not ran.timed_out else None


def status(root: str, run: Run) -> git.Status | None:
    """None where git cannot say: in the middle of another's work, or where it does not trust the folder."""
    if not os.path.lexists(os.path.join(root, ".git")):
        return None
    environment = git.environment(os.environ)
    filters: list[str] = []
    if git.may_name_filters(_config(root)):
        filters = git.own_filters(run(git.config_names(), cwd=root, env=environment, timeout=PATIENCE_S).out)
    ran = run(git.status(filters=filters), cwd=root, env=environment, timeout=PATIENCE_S)
    if ran.code != 0 or ran.timed_out or len(ran.out) > LARGEST_STATUS:
        return None
    return git.parse_status(ran.out)


def _config(root: str) -> bytes:
    try:
        return (Path(root_of(root)[1]) / "config").read_bytes()[:1_000_000]
    except OSError:
        return b"[filter"


def snapshot(found: git.Status | None, root: str) -> dict[str, Any]:
    """Enough to know again that nothing changed: the commit, and every dirty file as it lies there.

    Empty where it could not be relied on: too much, cut off, or so fresh that the next change might look the same.
    """
    if found is None or found.cut or not found.head or len(found.changes) > MOST_DIRTY:
        return {}
    dirty: dict[str, list[int]] = {}
    newest = 0
    for change in found.changes:
        try:
            seen = os.lstat(os.path.join(root, change.path))
        except (OSError, ValueError):
            dirty[_printable(change.path)] = []
            continue
        dirty[_printable(change.path)] = [seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns]
        newest = max(newest, seen.st_ctime_ns)
    if newest > time.time_ns() - FRESH_NS:
        return {}
    return {"head": found.head, "dirty": dirty}


def _printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")
