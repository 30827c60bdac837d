"""All scenarios of a project over their runs: how often they pass, which are flaky, slow, or getting worse."""

import os.path
from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import quote

import msgspec

from holdfast.core.feature import Call
from holdfast.core.ports import Reader
from holdfast.features.uat import files
from holdfast.features.uat.report.html import render_page
from holdfast.features.uat.settings import COMPLETED, PASSED, SKIPPED
from holdfast.features.uat.state import NO_PLAN, PLANS, RUNS, Run
from holdfast.features.uat.state.steps import duration_ms

MOST_RUNS = 1_000
MOST_IN_TREND = 20
MOST_SLOW = 8


class TrendPoint(msgspec.Struct):
    run: str
    outcome: str
    ms: int
    at: int
    report: str
    """The run's HTML report, where it is on disk."""


class ScenarioRow(msgspec.Struct, kw_only=True):
    scenario: str
    tags: list[str]
    runs: int
    passed: int
    flaky: int
    median_ms: int
    slowest_ms: int
    latest: str
    latest_at: int
    change: str
    """slower or faster, by the later half of the trend's passed runs against the earlier."""
    trend: list[TrendPoint]

    @property
    def rate(self) -> int:
        return round(100 * self.passed / self.runs)


class SlowStep(msgspec.Struct):
    scenario: str
    step: int
    title: str
    ms: int
    run: str


class Suite(msgspec.Struct, kw_only=True):
    project: str
    scenarios: list[ScenarioRow]
    slowest: list[SlowStep]
    runs: int
    passed: int
    flaky: int
    made: int


def build_suite(reader: Reader, project: str, now: int, tag: str = "") -> Suite:
    ended_runs = [doc for _, doc in RUNS.list(reader, project=project, limit=MOST_RUNS) if doc.end is not None]
    runs: defaultdict[str, list[Run]] = defaultdict(list)
    for doc in sorted(ended_runs, key=lambda doc: doc.start):
        runs[doc.scenario].append(doc)
    rows = [_scenario_row(reader, name, listed) for name, listed in runs.items()]
    rows = [row for row in rows if not tag or tag in row.tags]
    scenarios = {row.scenario for row in rows}
    counted = [doc for doc in ended_runs if doc.scenario in scenarios]
    return Suite(
        project=project,
        # What fails most comes first: that is what the page is opened for.
        scenarios=sorted(rows, key=lambda row: (row.latest == PASSED, row.rate, row.scenario)),
        slowest=_slowest_steps(reader, counted),
        runs=len(counted),
        passed=sum(doc.outcome == PASSED for doc in counted),
        flaky=sum(doc.flaky for doc in counted),
        made=now,
    )


def _scenario_row(reader: Reader, name: str, runs: list[Run]) -> ScenarioRow:
    # A run that broke off is quick and says nothing about the scenario's time; the same goes for `change`.
    took = sorted(_run_duration_ms(doc) for doc in _passed(runs) or runs)
    plan = PLANS.load(reader, runs[-1].id) or NO_PLAN
    trend = [
        TrendPoint(doc.id, _shown_outcome(doc), _run_duration_ms(doc), doc.start, _report_on_disk(doc))
        for doc in runs[-MOST_IN_TREND:]
    ]
    return ScenarioRow(
        scenario=name,
        tags=plan.tags,
        runs=len(runs),
        passed=len(_passed(runs)),
        flaky=sum(doc.flaky for doc in runs),
        # The upper one of two in the middle; exact enough for a page.
        median_ms=took[len(took) // 2],
        slowest_ms=took[-1],
        latest=runs[-1].outcome,
        latest_at=runs[-1].start,
        change=_describe_trend([_run_duration_ms(doc) for doc in _passed(runs[-MOST_IN_TREND:])]),
        trend=trend,
    )


def _passed(runs: list[Run]) -> list[Run]:
    return [doc for doc in runs if doc.outcome == PASSED]


def _shown_outcome(doc: Run) -> str:
    return "flaky" if doc.flaky and doc.outcome == PASSED else doc.outcome


def _report_on_disk(doc: Run) -> str:
    """Settings may ask for no HTML, and `uat clean` removes it: a link has to lead somewhere."""
    paths = files.places_of(doc)
    path = paths.report_file(doc.id) if paths else None
    return str(path) if path and path.is_file() else ""


def _run_duration_ms(doc: Run) -> int:
    return max(0, (doc.end or doc.touched) - doc.start)


def _describe_trend(times: list[int]) -> str:
    """Only said with enough runs, and a difference that is no noise."""
    half = len(times) // 2
    if half < 2:
        return ""
    before, after = sorted(times[:half])[half // 2], sorted(times[half:])[len(times[half:]) // 2]
    # Below a fifth of a second a third more or less is noise.
    if max(before, after) < 200:
        return ""
    return "slower" if after > 1.3 * before else "faster" if before > 1.3 * after else ""


def _slowest_steps(reader: Reader, runs: Iterable[Run]) -> list[SlowStep]:
    """The slowest passed step of each scenario's latest run."""
    latest = {doc.scenario: doc for doc in sorted(runs, key=lambda doc: doc.start)}
    slow_steps = []
    for doc in latest.values():
        plan = PLANS.load(reader, doc.id) or NO_PLAN
        for number, (step, planned) in enumerate(zip(doc.steps, plan.steps, strict=False), 1):
            ms = duration_ms(step)
            if ms is not None and step.status not in (SKIPPED,) and step.status == COMPLETED:
                title = planned.description or planned.action
                slow_steps.append(SlowStep(doc.scenario, number, title, ms, doc.id))
    return sorted(slow_steps, key=lambda one: -one.ms)[:MOST_SLOW]


def suite_view(call: Call) -> dict[str, object]:
    made = build_suite(call.reader, call.project, call.now, str(call.args.get("tag") or ""))
    if call.args.get("format") == "html":
        return {"html": render_suite(made, str(call.args.get("folder") or "")).decode("utf-8", "replace")}
    plain: dict[str, object] = msgspec.to_builtins(made)
    return plain


def render_suite(suite: Suite, folder: str) -> bytes:
    """`folder` is where the page will lie: its links are relative, so that it can be moved with the reports."""

    def link(path: str) -> str:
        return quote(os.path.relpath(path, folder) if folder else path)

    return render_page("suite.html", suite=suite, link=link)
