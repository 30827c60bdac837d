"""Sums as text and as plain values: what a command prints, and what scripts read."""

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.usage.aggregate import Sum
from holdfast.usage.model import KINDS

UNTOLD = "–"
COLUMNS = ("input", "output", "cache read", "cache write", "total", "cost")
MICRO = 1_000_000
SHORTEST, LONGEST = 2, 6


def dollars(micro: int | None) -> str:
    """Cents, or more places where that would be nothing."""
    if micro is None:
        return UNTOLD
    if micro == 0 or micro >= MICRO // 100:
        return f"${micro / MICRO:,.{SHORTEST}f}"
    return f"${micro / MICRO:.{LONGEST}f}".rstrip("0")


def tokens(amount: int | None) -> str:
    return UNTOLD if amount is None else f"{amount:,}"


def format_count(count: int) -> str:
    """1234 as 1.2k."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


def amounts(group: Mapping[str, Any]) -> tuple[int | None, ...]:
    """Input, output, cache read, cache write (both tiers) and total of a group as `plain` gives it."""
    spent = group["tokens"]
    writes = [part for part in (spent["cache_write_5m"], spent["cache_write_1h"]) if part is not None]
    return spent["input"], spent["output"], spent["cache_read"], sum(writes) if writes else None, spent["total"]


def money(group: Mapping[str, Any]) -> str:
    """Marked with + when some of it has no price."""
    priced = group["cost_micro_dollars"]
    return dollars(priced) + ("+" if group["unpriced_models"] and priced is not None else "")


def reported_money(group: Mapping[str, Any]) -> str:
    """The agent's own figure where it is another one; else empty."""
    return dollars(group["reported_micro_dollars"]) if group["reported_differs"] else ""


def notes(sums: Iterable[Sum]) -> list[str]:
    """What the reader of the figures has to know."""
    unpriced = sorted({model or "unnamed" for one in sums for model in one.unpriced})
    if not unpriced:
        return []
    named = ", ".join(unpriced)
    return [f"No price is known for {named}: not in the cost. Set one: holdfast price set MODEL --input N --output N"]


def plain(one: Sum) -> dict[str, Any]:
    """For --json: figures as numbers, unknown as null."""
    usage = dict(zip(KINDS, one.usage.amounts(), strict=True))
    return {
        "group": one.group, "tokens": {**usage, "total": one.usage.total}, "cost_micro_dollars": one.priced,
        "reported_micro_dollars": one.reported, "reported_differs": one.differs, "unpriced_models": sorted(one.unpriced),
        "models": sorted(one.models), "sessions": len(one.sessions), "calls": one.calls,
        "first": one.first, "last": one.last,
    }  # fmt: skip
