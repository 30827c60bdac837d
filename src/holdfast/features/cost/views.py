"""The view `cost.report`: tokens and money by day, month, session, turn, project, agent, model, branch, commit or
block."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.analysis.usage.model import UsageRecord
from holdfast.analysis.usage.prices import PriceTable, current_table
from holdfast.analysis.usage.report import (
    GROUPS,
    Block,
    Sum,
    join_sums,
    price_notes,
    sum_as_dict,
    sum_by_group,
    usage_blocks,
)
from holdfast.analysis.usage.spending import SESSION_DAY, CostCell, SessionDay, next_commit
from holdfast.core.agent import leaves_out
from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.ports import Reader, StateQuery
from holdfast.core.times import DAY

GROUPINGS = ("day", "month", "session", "turn", "project", "agent", "model", "branch", "commit", "block")
PAGE = 500


class CostFilters(msgspec.Struct, kw_only=True):
    """Filters besides the grouping. `since` and `until` are in ms; `session` is a prefix."""

    project: str = ""
    agent: str = ""
    session: str = ""
    model: str = ""
    branch: str = ""
    since: int = 0
    until: int = 0

    def matches(self, session: str, cell: CostCell) -> bool:
        return (
            (not self.project or cell.project == self.project)
            and (not self.agent or cell.agent == self.agent)
            and (not self.session or session.startswith(self.session))
            and (not self.model or self.model.lower() in cell.model.lower())
            and (not self.branch or cell.branch == self.branch)
            and (not self.since or cell.first >= self.since)
            and (not self.until or cell.first < self.until)
        )

    def matches_day(self, day: SessionDay) -> bool:
        """For what has no model and no branch."""
        at = day.at
        return (
            not (self.model or self.branch)
            and (not self.project or day.project == self.project)
            and (not self.session or day.session.startswith(self.session))
            and (not self.since or at >= self.since)
            and (not self.until or at < self.until)
        )


def report_costs(call: Call) -> dict[str, Any]:
    """Figures as numbers; unknown ones are null. `unpriced` lists models without a price; with `stacks`, micro-dollars of
    each day or month by model."""
    by = str(call.args.get("by") or "day")
    if by not in GROUPINGS:
        raise CommandRefused(f"costs cannot be grouped by {by[:40]!r}", fix=f"Groups: {', '.join(GROUPINGS)}.")
    filters, compactions = _parse_filters(call.args), Counter[str]()
    records = list(read_records(call.reader, filters, compactions))
    prices = current_table()
    cells = _priced_cells(by, records, prices)
    whole = join_sums("total", (one for models in cells.values() for one in models.values()))
    return {
        "by": by,
        "groups": _cost_groups(by, records, prices, cells, call.now),
        "stacks": _stacks(cells) if call.args.get("stacks") else {},
        "total": sum_as_dict(whole),
        "budget": call.settings.budget,
        "unpriced": sorted(whole.unpriced),
        "notes": [*price_notes([whole]), *_compaction_notes(compactions, filters.agent)],
    }


def _compaction_notes(compactions: Mapping[str, int], of: str) -> list[str]:
    return [
        f"Not included: the requests of {count} compaction{'s' if count > 1 else ''}, for which {agent} records no tokens."
        for agent, count in sorted(compactions.items())
        if leaves_out(agent, "compaction") and (not of or agent == of)
    ]


def _parse_filters(args: Mapping[str, Any]) -> CostFilters:
    arguments = {name: args[name] for name in CostFilters.__struct_fields__ if args.get(name)}
    return msgspec.convert(arguments, CostFilters, strict=False)


def _priced_cells(by: str, records: list[UsageRecord], prices: PriceTable) -> dict[str, dict[str, Sum]]:
    """Each group by model. Every record is priced once."""
    group = GROUPS.get(by, GROUPS["day"])
    cells: dict[str, dict[str, Sum]] = {}
    for one in sum_by_group(records, lambda record: f"{group(record)}\0{record.model}", prices):
        name, _, model = one.group.partition("\0")
        cells.setdefault(name, {})[model] = one
    return cells


def _cost_groups(
    by: str, records: list[UsageRecord], prices: PriceTable, cells: dict[str, dict[str, Sum]], now: int
) -> list[dict[str, Any]]:
    """Days, months and blocks by time; others by cost, highest first."""
    if by == "block":
        return [_block_fields(one, now) for one in usage_blocks(records, prices)]
    groups = [join_sums(name, cells[name].values()) for name in sorted(cells)]
    if by not in ("day", "month"):
        groups.sort(key=lambda one: (-one.cost, -(one.usage.total or 0), one.group))
    if by not in ("session", "turn", "commit"):
        return [sum_as_dict(one) for one in groups]
    where: dict[str, set[tuple[str, str]]] = {}
    for record in records:
        where.setdefault(GROUPS[by](record), set()).add((record.agent, record.project))
    return [{**sum_as_dict(one), **_agents_and_projects(where[one.group])} for one in groups]


def _stacks(cells: dict[str, dict[str, Sum]]) -> dict[str, dict[str, int]]:
    return {
        name: stack
        for name, models in cells.items()
        if (stack := {m: one.cost for m, one in models.items() if one.cost})
    }


def _agents_and_projects(pairs: set[tuple[str, str]]) -> dict[str, list[str]]:
    return {"agents": sorted({agent for agent, _ in pairs}), "projects": sorted({project for _, project in pairs})}


def _block_fields(block: Block, now: int) -> dict[str, Any]:
    end = datetime.fromtimestamp(block.end / 1000, UTC).isoformat()
    return {**sum_as_dict(block.sum), "start": block.start, "end": block.end, "until": end, "open": block.is_open(now)}


def read_records(reader: Reader, filters: CostFilters, compactions: Counter[str]) -> Iterator[UsageRecord]:
    """Cells as records; counts the compactions of the days that match. Documents come newest first, so a question about
    last week doesn't read last year."""
    commits: dict[str, list[tuple[int, str]]] = {}
    for day in _session_days(reader, filters):
        # Newest first, so later commits are known by now.
        if filters.matches_day(day):
            compactions.update(day.compactions)
        later = commits[day.session] = [*day.commits, *commits.get(day.session, ())]
        for cell in day.cells:
            if filters.matches(day.session, cell):
                record = cell.as_record(day.session)
                yield record if record.commit else msgspec.structs.replace(record, commit=next_commit(later, cell.last))


def _session_days(reader: Reader, filters: CostFilters) -> Iterator[SessionDay]:
    before: tuple[int, str] | None = None
    while True:
        query = StateQuery(kind=SESSION_DAY.kind, prefix=filters.session, before=before, limit=PAGE)
        page = [(key, SESSION_DAY.decode(raw)) for key, raw in reader.documents(query)]
        yield from (day for _, day in page)
        # A day of slack: a document's `at` is its last call, its first may be a day earlier.
        if len(page) < PAGE or page[-1][1].at < filters.since - DAY:
            return
        before = page[-1][1].at, page[-1][0]
