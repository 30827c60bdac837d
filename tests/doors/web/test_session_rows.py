"""What is drawn is what was told: bars, turns side by side, the heat of a day, words for times and sizes."""

from datetime import date, timedelta

import pytest

from holdfast.doors.web import overview_shapes, pages, session_rows
from holdfast.doors.web.screens import session_pages

NOW = 1_760_000_000_000


def row(**given: object) -> dict:
    return {
        "kind": "tool.finished", "tool": "Bash", "text": "make", "lane": "", "lane_type": "", "verdict": "", "injected": 0,
        "turn_at": NOW, "turn_end": NOW + 10_000, "turn_first": 1, "at": NOW, "began": NOW, "ms": 0, "seq": 0, **given,
    }  # fmt: skip


def test_bars_share_one_axis_and_idle_time_is_cut():
    rows = [row(seq=1, began=NOW, ms=1000), row(seq=2, began=NOW + 3_600_000, ms=1000)]
    session_rows.place_bars(rows, fold_idle=True)
    first, second = (one["bar"] for one in rows)
    assert first.x == 0
    assert first.width == pytest.approx(second.width, abs=0.2)
    assert first.width == pytest.approx(300, abs=10)  # Both together take what the wait may not take.
    assert (second.waited, second.cut) == (3_599_000, True)
    session_rows.place_bars(rows, fold_idle=False)
    assert rows[0]["bar"].width == session_rows.LEAST_WIDTH
    assert not rows[1]["bar"].cut


def test_bars_stay_within_the_column_whatever_the_times_are():
    rows = [
        row(seq=n, began=NOW + began, ms=ms) for n, (began, ms) in enumerate(((0, 0), (0, 5), (-50, 99_000), (7, 0)))
    ]
    session_rows.place_bars(rows, fold_idle=True)
    assert all(one["bar"].x >= 0 and one["bar"].x + one["bar"].width <= 1000 for one in rows)
    alone = [row(seq=1)]
    session_rows.place_bars(alone, fold_idle=True)
    assert alone[0]["bar"] == (0, session_rows.LEAST_WIDTH, -1.0, 0, False)


def test_what_a_subagent_did_lies_under_it():
    rows = [
        row(seq=1, kind="prompt.submitted"), row(seq=2, lane="a", kind="subagent.started"),
        row(seq=3, lane="b"), row(seq=4, lane="a"), row(seq=5), row(seq=6, lane="b"), row(seq=7, lane="a"),
    ]  # fmt: skip
    tree = session_rows.build_tree(rows)
    assert [(one["kind"], one["seq"], one["depth"]) for one in tree] == [
        ("subagent.started", 2, 0), ("tool.finished", 4, 1), ("tool.finished", 7, 1),
        ("lane.continued", 3, 0), ("tool.finished", 3, 1), ("tool.finished", 6, 1), ("tool.finished", 5, 0),
    ]  # fmt: skip
    assert [one["children"] for one in tree if not one["depth"]] == [2, 2, 0]
    assert [one["seq"] for one in session_rows.list_flat(rows)] == [1, 2, 3, 4, 5, 6, 7]


def test_a_subagent_lies_under_the_call_that_started_it():
    rows = [
        row(seq=1, action="agent", tool="Agent", text="explorer: Find the retries", ms=9000),
        row(seq=2, action="agent", tool="Agent", text="explorer: Find the timeouts", ms=9000),
        row(seq=3, action="agent", tool="wait_agent", text="targets: l1"),
        row(seq=4, lane="l1", lane_type="explorer", kind="subagent.started"), row(seq=5, lane="l1"),
        row(seq=6, lane="l2", lane_type="explorer", kind="subagent.started"), row(seq=7, lane="l2"),
    ]  # fmt: skip
    tree = session_rows.build_tree(rows)
    assert [(one["seq"], one["depth"], one["children"]) for one in tree] == [
        (1, 0, 1), (5, 1, 0), (2, 0, 1), (7, 1, 0), (3, 0, 0),
    ]  # fmt: skip
    at_once = [
        row(seq=1, action="agent", tool="spawn_agent", text="worker: Build it", ok=False),
        row(seq=2, action="agent", tool="spawn_agent", text="worker: Build it", began=NOW + 5),
        row(seq=3, lane="l1", lane_type="worker", kind="subagent.started", at=NOW + 9, began=NOW + 9),
        row(seq=4, lane="l1", began=NOW + 10),
    ]  # fmt: skip
    assert [one["seq"] for one in session_rows.build_tree(at_once) if one["children"]] == [2]


def test_a_row_is_called_what_it_is():
    assert session_rows.row_label(row()) == "Bash"
    assert session_rows.row_style(row(ok=False)) == "failed"
    denied = row(kind="decision.made", verdict="deny", text="deny: not before tests")
    assert (session_rows.row_label(denied), session_rows.row_style(denied), session_rows.row_text(denied)) == (
        "Denied",
        "denied",
        "not before tests",
    )
    told = row(kind="decision.made", verdict="allow", text="allow: memory", injected=40)
    assert (session_rows.row_label(told), session_rows.row_style(told), session_rows.row_text(told)) == (
        "Injected context",
        "told",
        "40 tokens: memory",
    )
    assert session_rows.row_text(row(kind="decision.made", verdict="ask", text="ask: ")) == "ask"
    notice = row(kind="decision.made", verdict="none", text="Allowed to stop. Still open: plan")
    assert session_rows.row_label(notice) == "Notice"
    assert session_rows.row_text(notice) == "Allowed to stop. Still open: plan"
    assert session_rows.row_text(row(kind="subagent.started", text="", lane="l-1")) == "l-1"
    assert session_rows.row_label(row(kind="gates.paused")) == "Gates paused"


