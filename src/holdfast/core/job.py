"""Work that touches the world, done after the commit that asked for it."""

from collections.abc import Mapping
from typing import Any

import msgspec

MAX_ATTEMPTS = 8
FIRST_DELAY_S = 2.0
LONGEST_DELAY_S = 3600.0


class Job(msgspec.Struct, kw_only=True, frozen=True):
    """Two waiting jobs with the same kind and `dedupe` are one. `run_at` is milliseconds since 1970."""

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
    return min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** max(0, attempts - 1))
