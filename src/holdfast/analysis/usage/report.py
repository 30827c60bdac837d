"""Formats sums of cost for commands and scripts."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

import msgspec

from holdfast.analysis.usage.model import KINDS, NOTHING, Usage, UsageRecord
from holdfast.analysis.usage.prices import PriceTable, UnknownCost, cost_of_record
from holdfast.core.times import HOUR

# Sums of token use and money by session, day, model and other groups.

UNKNOWN = ""
"""The group of records that lack the grouping field."""


class Sum(msgspec.Struct):
    """One group. `cost` omits what has no price: `unpriced` names those models."""

    group: str
    usage: Usage = NOTHING
    cost: int = 0
    reported: int | None = None
    """What agents themselves report as cost."""
    compared: int = 0
    """Our figure for exactly the calls with a reported cost."""
    unpriced: set[str] = msgspec.field(default_factory=set)
    models: set[str] = msgspec.field(default_factory=set)
    sessions: set[str] = msgspec.field(default_factory=set)
    calls: int = 0
    first: int = 0
    last: int = 0

    def add(self, record: UsageRecord, table: PriceTable) -> None:
        cost = cost_of_record(table, record)
        known_cost = 0 if isinstance(cost, UnknownCost) else cost
        if isinstance(cost, UnknownCost):
            self.unpriced.add(cost.model)
        self.cost += known_cost
        if record.reported is not None:
            self.reported, self.compared = (self.reported or 0) + record.reported, self.compared + known_cost
        self.usage = self.usage.plus(record.spent)
        self.models.add(record.model)
        self.sessions.add(record.session)
        self.calls += record.calls
        self.first = min(self.first or record.at, record.at)
        self.last = max(self.last, record.at, record.until)

    def join(self, other: "Sum") -> None:
        self.usage = self.usage.plus(other.usage)
        self.cost, self.compared, self.calls = (
            self.cost + other.cost,
            self.compared + other.compared,
            self.calls + other.calls,
        )
        if other.reported is not None:
            self.reported = (self.reported or 0) + other.reported
        for name in ("unpriced", "models", "sessions"):
            getattr(self, name).update(getattr(other, name))
        self.first = min(self.first or other.first, other.first or self.first)
        self.last = max(self.last, other.last)

    @property
    def priced(self) -> int | None:
        """Micro-dollars, or None if nothing has a price."""
        return None if self.unpriced and not self.cost else self.cost

    @property
    def differs(self) -> bool:
        """Whether the agents' figure differs from ours by more than half a percent."""
        # At least one micro-dollar, or rounding alone would count as a difference.
        return self.reported is not None and abs(self.reported - self.compared) > max(self.compared // 200, 1)


GroupBy = Callable[[UsageRecord], str]


def by_day(zone: tzinfo | None = None) -> GroupBy:
    """The calendar day in a time zone; by default the machine's."""
    # A record without a time is in no day.
    return lambda record: datetime.fromtimestamp(record.at / 1000, zone).date().isoformat() if record.at else UNKNOWN


def by_month(zone: tzinfo | None = None) -> GroupBy:
    day = by_day(zone)
    return lambda record: day(record)[:7]


GROUPS: dict[str, GroupBy] = {
    "session": lambda record: record.session,
    "turn": lambda record: f"{record.session}/{record.turn_n}" if record.turn_n else UNKNOWN,
    "commit": lambda record: record.commit,
    "project": lambda record: record.project,
    "agent": lambda record: record.agent,
    "model": lambda record: record.model,
    "branch": lambda record: record.branch,
    "lane": lambda record: record.lane,
    "day": by_day(),
    "month": by_month(),
}


def sum_by_group(records: Iterable[UsageRecord], group: GroupBy, table: PriceTable) -> list[Sum]:
    """One per group, sorted by name; unknown first."""
    groups: dict[str, Sum] = {}
    for record in records:
        name = group(record)
        groups.setdefault(name, Sum(name)).add(record, table)
    return [groups[name] for name in sorted(groups)]


def sum_all_records(records: Iterable[UsageRecord], table: PriceTable) -> Sum:
    whole = Sum("total")
    for record in records:
        whole.add(record, table)
    return whole


def join_sums(name: str, sums: Iterable[Sum]) -> Sum:
    """The same as the sum of their records, without pricing each again."""
    whole = Sum(name)
    for one in sums:
        whole.join(one)
    return whole


UNTOLD = "–"
COLUMNS = ("input", "output", "cache read", "cache write", "total", "cost")
MICRO = 1_000_000
SHORTEST, LONGEST = 2, 6


def format_cost_facts(cost: int | None, reported: int | None, unpriced: Iterable[str]) -> str:
    """With the agent's own figure if it differs, and the models without a price."""
    text = format_dollars(cost)
    if reported is not None:
        text += f" (the agent says {format_dollars(reported)})"
    names = ", ".join(name or "an unnamed model" for name in unpriced)
    return f"{text} (no price for {names})" if names else text


def format_dollars(micro: int | None) -> str:
    """Cents, or more places if that would show nothing."""
    if micro is None:
        return UNTOLD
    if micro == 0 or micro >= MICRO // 100:
        return f"${micro / MICRO:,.{SHORTEST}f}"
    return f"${micro / MICRO:.{LONGEST}f}".rstrip("0")


def format_known_cost(cost: int | None, unpriced: Iterable[str]) -> str:
    """`$0.26+` if some models have no price: it cost more than that."""
    return format_dollars(cost) + ("+" if cost is not None and any(True for _ in unpriced) else "")


def format_token_count(amount: int | None) -> str:
    return UNTOLD if amount is None else f"{amount:,}"


def format_count(count: int) -> str:
    """1234 as 1.2k."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


def token_amounts(group: Mapping[str, Any]) -> tuple[int | None, ...]:
    """Input, output, cache read, cache write (both tiers) and total of a group from `plain`."""
    spent = group["tokens"]
    # None if neither tier was reported: unknown is not 0.
    writes = [part for part in (spent["cache_write_5m"], spent["cache_write_1h"]) if part is not None]
    return spent["input"], spent["output"], spent["cache_read"], sum(writes) if writes else None, spent["total"]


def format_money(group: Mapping[str, Any]) -> str:
    """Marked with + if some of it has no price."""
    priced = group["cost_micro_dollars"]
    return format_known_cost(priced, group["unpriced_models"])


def reported_money(group: Mapping[str, Any]) -> str:
    """The agent's figure if it differs; else empty."""
    return format_dollars(group["reported_micro_dollars"]) if group["reported_differs"] else ""


def price_notes(sums: Iterable[Sum]) -> list[str]:
    """Caveats for the reader of the figures."""
    unpriced = sorted({model or "unnamed" for one in sums for model in one.unpriced})
    if not unpriced:
        return []
    named = ", ".join(unpriced)
    return [
        f"No price is known for {named}: not in the cost. Set one: holdfast cost price set MODEL --input N --output N"
    ]


def sum_as_dict(one: Sum) -> dict[str, Any]:
    """For --json: figures as numbers, unknown as null."""
    usage = dict(zip(KINDS, one.usage.amounts(), strict=True))
    return {
        "group": one.group, "tokens": {**usage, "total": one.usage.total}, "cost_micro_dollars": one.priced,
        "reported_micro_dollars": one.reported, "reported_differs": one.differs, "unpriced_models": sorted(one.unpriced),
        "models": sorted(one.models), "sessions": len(one.sessions), "calls": one.calls,
        "first": one.first, "last": one.last,
    }  # fmt: skip


# Five-hour blocks, as subscriptions count them: one starts with the first use after the last is over.

BLOCK_MS = 5 * HOUR


class Block(msgspec.Struct):
    """`start` is the full hour (UTC) of its first use; it ends five hours later."""

    start: int
    sum: Sum

    @property
    def end(self) -> int:
        return self.start + BLOCK_MS

    def is_open(self, now: int) -> bool:
        return now < self.end and now - self.sum.last < BLOCK_MS


def usage_blocks(records: Iterable[UsageRecord], table: PriceTable) -> list[Block]:
    """A block also ends after five hours without use."""
    blocks_so_far: list[Block] = []
    for record in sorted(records, key=lambda record: record.at):
        if (
            not blocks_so_far
            or record.at >= blocks_so_far[-1].end
            or record.at - blocks_so_far[-1].sum.last >= BLOCK_MS
        ):
            start = record.at - record.at % HOUR
            blocks_so_far.append(Block(start, Sum(datetime.fromtimestamp(start / 1000, UTC).isoformat())))
        blocks_so_far[-1].sum.add(record, table)
    return blocks_so_far
