"""Charts: a round axis, stacks that add up, the rest as one series; the state of a project in sentences."""

from datetime import date, timedelta

import pytest

from holdfast.doors.state_words import change_sentences, state_sentences
from holdfast.doors.web.charts import HEIGHT, MOST_SERIES, axis_top, stacked_bars


@pytest.mark.parametrize(("most", "top"), [(0, 1), (1, 1), (7, 10), (11, 20), (93, 100), (101, 200), (2300, 2500)])
def test_the_axis_ends_at_the_next_round_number(most: float, top: float) -> None:
    assert axis_top(most) == top


def test_parts_of_a_bar_add_up() -> None:
    chart = stacked_bars(["2026-01", "2026-02"], {"2026-01": {"x": 30, "y": 20}}, str)
    first, second = chart["bars"]
    assert sum(part["height"] for part in first["parts"]) == pytest.approx(HEIGHT)
    assert first["parts"][0]["y"] == pytest.approx(HEIGHT - first["parts"][0]["height"])
    assert second["parts"] == []
    assert first["text"] == "2026-01: 50 (x 30; y 20)"


def test_many_series_are_the_largest_and_the_rest() -> None:
    chart = stacked_bars(["2026-01"], {"2026-01": {f"m{n}": n + 1 for n in range(9)}}, str)
    assert len(chart["series"]) == MOST_SERIES
    assert chart["series"][-1]["name"] == "others"
    assert sum(part["height"] for part in chart["bars"][0]["parts"]) == pytest.approx(45 / 50 * HEIGHT, abs=0.1)


def test_labels_stand_under_their_bars_with_the_first_and_the_last() -> None:
    days = [f"{date(2026, 1, 1) + timedelta(n)}" for n in range(42)]
    labels = stacked_bars(days, {}, str)["labels"]
    assert (labels[0]["text"], labels[-1]["text"], len(labels)) == ("1 Jan", "11 Feb", 5)
    assert labels[0]["x"] == pytest.approx(100 / 84, abs=0.01)
    months = stacked_bars(["2025-12", *(f"2026-0{n}" for n in range(1, 6))], {}, str)["labels"]
    assert [one["text"] for one in months] == ["Dec", "Jan 2026", "Feb", "Mar", "Apr", "May"]


def test_a_budget_is_a_line_that_is_always_in_view() -> None:
    chart = stacked_bars(["2026-01"], {"2026-01": {"x": 30}}, str, 80)
    assert chart["limit"] == {"y": 20.0, "text": "80"}
    assert chart["ticks"][0] == "100.0"
    assert stacked_bars(["2026-01"], {}, str)["limit"] is None


def document(**tests: object) -> dict:
    git = {"branch": "main", "uncommitted_files": {"count": 1}, "commits_ahead": 2}
    tasks = {"P0_blockers": [], "P1_urgent": [{"description": "Fix the tax."}]}
    return {"CURRENT_STATE": {"git": git, "tests": tests}, "TASKS": tasks}


def test_the_state_is_four_sentences() -> None:
    assert state_sentences(document(status="failing", total=12, passed=11, failed=1), 1) == [
        "On branch main, 1 file is uncommitted (2 ahead of its remote).",
        "The tests fail: 11 passed, 1 failed.",
        "One task is open; first: Fix the tax.",
        "Nothing is going on in it now.",
    ]


def test_of_changes_only_what_a_person_reads_about() -> None:
    changes = [
        {"path": "CURRENT_STATE.git.branch", "before": "main", "after": "tax"},
        {"path": "CURRENT_STATE.git.uncommitted_files.count", "before": 0, "after": 3},
        {"path": "TASKS.P1_urgent.task_1", "before": {"description": "Fix it"}, "after": None},
    ]
    assert change_sentences(changes) == ["branch: main → tax", "Task done: Fix it"]
