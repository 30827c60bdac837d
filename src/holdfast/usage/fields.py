"""Figures as agents write them → figures we count with. Odd values are unknown, never an error."""

from datetime import UTC, datetime
from typing import Any

from holdfast.usage.model import Usage

LARGEST = 1 << 40
MICRO = 1_000_000


def amount(value: Any) -> int | None:
    """A count of tokens; None for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < LARGEST else None


def part_of(whole: int | None, *parts: int | None) -> int | None:
    """A figure that includes others, without them."""
    return None if whole is None else max(0, whole - sum(part or 0 for part in parts))


def milliseconds(value: Any) -> int:
    """Of an ISO time, of seconds or of milliseconds; 0 for anything else."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        return int(value if value > 1e11 else value * 1000) if 0 <= value < 1e15 else 0
    if isinstance(value, str):
        try:
            told = datetime.fromisoformat(value)
            return max(0, round((told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp() * 1000))
        except (ValueError, OverflowError):
            return 0
    return 0


def micro_dollars(dollars: Any) -> int | None:
    """What an agent reports; 0 is what they write when they do not know."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float) or not 0 < dollars < 1e9:
        return None
    return round(dollars * MICRO)


def usage_of_prompt(
    prompt: Any, output: Any, cached: Any = None, written: Any = None, reasoning: Any = None, total: Any = None
) -> Usage:
    """Where the prompt's figure includes the cached ones. Some count the reasoning into the output, some beside it:
    the total tells which."""
    whole, out, read, write = amount(prompt), amount(output), amount(cached), amount(written)
    thought, everything = amount(reasoning), amount(total)
    if out is not None and thought and everything is not None and everything == (whole or 0) + out + thought:
        out += thought
    return Usage(
        input=part_of(whole, read, write), output=out, cache_read=read, cache_write_5m=write, reasoning=thought
    )
