"""Token use added up as it comes: one bounded document for each session and day, so that no question reads the log.

Tokens are kept, not money: a price that is set or corrected later holds for what was spent before it.
"""

from collections.abc import Iterable, Mapping

import msgspec

from holdfast.core.document import DocumentType
from holdfast.core.event import Event
from holdfast.core.ports import Ref
from holdfast.core.times import DAY, MINUTE
from holdfast.usage.cost import limit_below, prompt_of
from holdfast.usage.events import usage_record
from holdfast.usage.model import NOTHING, Usage, UsageRecord

SLOT = 15 * MINUTE
"""Every time zone's day and every block begins with a full one of these."""
MOST_CELLS = 1_000
OTHER_MODELS = "(other models)"
LATEST = 253_402_300_799_000
"""The end of the calendar. An agent whose clock is beyond it told no time."""


class CostCell(msgspec.Struct, omit_defaults=True):
    """Calls of one model in one quarter of an hour, in one place, at one rate."""

    slot: int
    model: str = ""
    agent: str = ""
    project: str = ""
    branch: str = ""
    longer_than: int = 0
    usage: Usage = NOTHING
    reported: int | None = None
    calls: int = 0
    first: int = 0
    last: int = 0

    def same_group(self, other: "CostCell") -> bool:
        return (self.slot, self.model, self.agent, self.project, self.branch, self.longer_than) == (
            other.slot, other.model, other.agent, other.project, other.branch, other.longer_than,
        )  # fmt: skip

    def plus(self, other: "CostCell") -> "CostCell":
        told = [part for part in (self.reported, other.reported) if part is not None]
        return msgspec.structs.replace(
            self, usage=self.usage.plus(other.usage), reported=sum(told) if told else None, calls=self.calls + other.calls,
            first=min(self.first, other.first), last=max(self.last, other.last),
        )  # fmt: skip

    def as_record(self, session: str) -> UsageRecord:
        """For sums and prices: they see the length of a prompt only by the limit it went over."""
        said = Usage(input=self.longer_than + 1) if self.longer_than else NOTHING
        return UsageRecord(
            agent=self.agent, id="", at=self.first, until=self.last, calls=self.calls, spent=self.usage, said=said,
            model=self.model, session=session, project=self.project, branch=self.branch, reported=self.reported,
        )  # fmt: skip


class SessionDay(msgspec.Struct, omit_defaults=True):
    """What one session spent on one day (UTC). `at` is its last call."""

    session: str
    project: str = ""
    at: int = 0
    cells: list[CostCell] = []


SESSION_DAY = DocumentType("cost", SessionDay)


def keys(event: Event) -> Iterable[Ref]:
    return [SESSION_DAY.ref(f"{event.session}/{_time(event) // DAY}")]


def stream(ref: Ref) -> Mapping[str, str]:
    session = ref.key.rpartition("/")[0]
    return {"session": session} if session else {}


def reduce(doc: SessionDay | None, event: Event, _ref: Ref) -> SessionDay | None:
    record = usage_record(event)
    if record is None or record.spent.is_empty:
        return doc
    at = _time(event)
    doc = doc or SessionDay(event.session)
    cells = add_cell(doc.cells, cell_of(record, at))
    return SessionDay(doc.session, event.project or doc.project, max(doc.at, at), cells)


def cell_of(record: UsageRecord, at: int) -> CostCell:
    return CostCell(
        slot=at - at % SLOT, model=record.model, agent=record.agent, project=record.project, branch=record.branch,
        longer_than=0 if record.summed else limit_below(prompt_of(record.said)), usage=record.spent,
        reported=record.reported, calls=1, first=at, last=at,
    )  # fmt: skip


def add_cell(cells: list[CostCell], new: CostCell) -> list[CostCell]:
    """A new list. A session with more models and places in a day than are kept apart loses only where and when."""
    found = _find(cells, new)
    if found is None:
        full = len(cells) >= MOST_CELLS
        return [*cells, msgspec.structs.replace(new, model=OTHER_MODELS) if full else new]
    return [*cells[:found], cells[found].plus(new), *cells[found + 1 :]]


def _find(cells: list[CostCell], new: CostCell) -> int | None:
    """The cell it belongs to, sought from the latest on. None: it needs one of its own."""
    same = next((n for n in range(len(cells) - 1, -1, -1) if cells[n].same_group(new)), None)
    if same is not None or len(cells) < MOST_CELLS:
        return same
    return next((n for n, cell in enumerate(cells) if cell.model in (new.model, OTHER_MODELS)), None)


def _time(event: Event) -> int:
    return event.at if 0 <= event.at <= LATEST else 0
