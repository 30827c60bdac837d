"""Sums as text and as plain values: what a command prints, and what scripts read."""

from collections.abc import Iterable, Sequence

from holdfast.usage.aggregate import Sum
from holdfast.usage.model import KINDS

UNTOLD = "–"
HEAD = ("", "input", "output", "cache read", "cache write", "total", "cost")
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


def row(one: Sum) -> tuple[str, ...]:
    usage = one.usage
    writes = [part for part in (usage.cache_write_5m, usage.cache_write_1h) if part is not None]
    figures = (usage.input, usage.output, usage.cache_read, sum(writes) if writes else None, usage.total)
    return one.group or UNTOLD, *map(tokens, figures), money(one)


def money(one: Sum) -> str:
    """Marked when some of it has no price; with the agent's own figure where that differs."""
    text = dollars(one.priced) + ("+" if one.unpriced and one.priced is not None else "")
    if one.reported is not None and abs(one.reported - one.cost) > max(one.cost // 200, 1):
        text += f" (agent says {dollars(one.reported)})"
    return text


def table(sums: Sequence[Sum], total: Sum, title: str = "") -> list[tuple[str, ...]]:
    """Head, one row for each sum, and the total."""
    return [(title, *HEAD[1:]), *map(row, sums), row(total)]


def notes(sums: Iterable[Sum]) -> list[str]:
    """What the reader of the figures has to know."""
    unpriced = sorted({model or "unnamed" for one in sums for model in one.unpriced})
    if not unpriced:
        return []
    named = ", ".join(unpriced)
    return [f"No price is known for {named}: not in the cost. Set one: holdfast prices set MODEL --input N --output N"]


def plain(one: Sum) -> dict[str, object]:
    """For --json: figures as numbers, unknown as null."""
    usage = dict(zip(KINDS, one.usage.amounts(), strict=True))
    return {
        "group": one.group, "tokens": {**usage, "total": one.usage.total}, "cost_micro_dollars": one.priced,
        "reported_micro_dollars": one.reported, "unpriced_models": sorted(one.unpriced),
        "models": sorted(one.models), "sessions": len(one.sessions), "calls": one.calls,
        "first": one.first, "last": one.last,
    }  # fmt: skip
