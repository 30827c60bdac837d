"""The port to other programs, so that features can run one without owning how it is watched over."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class Ran(msgspec.Struct, frozen=True):
    code: int
    out: bytes
    err: bytes
    timed_out: bool = False


class Run(Protocol):
    """Runs a program that dies with the daemon. Output is capped; a time-out kills its whole process group."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 60.0,
        nice: int = 10,
    ) -> Ran: ...


def run_briefly(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 1.0,
    nice: int = 0,
) -> Ran:
    """For a look of some milliseconds in front of a hook, where a guarded process would cost more than the look itself.

    The program must start none of its own: only it is killed when its time is over.
    """
    del nice
    try:
        done = subprocess.run(argv, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return Ran(124, b"", b"", timed_out=True)
    return Ran(done.returncode, done.stdout, done.stderr)
