"""Spending for budgets, added up per answer."""

# Tokens are stored; money is computed when asked.

from pathlib import Path

import msgspec

from holdfast.analysis.usage.events import usage_record
from holdfast.analysis.usage.model import NOTHING, Usage, UsageRecord
from holdfast.analysis.usage.prices import (
    OWN_PRICES,
    BadPrices,
    PriceTable,
    UnknownCost,
    cost_of,
    limit_below,
    load_table,
    prompt_of,
)
from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import PromptSubmitted
from holdfast.core.times import DAY
from holdfast.features.gates.state.branches import Document, replace
from holdfast.paths import default_config_dir

# Cells (a model at a rate) of one document; the oldest go first.
MOST_MODELS = 60
WHOLE_SECONDS = 1_000
"""Some agents record times in whole seconds."""


class SpentCell(Document, frozen=True):
    """Calls of one model at one rate."""

    model: str = ""
    longer_than: int = 0
    usage: Usage = NOTHING
    reported: int | None = None
    """Micro-dollars that the agent itself reports."""
    at: int = 0

    def cost(self, table: PriceTable) -> int | None:
        """Micro-dollars; None where neither we nor the agent know a price."""
        computed = cost_of(
            # Prices may rise above a length of the prompt; one token more selects that rate.
            table,
            self.usage,
            self.model,
            self.at,
            prompt=self.longer_than + 1 if self.longer_than else 0,
        )
        return self.reported if isinstance(computed, UnknownCost) else computed


Cells = list[SpentCell]


class Spending(Document, frozen=True):
    """Of one session, or of one project. Days are those of UTC."""

    whole: Cells = []
    turn: Cells = []
    turn_at: int = 0
    """When the prompt came that opened the turn."""
    day: int = 0
    today: Cells = []
    at: int = 0

    def part(self, per: str, now: int) -> Cells:
        if per == "day":
            return self.today if self.day == now // DAY else []
        return self.turn if per == "turn" else self.whole


def reduce_spending(doc: Spending | None, event: Event) -> Spending | None:
    if isinstance(event.data, PromptSubmitted):
        # What an agent's own program typed begins no new turn.
        return None if event.data.synthetic else replace(doc or Spending(), turn=[], turn_at=event.at, at=event.at)
    record = usage_record(event)
    if record is None or record.spent.is_empty:
        return None
    doc, day, new = doc or Spending(), event.at // DAY, cell_of(record)
    # An event of an earlier day that arrives late is not counted for today.
    today = add_cell(doc.today if doc.day == day else [], new) if day >= doc.day else doc.today
    # Answers from before the prompt belong to an earlier turn, though they are read now.
    turn = add_cell(doc.turn, new) if event.at >= doc.turn_at - WHOLE_SECONDS else doc.turn
    return replace(doc, whole=add_cell(doc.whole, new), turn=turn, day=max(day, doc.day), today=today, at=event.at)


def cell_of(record: UsageRecord) -> SpentCell:
    # The sum of several calls says nothing of the length of one prompt.
    longer_than = 0 if record.summed else limit_below(prompt_of(record.said))
    return SpentCell(
        model=record.model, longer_than=longer_than, usage=record.spent, reported=record.reported, at=record.at
    )


def add_cell(cells: Cells, new: SpentCell) -> Cells:
    for at, cell in enumerate(cells):
        if (cell.model, cell.longer_than) == (new.model, new.longer_than):
            return [*cells[:at], _add_cells(cell, new), *cells[at + 1 :]]
    return [*cells, new][-MOST_MODELS:]


def _add_cells(cell: SpentCell, new: SpentCell) -> SpentCell:
    reported_parts = [part for part in (cell.reported, new.reported) if part is not None]
    return SpentCell(
        model=cell.model, longer_than=cell.longer_than, usage=cell.usage.plus(new.usage),
        reported=sum(reported_parts) if reported_parts else None, at=new.at,
    )  # fmt: skip


def tokens_of(cells: Cells) -> int:
    return sum(cell.usage.total or 0 for cell in cells)


class Money(msgspec.Struct, frozen=True):
    micros: int
    unknown: tuple[str, ...] = ()
    """Models without a price: what they cost comes on top, and is not known."""


def money_of(cells: Cells, table: PriceTable) -> Money:
    costs = [(cell.model, cell.cost(table)) for cell in cells]
    unknown = dict.fromkeys(model or "a model without a name" for model, cost in costs if cost is None)
    return Money(sum(cost for _, cost in costs if cost is not None), tuple(unknown))


class _Prices:
    """The price list in memory, read again when the person's own file changes."""

    def __init__(self) -> None:
        self._key: tuple[str, int] = ("", -1)
        self._table: PriceTable | None = None

    def table(self) -> PriceTable:
        own = default_config_dir() / OWN_PRICES
        # A file that is there and one that is not have different keys, so a removal is noticed, too.
        key = (str(own), own.stat().st_mtime_ns if own.exists() else 0)
        if self._table is None or key != self._key:
            self._key, self._table = key, _load_prices(own)
        return self._table


def _load_prices(own: Path) -> PriceTable:
    try:
        return load_table(own)
    except BadPrices:
        return load_table()  # `holdfast prices` reports prices that cannot be read.


price_table = _Prices().table
