"""Token use added up: bounded, whatever agents tell."""

import json

from holdfast.analysis.usage.events import usage_event
from holdfast.analysis.usage.model import Usage, UsageRecord
from holdfast.analysis.usage.prices import LONG_PROMPTS, SHIPPED, limit_below
from holdfast.analysis.usage.spending import MOST_CELLS, SessionDay
from holdfast.core.event import Event
from holdfast.features.cost.state import keys, reduce

NOON = 1_794_744_000_000


def answered(n: int = 0, at: int = NOON, **given: object) -> Event:
    spent = Usage(input=10)
    return usage_event(
        UsageRecord(agent="codex", id=f"m{n}", at=at, spent=spent, said=spent, session="s", **given)  # type: ignore[arg-type]
    )


def folded(events: list[Event]) -> SessionDay:
    doc = None
    for event in events:
        doc = reduce(doc, event, next(iter(keys(event))))
    assert doc
    return doc


def test_calls_of_one_quarter_of_an_hour_are_one_cell():
    doc = folded([answered(n, at=NOON + n * 60_000) for n in range(30)])
    assert [(cell.calls, cell.usage.input) for cell in doc.cells] == [(15, 150), (15, 150)]
    assert (doc.at, doc.cells[0].last) == (NOON + 29 * 60_000, NOON + 14 * 60_000)


def test_a_session_with_countless_models_stays_bounded_and_loses_no_token():
    doc = folded([answered(n, model=f"model-{n}") for n in range(MOST_CELLS + 500)])
    assert len(doc.cells) == MOST_CELLS + 1
    assert sum(cell.usage.input or 0 for cell in doc.cells) == 10 * (MOST_CELLS + 500)


def test_the_document_given_is_left_as_it_was():
    before = folded([answered(1)])
    reduce(before, answered(2), next(iter(keys(answered(2)))))
    assert before.cells[0].calls == 1


def test_an_answer_without_figures_is_nothing():
    event = Event(key="k", kind="model.answered", at=NOON, session="s")
    assert reduce(None, event, next(iter(keys(event)))) is None


def test_a_clock_beyond_the_calendar_is_no_time():
    doc = folded([answered(1, at=10**15 - 1)])
    assert doc.cells[0].first == 0


def test_every_limit_of_the_shipped_prices_is_kept_apart():
    shipped = json.loads(SHIPPED.read_bytes())["models"].values()
    limits = {price["long"]["over"] for prices in shipped for price in prices if "long" in price}
    assert limits <= set(LONG_PROMPTS)
    assert (limit_below(200_000), limit_below(200_001), limit_below(5)) == (128_000, 200_000, 0)
