"""A team's cost: the server sums tokens, the asking machine prices them."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.analysis.usage.model import COUNTED, KINDS, Usage, UsageRecord
from holdfast.analysis.usage.prices import current_table
from holdfast.analysis.usage.report import sum_all_records


class CostRow(msgspec.Struct):
    """`usd` is None if the model has no price in the list."""

    week: str
    person: str
    project: str
    remote: str
    model: str
    tokens: int
    usd: float | None


def price_rows(rows: Iterable[Mapping[str, Any]]) -> list[CostRow]:
    sums: dict[tuple[str, str, str, str, str], dict[str, int]] = {}
    for row in rows:
        key = row["week"], row["person"], row["project"], row["remote"] or "", row["model"]
        sums.setdefault(key, {})[row["kind"]] = row["tokens"]
    return [_cost_row(key, kinds) for key, kinds in sums.items()]


def _cost_row(key: tuple[str, str, str, str, str], kinds: Mapping[str, int]) -> CostRow:
    week, person, project, remote, model = key
    # A week is priced as of its first day.
    at = int(datetime.fromisoformat(week).replace(tzinfo=UTC).timestamp() * 1000)
    return CostRow(week, person, project, remote, model, tokens_counted(kinds), price_tokens(model, kinds, at))


def tokens_counted(kinds: Mapping[str, int]) -> int:
    return sum(kinds.get(kind, 0) for kind in COUNTED)


def price_tokens(model: str, kinds: Mapping[str, int], at: int) -> float | None:
    """Dollars at the prices of that time; None if the model has no price."""
    usage = Usage(**{kind: kinds[kind] for kind in KINDS if kind in kinds})
    record = UsageRecord(agent="", id="", at=at, model=model, said=usage, spent=usage, summed=True)
    whole = sum_all_records([record], current_table())
    # The report counts in millionths of a dollar.
    return None if whole.unpriced else whole.cost / 1_000_000