def test_a_lane_keeps_its_colour():
    assert session_rows.lane_class("") == ""
    assert session_rows.lane_class("a") == session_rows.lane_class("a")
    assert len({session_rows.lane_class(str(n)) for n in range(100)}) == session_rows.LANES
    assert session_rows.lane_class("\ud800")


def turn(n: int, at: int, end: int) -> dict:
    return {"n": n, "at": at, "end": end, "how": "stopped", "tools": 1, "failed": 0, "prompt": "p", "first": n}


def test_turns_lie_side_by_side_and_waiting_takes_no_room():
    told = {
        "turns": [turn(1, NOW, NOW + 1000), turn(2, NOW + 86_400_000, NOW + 86_403_000)],
        "lanes": [{"id": "l", "type": "t", "at": NOW + 500, "end": 0, "tools": 1}],
        "decisions": [{"seq": 5, "at": NOW + 40_000_000, "deny": True}],
        "to": NOW + 86_403_000,
    }  # fmt: skip
    seen = overview_shapes.overview_shapes(told)
    first, second = seen["turns"]
    assert first["x"] == 0
    assert first["x"] + first["width"] < second["x"]
    assert second["x"] + second["width"] == pytest.approx(1000, abs=0.1)
    assert second["width"] / first["width"] == pytest.approx(3, rel=0.05)
    assert seen["ticks"][0]["x"] == pytest.approx(first["x"] + first["width"], abs=0.2)  # between two turns
    assert seen["lanes"][0]["x"] == pytest.approx(first["width"] / 2, abs=0.2)


@pytest.mark.parametrize("count", [0, 1, 400])
def test_however_many_turns_there_are_they_fit(count: int):
    turns = [turn(n, NOW + n * 1000, 0 if n % 2 else NOW + n * 1000) for n in range(count)]
    seen = overview_shapes.overview_shapes({"turns": turns, "lanes": [], "decisions": [], "to": NOW})
    assert len(seen["turns"]) == count
    assert all(one["x"] >= 0 and one["x"] + one["width"] <= 1000.5 and one["width"] > 0 for one in seen["turns"])


def test_the_heat_of_a_day_is_its_place_among_the_busy_ones():
    first = date(2025, 11, 10)
    days = [{"day": str(first + timedelta(n)), "ms": ms} for n, ms in enumerate([0, 1, 2, 3, 1_000_000])]
    seen = session_pages.heat_map(days, "ms")
    assert [cell["level"] for cell in seen["cells"]] == [0, 1, 2, 3, 4]
    assert [(cell["x"], cell["y"]) for cell in seen["cells"]] == [(0, n) for n in range(5)]  # 10 November is a Monday
    assert session_pages.heat_map([{"day": "2026-01-01", "ms": 5}], "ms")["cells"][0]["level"] == 4
    assert session_pages.heat_map([{"day": "2026-01-01", "ms": 5}], "ms")["months"] == [{"x": 0, "name": "Jan"}]


def test_shares_are_of_the_largest():
    each = (("/a", "x", 30), ("/a", "y", 10), ("/b", "x", 20))
    rows = [{"project": project, "agent": agent, "ms": ms} for project, agent, ms in each]
    assert [(one["name"], one["ms"], one["share"]) for one in session_pages.sum_rows(rows, "project", "ms")] == [
        ("/a", 40, 100.0),
        ("/b", 20, 50.0),
    ]
    assert session_pages.sum_rows([], "project", "ms") == []


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0, "0 ms"), (999, "999 ms"), (4_200, "4.2 s"), (59_000, "59 s"), (185_000, "3 min 05 s"), (7_800_000, "2 h 10 min"),
     (200_000_000, "2 d 7 h"), (-5, "0 ms"), (None, "0 ms")],
)  # fmt: skip
def test_lengths_of_time(ms, said: str):
    assert pages.format_span(ms) == said


def test_times_counts_and_sizes():
    assert pages.ago_words(NOW - 125_000, NOW) == "2 min ago"
    assert pages.ago_words(NOW, NOW) == "now"
    assert pages.ago_words(NOW + 86_400_000, NOW).startswith("20")
    assert 'title="20' in pages.format_ago(NOW, NOW)
    assert pages.format_ago(0) == '<span class="none">–</span>'
    assert pages.format_exact_time(1 << 70).isdigit()
    assert [pages.format_count(n) for n in (0, 9_999, 12_345, 1_234_567, 999_999_999, 5e12)] == [
        "0", "9,999", "12.3 k", "1.2 M", "1000 M", "5000.0 G",
    ]  # fmt: skip
    assert [pages.format_size(n) for n in (0, 2048, 5 << 20, 3 << 30)] == ["0 B", "2.0 KB", "5.0 MB", "3.0 GB"]
    assert pages.build_link("/a b", q="x&y", empty="") == "/a%20b?q=x%26y"
    assert pages.quote_part("a/b?c") == "a%2Fb%3Fc"


def test_values_of_the_state_read_as_people_write_them():
    assert pages.format_fact(12000000) == "12,000,000"
    assert pages.format_fact("fixing_tests") == "fixing tests"
    assert pages.format_fact("0123456789abcdef0123456789abcdef01234567") == "0123456789ab"
    assert pages.format_fact("2026-11-15T23:15:33Z")[:5] == "2026-" and "T" not in pages.format_fact(
        "2026-11-15T23:15:33Z"
    )
    assert pages.format_fact("tests/test_vat.py::test_it") == "tests/test_vat.py::test_it"
