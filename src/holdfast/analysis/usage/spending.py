"""The stored form of token use: one bounded document per session and day, from which all figures of tokens and money come."""

# Tokens are stored, not money, so a corrected price applies to earlier use.

import bisect
from collections.abc import Mapping

import msgspec

from holdfast.analysis.usage.model import NOTHING, Usage, UsageRecord
from holdfast.analysis.usage.prices import PriceTable, limit_below, prompt_of
from holdfast.analysis.usage.report import Sum, sum_all_records
from holdfast.core.document import DocumentType
from holdfast.core.ports import Reader
from holdfast.core.times import MINUTE

SLOT = 15 * MINUTE
"""Every time zone's day and every block starts at a multiple of this."""
MOST_CELLS = 1_000
OTHER_MODELS = "(other models)"
LATEST = 253_402_300_799_000 - 48 * 60 * MINUTE
"""Two days before the end of the calendar: zones and blocks reach beyond a time. An agent's later time counts as
unknown."""


class CostCell(msgspec.Struct, omit_defaults=True):
    """Calls of one model in one quarter of an hour, in one turn, in one place, at one rate."""

    slot: int
    model: str = ""
    agent: str = ""
    project: str = ""
    branch: str = ""
    turn: int = 0
    """Our number of the turn; 0 if unknown."""
    commit: str = ""
    """The session's next commit, if it was made before the call was reported."""
    longer_than: int = 0
    usage: Usage = NOTHING
    reported: int | None = None
    calls: int = 0
    first: int = 0
    last: int = 0

    def group(self) -> tuple[object, ...]:
        # Calls with and without a reported price are kept apart, to compare them later.
        return (
            self.slot, self.turn, self.model, self.longer_than, self.commit, self.reported is None, self.agent,
            self.project, self.branch,
        )  # fmt: skip

    def plus(self, other: "CostCell") -> "CostCell":
        reported = [part for part in (self.reported, other.reported) if part is not None]
        return msgspec.structs.replace(
            self, usage=self.usage.plus(other.usage), reported=sum(reported) if reported else None, calls=self.calls + other.calls,
            first=min(self.first, other.first), last=max(self.last, other.last),
        )  # fmt: skip

    def as_record(self, session: str) -> UsageRecord:
        """For sums and prices, which know a prompt's length only by the limit it exceeded."""
        # One token over the limit gives the same price as the real prompt.
        prompt_usage = Usage(input=self.longer_than + 1) if self.longer_than else NOTHING
        return UsageRecord(
            agent=self.agent, id="", at=self.first, until=self.last, calls=self.calls, spent=self.usage, said=prompt_usage,
            model=self.model, session=session, project=self.project, branch=self.branch, turn_n=self.turn,
            commit=self.commit, reported=self.reported,
        )  # fmt: skip


class SessionDay(msgspec.Struct, omit_defaults=True):
    """What one session spent on one day (UTC), and its commits. `at` is its last call or commit."""

    session: str
    project: str = ""
    at: int = 0
    cells: list[CostCell] = []
    commits: list[tuple[int, str]] = []
    """(time, id), oldest first."""
    compactions: dict[str, int] = {}
    """By agent."""


SESSION_DAY = DocumentType("cost", SessionDay)


def cell_of(record: UsageRecord, at: int, commit: str) -> CostCell:
    # `longer_than`: a sum over many calls says nothing of one prompt's length.
    return CostCell(
        slot=at - at % SLOT, model=record.model, agent=record.agent, project=record.project, branch=record.branch,
        turn=record.turn_n, commit=commit,
        longer_than=0 if record.summed else limit_below(prompt_of(record.said)), usage=record.spent,
        reported=record.reported, calls=1, first=at, last=at,
    )  # fmt: skip


def add_cell(cells: list[CostCell], new: CostCell) -> list[CostCell]:
    """Return a new list. Beyond the limit of models and places per day, only where and when are lost."""
    position = _find_cell(cells, new)
    if position is None:
        full = len(cells) >= MOST_CELLS
        # A full day folds new entries into one cell for other models.
        return [*cells, msgspec.structs.replace(new, model=OTHER_MODELS) if full else new]
    return [*cells[:position], cells[position].plus(new), *cells[position + 1 :]]


def _find_cell(cells: list[CostCell], new: CostCell) -> int | None:
    """The cell it belongs to, searched from the latest. None: it needs its own."""
    group = new.group()
    same = next(
        (n for n in range(len(cells) - 1, -1, -1) if cells[n].slot == new.slot and cells[n].group() == group), None
    )
    if same is not None or len(cells) < MOST_CELLS:
        return same
    return next((n for n, cell in enumerate(cells) if cell.model in (new.model, OTHER_MODELS)), None)


# ── what one session spent ────────────────────────────────────────────────────────────────────────────────────────────


class Spending(msgspec.Struct, frozen=True):
    """What a session spent in total and per turn. None: its agent reported nothing."""

    whole: Sum | None = None
    by_turn: Mapping[int, Sum] = {}


MOST_DAYS = 1_000


def next_commit(commits: list[tuple[int, str]], at: int) -> str:
    """Work belongs to the commit after it; empty if there is none yet."""
    # (time, "") sorts before every commit of that moment, so that one counts as next.
    position = bisect.bisect_left(commits, (at, ""))
    return commits[position][1] if position < len(commits) else ""


def session_records(reader: Reader, session: str) -> list[UsageRecord]:
    days = SESSION_DAY.list(reader, prefix=f"{session}/", limit=MOST_DAYS)
    return [cell.as_record(session) for _, day in days for cell in day.cells]


def session_spending(reader: Reader, session: str, prices: PriceTable) -> Spending:
    records = session_records(reader, session)
    if not records:
        return Spending()
    by_turn: dict[int, Sum] = {}
    for record in records:
        by_turn.setdefault(record.turn_n, Sum(str(record.turn_n))).add(record, prices)
    return Spending(sum_all_records(records, prices), by_turn)
