"""All scenarios over their runs: pass rate, flaky, and a time that only runs which passed are compared by."""

import pytest

from tests.features.uat.kit import CLICK, FILL, NAVIGATE, SHOT, SNAPSHOT, URL, Lab
from tests.features.uat.policy.test_derive import PAGE


def play(lab: Lab, ms: int, calls: int = 5) -> None:
    """A run of so many calls, in `ms` altogether."""
    session = f"s{lab.now}"
    lab.hook("UserPromptSubmit", at=lab.now + 60_000, session=session, prompt="Please test the login flow scenario")
    for tool in (NAVIGATE, FILL, CLICK, SNAPSHOT, SHOT)[:calls]:
        lab.tool(tool, PAGE, took=ms // calls, session=session, url=URL)
    lab.hook("SessionEnd", session=session, reason="other")


@pytest.mark.parametrize(
    ("runs", "change"),
    [
        ([(5000, 5)] * 3 + [(100, 1)] * 5, ""),
        ([(5000, 5)] * 2 + [(100, 1)] * 2 + [(10_000, 5)] * 2, "slower"),
        ([(10_000, 5)] * 2 + [(5000, 5)] * 2, "faster"),
    ],
)
def test_runs_that_broke_off_make_a_scenario_neither_faster_nor_slower(
    lab: Lab, runs: list[tuple[int, int]], change: str
) -> None:
    lab.scenario()
    for ms, calls in runs:
        play(lab, ms, calls)
    whole = [ms for ms, calls in runs if calls == 5]
    suite = lab.view("suite")
    (row,) = suite["scenarios"]
    assert (row["runs"], row["passed"], row["change"]) == (len(runs), len(whole), change)
    assert row["median_ms"] in whole
    assert row["slowest_ms"] == max(whole)
    assert [point["outcome"] for point in row["trend"]] == ["passed" if c == 5 else "incomplete" for _, c in runs]
    assert f"<b>{len(runs)}</b><span>runs" in lab.view("suite", format="html")["html"]


def test_of_a_scenario_that_never_passed_the_time_is_that_of_its_runs(lab: Lab) -> None:
    lab.scenario()
    play(lab, 200, 1)
    (row,) = lab.view("suite")["scenarios"]
    assert (row["passed"], row["median_ms"], row["latest"]) == (0, 200, "incomplete")


def test_a_suite_leads_to_the_reports_that_are_there(lab: Lab) -> None:
    lab.scenario()
    play(lab, 1000)
    play(lab, 1000)
    lab.work()
    reports = lab.project / "uat" / "reports"
    first, second = (point["run"] for point in lab.view("suite")["scenarios"][0]["trend"])
    beside = (reports / "suite.html").read_text()
    assert f'href="{second}.html"' in beside
    (reports / f"{first}.html").unlink()
    elsewhere = lab.view("suite", format="html", folder=str(lab.project / "out"))["html"]
    assert f'href="../uat/reports/{second}.html"' in elsewhere
    assert f"{first}.html" not in elsewhere
