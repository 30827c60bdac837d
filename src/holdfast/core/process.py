"""The port to other programs, so that features can run one without owning how it is watched over."""

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
