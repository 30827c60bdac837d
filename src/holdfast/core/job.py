"""How features ask for jobs after a commit and run other programs."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

# Work that touches the world, done after the commit that requested it.

MAX_ATTEMPTS = 8
FIRST_DELAY_S = 2.0
LONGEST_DELAY_S = 3600.0
READ_USAGE = "sessions.read_usage"
"""Reads token use from a session's transcript."""


class Job(msgspec.Struct, kw_only=True, frozen=True):
    """Two waiting jobs with the same kind and `dedupe` are one. `run_at` is in ms since 1970."""

    kind: str
    dedupe: str = ""
    run_at: int = 0
    payload: Mapping[str, Any] = {}


class ClaimedJob(msgspec.Struct, kw_only=True, frozen=True):
    id: int
    kind: str
    dedupe: str
    attempts: int
    payload: Mapping[str, Any]


def delay_s(attempts: int) -> float:
    # Doubles with each attempt: 2, 4, 8 seconds and so on.
    value: float = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** max(0, attempts - 1))
    return value


# Runs other programs for features, which need not know how they are supervised.


class Ran(msgspec.Struct, frozen=True):
    code: int
    out: bytes
    err: bytes
    timed_out: bool = False


class Run(Protocol):
    """Runs a program that dies with the daemon. Output is capped; a time-out kills its process group."""

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
    """Run a short program in front of a hook, without a guard process.

    It must start no children: only the program itself is killed on time-out.
    """
    # Only here to match `Run`.
    del nice
    try:
        done = subprocess.run(argv, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        # The exit status of `timeout`.
        return Ran(124, b"", b"", timed_out=True)
    return Ran(done.returncode, done.stdout, done.stderr)
