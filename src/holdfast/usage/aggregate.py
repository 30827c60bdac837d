"""Sums of token use and money by session, day, model and the other usual groups."""

from collections.abc import Callable, Iterable
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
    compared: int = 0
    """Our figure for just those calls that an agent reports money for."""
    unpriced: set[str] = msgspec.field(default_factory=set)
    models: set[str] = msgspec.field(default_factory=set)
    sessions: set[str] = msgspec.field(default_factory=set)
    calls: int = 0
    first: int = 0
    last: int = 0

    def add(self, record: UsageRecord, table: PriceTable) -> None:
        cost = cost_of_record(table, record)
        known = 0 if isinstance(cost, UnknownCost) else cost
        if isinstance(cost, UnknownCost):
            self.unpriced.add(cost.model)
        self.cost += known
        if record.reported is not None:
            self.reported, self.compared = (self.reported or 0) + record.reported, self.compared + known
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

    @property
    def differs(self) -> bool:
        """Whether the agents' own figure is another one than ours, by more than half a percent."""
        return self.reported is not None and abs(self.reported - self.compared) > max(self.compared // 200, 1)


GroupBy = Callable[[UsageRecord], str]


def by_day(zone: tzinfo | None = None) -> GroupBy:
    """The calendar day of a time zone; by default the machine's."""
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
