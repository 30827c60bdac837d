"""Sums of token use and money by session, day, model and the other usual groups."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, tzinfo

import msgspec

from holdfast.usage.cost import UnknownCost, cost_of_record
from holdfast.usage.model import NOTHING, Usage, UsageRecord
from holdfast.usage.prices import PriceTable

UNKNOWN = ""
"""The group of records that do not tell what they are grouped by."""


class Sum(msgspec.Struct):
    """One group. `cost` leaves out what has no price: `unpriced` names those models."""

    group: str
    usage: Usage = NOTHING
    cost: int = 0
    reported: int | None = None
    """What the agents themselves say it cost, where they do."""
    unpriced: set[str] = msgspec.field(default_factory=set)
    models: set[str] = msgspec.field(default_factory=set)
    sessions: set[str] = msgspec.field(default_factory=set)
    calls: int = 0
    first: int = 0
    last: int = 0

    def add(self, record: UsageRecord, table: PriceTable) -> None:
        cost = cost_of_record(table, record)
        if isinstance(cost, UnknownCost):
            self.unpriced.add(cost.model)
        else:
            self.cost += cost
        if record.reported is not None:
            self.reported = (self.reported or 0) + record.reported
        self.usage = self.usage.plus(record.spent)
        self.models.add(record.model)
        self.sessions.add(record.session)
        self.calls += record.calls
        self.first = min(self.first or record.at, record.at)
        self.last = max(self.last, record.at, record.until)

    @property
    def priced(self) -> int | None:
        """Micro-dollars, or None when nothing of it has a price."""
        return None if self.unpriced and not self.cost else self.cost


GroupBy = Callable[[UsageRecord], str]


def by_day(zone: tzinfo | None = None) -> GroupBy:
    """The calendar day of a time zone; by default the machine's."""
    return lambda record: datetime.fromtimestamp(record.at / 1000, zone).date().isoformat() if record.at else UNKNOWN


def by_month(zone: tzinfo | None = None) -> GroupBy:
    day = by_day(zone)
    return lambda record: day(record)[:7]


def by_commit(commits: Mapping[str, list[tuple[int, str]]]) -> GroupBy:
    """Session → its commits as (time, id), oldest first: work belongs to the commit that came after it."""

    def group(record: UsageRecord) -> str:
        return next((id_ for at, id_ in commits.get(record.session, ()) if record.at <= at), UNKNOWN)

    return group


GROUPS: dict[str, GroupBy] = {
    "session": lambda record: record.session,
    "turn": lambda record: f"{record.session}/{record.turn}" if record.turn else UNKNOWN,
    "project": lambda record: record.project,
    "agent": lambda record: record.agent,
    "model": lambda record: record.model,
    "branch": lambda record: record.branch,
    "lane": lambda record: record.lane,
    "day": by_day(),
    "month": by_month(),
}


def sums(records: Iterable[UsageRecord], group: GroupBy, table: PriceTable) -> list[Sum]:
    """One for each group, in the order of their names; what is not told comes first."""
    found: dict[str, Sum] = {}
    for record in records:
        name = group(record)
        found.setdefault(name, Sum(name)).add(record, table)
    return [found[name] for name in sorted(found)]


def total(records: Iterable[UsageRecord], table: PriceTable) -> Sum:
    whole = Sum("total")
    for record in records:
        whole.add(record, table)
    return whole
