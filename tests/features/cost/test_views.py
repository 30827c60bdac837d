"""`cost.report`: the same figures as a sum over every call, by every grouping, from a few documents."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents import AGENTS
from holdfast.analysis.usage.events import usage_event
from holdfast.analysis.usage.model import Usage, UsageRecord
from holdfast.analysis.usage.prices import load_table
from holdfast.analysis.usage.report import GROUPS, sum_all_records, sum_as_dict, sum_by_group, usage_blocks
from holdfast.core.agent import use_agents
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.kinds.check_events import GitActed
from holdfast.core.ports import Store
from holdfast.core.replay import Rebuild
from holdfast.features.cost import FEATURE
from holdfast.features.cost.settings import CostSettings
from holdfast.stores.sqlite import SqliteStore
from tests.analysis.usage.generate import Generator
from tests.analysis.usage.kit import scan_usage
from tests.factories import an_engine

DAY = 86_400_000
NOON = 1_794_744_000_000  # 2026-11-15T12:00Z


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("HOLDFAST_CONFIG", str(tmp_path / "config"))
    store = SqliteStore(tmp_path / "state" / "holdfast.db")
    yield store
    store.close()


def record(store: Store, records: Iterable[UsageRecord]) -> list[UsageRecord]:
    given = list(records)
    engine = an_engine(store, FEATURE)
    for at in range(0, len(given), 200):
        engine.handle([usage_event(one) for one in given[at : at + 200]])
    return given


def report(store: Store, by: str = "day", **args: Any) -> dict[str, Any]:
    reader = store.reader()
    try:
        found: dict[str, Any] = FEATURE.views["report"](Call({"by": by, **args}, reader, CostSettings(), NOON))
        return found
    finally:
        reader.close()


def call(n: int = 0, **given: Any) -> UsageRecord:
    spent = given.pop("spent", Usage(input=1000, output=100))
    fields = {"agent": "codex", "id": f"m{n}", "at": NOON, "model": "gpt-6-sol", "session": "s-1", "project": "/p"}
    return UsageRecord(**{**fields, "spent": spent, "said": spent, **given})


def test_compactions_that_are_in_no_figure_are_named(store: Store) -> None:
    use_agents(AGENTS)
    record(store, [call(1)])
    engine = an_engine(store, FEATURE)
    for n, agent in enumerate(("claude-code", "claude-code", "codex")):
        engine.handle([Event(key=f"c{n}", kind="compact.ended", at=NOON + n, session="s-2", agent=agent, project="/p")])
    note = "Not included: the requests of 2 compactions, for which claude-code records no tokens."
    assert report(store)["notes"] == [note]
    assert report(store, agent="codex")["notes"] == [], "Codex counts them"
    assert report(store, session="s-1")["notes"] == report(store, project="/q")["notes"] == []
    assert report(store, since=NOON + DAY)["notes"] == []


def figures(group: dict[str, Any]) -> tuple[Any, ...]:
    return group["group"], group["tokens"], group["calls"], group["first"], group["last"], group["models"]


@pytest.mark.parametrize("by", ["block", "day", "month"])
def test_a_clock_at_the_end_of_the_calendar_breaks_no_report(store: Store, by: str):
    """Agents' clocks are wrong at times; 9999-12-31T23:59:59 is a time that can be written."""
    record(store, [call(1), call(2, at=253_402_300_799_000)])
    assert report(store, by)["total"]["tokens"]["input"] == 2000


def test_a_turn_and_a_commit_cost_what_was_spent_in_them(store: Store):
    """Work belongs to the commit after it, also where calls are told after the commit, or the commit on another day."""

    def committed(sha: str, at: int) -> Event:
        act = GitActed(verb="commit", commits=[sha])
        return Event(key=sha, kind=GitActed.KIND, at=at, session="s-1", project="/p", data=act)

    record(store, [call(1, turn_n=1)])
    engine = an_engine(store, FEATURE)
    engine.handle([committed("c1", NOON + 5), committed("c2", NOON + DAY)])
    record(
        store, [call(2, turn_n=1, at=NOON + 4), call(3, turn_n=2, at=NOON + 6), call(4, turn_n=2, at=NOON + DAY + 1)]
    )
    calls = {by: {one["group"]: one["calls"] for one in report(store, by)["groups"]} for by in ("turn", "commit")}
    assert calls == {"turn": {"s-1/1": 2, "s-1/2": 2}, "commit": {"c1": 2, "c2": 1, "": 1}}
    assert report(store, "commit")["groups"][0]["projects"] == ["/p"]


