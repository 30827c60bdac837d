"""Token use by kind; a kind the agent does not report is None, never 0."""

import hashlib
from datetime import UTC, datetime
from typing import Any

import msgspec

KINDS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "reasoning")
"""`input` is uncached input; `output` includes `reasoning`. A provider's only cache tier is `cache_write_5m`."""
COUNTED = KINDS[:-1]
"""The kinds that add up to the total: reasoning is part of the output."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    reasoning: int | None = None

    def amounts(self) -> tuple[int | None, ...]:
        return msgspec.structs.astuple(self)

    @property
    def total(self) -> int | None:
        """None if no kind is known."""
        amounts = [amount for amount in self.amounts()[: len(COUNTED)] if amount is not None]
        return sum(amounts) if amounts else None

    def plus(self, other: "Usage") -> "Usage":
        return Usage(*map(_add_counts, self.amounts(), other.amounts()))

    def beyond(self, before: "Usage") -> "Usage":
        """What grew since `before`; a figure that shrank has not grown."""
        return Usage(*map(_count_growth, self.amounts(), before.amounts()))

    def at_least(self, other: "Usage") -> "Usage":
        """The larger of each kind."""
        return Usage(*map(larger_count, self.amounts(), other.amounts()))

    @property
    def is_empty(self) -> bool:
        return not any(self.amounts())


NOTHING = Usage()


class UsageRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one model call added (`spent`), and its figures so far (`said`)."""

    agent: str
    id: str
    """The agent's id of the message and request, the same in every file that repeats it."""
    at: int
    spent: Usage
    said: Usage
    model: str = ""
    session: str = ""
    lane: str = ""
    """The subagent it belongs to; empty for the session itself."""
    turn: str = ""
    """The agent's id of the turn, if any."""
    turn_n: int = 0
    """Our number of the turn; 0 if unknown."""
    commit: str = ""
    """The session's next commit, if known."""
    project: str = ""
    branch: str = ""
    reported: int | None = None
    """Micro-dollars that the agent reports for `spent`."""
    summed: bool = False
    """It sums many calls, because the agent records no single ones."""
    calls: int = 1
    until: int = 0
    """The time of the last of several calls; `at` is the first."""

    @property
    def key(self) -> str:
        """The same statement has the same key wherever it is read: count each key once."""
        parts = (self.agent, self.id, *self.said.amounts())
        return hashlib.sha256("\n".join(map(str, parts)).encode("utf-8", "replace")).hexdigest()


def _add_counts(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _count_growth(now: int | None, before: int | None) -> int | None:
    return None if now is None else max(0, now - (before or 0))


def larger_count(one: int | None, other: int | None) -> int | None:
    return max(one or 0, other or 0) if one is not None or other is not None else None


# Parses agents' figures. Odd values are unknown, never an error.

# Larger figures are not believed: one broken line must not spoil a sum.
LARGEST = 1 << 40
# Micro-dollars in a dollar.
MICRO = 1_000_000


def token_count(value: Any) -> int | None:
    """A count of tokens; None for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < LARGEST else None


def part_of(whole: int | None, *parts: int | None) -> int | None:
    """A figure that includes others, without them."""
    return None if whole is None else max(0, whole - sum(part or 0 for part in parts))


def parse_milliseconds(value: Any) -> int:
    """From an ISO time, seconds or milliseconds; 0 for anything else."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        # Seconds stay below 1e11 until the year 5138; milliseconds have been above it since 1973.
        return int(value if value > 1e11 else value * 1000) if 0 <= value < 1e15 else 0
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            # A time without a zone is UTC.
            return max(0, round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
        except (ValueError, OverflowError):
            return 0
    return 0


def micro_dollars(dollars: Any) -> int | None:
    """As an agent reports it; 0 means unknown."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float) or not 0 < dollars < 1e9:
        return None
    return round(dollars * MICRO)


def usage_of_prompt(
    prompt: Any, output: Any, cached: Any = None, written: Any = None, reasoning: Any = None, total: Any = None
) -> Usage:
    """For agents whose prompt figure includes cached tokens. Some include reasoning in the output, some don't: the
    total shows which."""
    whole, out, read, write = token_count(prompt), token_count(output), token_count(cached), token_count(written)
    thought, everything = token_count(reasoning), token_count(total)
    # The total is the sum only if reasoning is separate from the output.
    if out is not None and thought and everything is not None and everything == (whole or 0) + out + thought:
        out += thought
    return Usage(
        input=part_of(whole, read, write), output=out, cache_read=read, cache_write_5m=write, reasoning=thought
    )