@pytest.mark.parametrize("by", ["day", "month", "session", "turn", "project", "agent", "model", "branch", "commit"])
def test_every_grouping_is_the_sum_over_every_call(store: Store, tmp_path: Path, by: str):
    Generator(tmp_path / "home").write(sessions=6, messages=20)
    records = record(store, scan_usage(tmp_path / "home", ["claude-code"]))
    told, table = report(store, by), load_table()
    wanted = {one.group: sum_as_dict(one) for one in sum_by_group(records, GROUPS[by], table)}
    assert {group["group"] for group in told["groups"]} == set(wanted)
    for group in told["groups"]:
        same = wanted[group["group"]]
        assert figures(group) == figures(same)
        # A call is rounded to a micro-dollar, a cell too: they differ by half a one for each call at most.
        assert abs(group["cost_micro_dollars"] - same["cost_micro_dollars"]) <= group["calls"]  # type: ignore[operator]
    assert told["total"]["tokens"] == sum_as_dict(sum_all_records(records, table))["tokens"]


def test_blocks_are_those_of_the_single_calls(store: Store):
    starts = [0, 10, 200, 299, 300, 301, 900, 1250, 1255, 3000]  # minutes
    records = record(store, (call(n, at=NOON + minutes * 60_000) for n, minutes in enumerate(starts)))
    told = report(store, "block")["groups"]
    wanted = usage_blocks(records, load_table())
    assert [(b["start"], b["calls"], b["last"]) for b in told] == [(b.start, b.sum.calls, b.sum.last) for b in wanted]


def test_unknown_models_are_named_and_unknown_figures_are_null(store: Store):
    record(store, [call(1, model="nobody-knows", spent=Usage(output=5)), call(2)])
    told = report(store, "model")
    unknown = next(group for group in told["groups"] if group["group"] == "nobody-knows")
    assert unknown["cost_micro_dollars"] is None
    assert unknown["tokens"]["input"] is None and unknown["tokens"]["output"] == 5
    assert told["unpriced"] == ["nobody-knows"]
    assert "nobody-knows" in told["notes"][0]


def test_a_long_prompt_has_its_own_price(store: Store):
    long = Usage(input=300_000, output=10)
    records = record(store, [call(n, model="gpt-5.5", spent=long) for n in range(3)] + [call(9, model="gpt-5.5")])
    assert report(store)["total"]["cost_micro_dollars"] == sum_all_records(records, load_table()).cost


def test_a_price_that_is_set_later_holds_for_what_was_spent_before(store: Store, tmp_path: Path):
    record(store, [call(1, model="mine", spent=Usage(input=1_000_000))])
    assert report(store)["total"]["cost_micro_dollars"] is None
    (tmp_path / "config").mkdir()
    price = b'{"models": {"mine": [{"from": "2026-01-01", "input": 2, "output": 3}]}}'
    (tmp_path / "config" / "prices.json").write_bytes(price)
    assert report(store)["total"]["cost_micro_dollars"] == 2_000_000


def test_filters(store: Store):
    record(
        store,
        [
            call(1, project="/a", branch="main", at=NOON - 40 * DAY),
            call(2, project="/b", branch="fix", agent="gemini", model="gemini-3-pro", session="t-2"),
        ],
    )
    assert report(store, project="/a")["total"]["calls"] == 1
    assert report(store, agent="gemini")["total"]["models"] == ["gemini-3-pro"]
    assert report(store, session="t-")["total"]["calls"] == 1
    assert report(store, model="GPT")["total"]["calls"] == 1
    assert report(store, branch="fix")["total"]["calls"] == 1
    assert report(store, since=NOON - DAY)["total"]["calls"] == 1
    assert report(store, until=NOON - DAY)["total"]["calls"] == 1
    assert report(store, project="/c")["groups"] == []
    with pytest.raises(CommandRefused, match="grouped by 'colour'"):
        report(store, "colour")


def test_many_sessions_are_read_page_by_page(store: Store):
    record(store, (call(n, session=f"s-{n}", at=NOON - n * 60_000) for n in range(1203)))
    assert report(store)["total"]["sessions"] == 1203
    assert len(report(store, "session")["groups"]) == 1203


def test_the_documents_are_what_the_log_says(store: Store):
    record(store, (call(n, at=NOON + n * 1_000_000) for n in range(50)))
    reader = store.reader()
    work = Rebuild([FEATURE], reader)
    work.read()
    assert work.differences() == []
    reader.close()
