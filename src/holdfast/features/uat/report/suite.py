"""All scenarios of a project over their runs: how often they pass, which are flaky, slow, or getting worse."""

import os.path
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from holdfast.core.feature import Call
from holdfast.core.ports import Reader
from holdfast.features.uat import files
from holdfast.features.uat.report.html import render_page
from holdfast.features.uat.settings import COMPLETED, PASSED
from holdfast.features.uat.state import NO_PLAN, PLANS, RUNS, Run
from holdfast.features.uat.state.steps import duration_ms

MOST_RUNS = 1_000
MOST_IN_TREND = 20
MOST_SLOW = 8
Fields = dict[str, Any]


def build_suite(reader: Reader, project: str, now: int, tag: str = "") -> Fields:
    by_scenario = _ended_runs(reader, project)
    rows = [_scenario_row(reader, runs) for runs in by_scenario.values()]
    rows = [row for row in rows if tag in ("", *row["tags"])]
    slowest = [step for row in rows for step in _timed_steps(reader, by_scenario[row["scenario"]][-1])]
    return {
        "project": project,
        # What fails most comes first: that is what the page is opened for.
        "scenarios": sorted(rows, key=lambda row: (row["latest"] == PASSED, row["rate"], row["scenario"])),
        "slowest": sorted(slowest, key=lambda step: -step["ms"])[:MOST_SLOW],
        "made": now,
        **{name: sum(row[name] for row in rows) for name in ("runs", "passed", "flaky")},
    }


def _ended_runs(reader: Reader, project: str) -> dict[str, list[Run]]:
    """By scenario, the oldest first."""
    runs = (doc for _, doc in RUNS.list(reader, project=project, limit=MOST_RUNS) if doc.end is not None)
    by_scenario: defaultdict[str, list[Run]] = defaultdict(list)
    for doc in sorted(runs, key=lambda doc: doc.start):
        by_scenario[doc.scenario].append(doc)
    return by_scenario


def _scenario_row(reader: Reader, runs: list[Run]) -> Fields:
    passed, latest, recent = _passed(runs), runs[-1], runs[-MOST_IN_TREND:]
    # A run that broke off is quick and says nothing about the scenario's time; the same goes for `change`.
    took = sorted(_run_duration_ms(doc) for doc in passed or runs)
    return {
        "scenario": latest.scenario,
        "tags": (PLANS.load(reader, latest.id) or NO_PLAN).tags,
        "runs": len(runs),
        "passed": len(passed),
        "rate": round(100 * len(passed) / len(runs)),
        "flaky": sum(doc.flaky for doc in runs),
        # The upper one of two in the middle; exact enough for a page.
        "median_ms": took[len(took) // 2],
        "slowest_ms": took[-1],
        "latest": latest.outcome,
        "latest_at": latest.start,
        "change": _describe_trend([_run_duration_ms(doc) for doc in _passed(recent)]),
        "trend": [_trend_point(doc) for doc in recent],
    }


def _trend_point(doc: Run) -> Fields:
    # Settings may ask for no HTML, and `uat clean` removes it: a link has to lead somewhere.
    paths = files.places_of(doc)
    path = paths.report_file(doc.id) if paths else None
    return {
        "run": doc.id,
        "outcome": "flaky" if doc.flaky and doc.outcome == PASSED else doc.outcome,
        "ms": _run_duration_ms(doc),
        "at": doc.start,
        "report": str(path) if path and path.is_file() else "",
    }


def _passed(runs: Iterable[Run]) -> list[Run]:
    return [doc for doc in runs if doc.outcome == PASSED]


def _run_duration_ms(doc: Run) -> int:
    return max(0, (doc.end or doc.touched) - doc.start)


def _describe_trend(times: list[int]) -> str:
    """The later half of the passed runs against the earlier. Only said with enough runs, and where it is no noise."""
    half = len(times) // 2
    if half < 2:
        return ""
    before, after = sorted(times[:half])[half // 2], sorted(times[half:])[len(times[half:]) // 2]
    # Below a fifth of a second a third more or less is noise.
    if max(before, after) < 200:
        return ""
    return "slower" if after > 1.3 * before else "faster" if before > 1.3 * after else ""


def _timed_steps(reader: Reader, doc: Run) -> Iterator[Fields]:
    plan = PLANS.load(reader, doc.id) or NO_PLAN
    for number, (step, planned) in enumerate(zip(doc.steps, plan.steps, strict=False), 1):
        ms = duration_ms(step)
        if ms is not None and step.status == COMPLETED:
            title = planned.description or planned.action
            yield {"scenario": doc.scenario, "step": number, "title": title, "ms": ms, "run": doc.id}


def suite_view(call: Call) -> Fields:
    made = build_suite(call.reader, call.project, call.now, str(call.args.get("tag") or ""))
    if call.args.get("format") == "html":
        return {"html": render_suite(made, str(call.args.get("folder") or "")).decode("utf-8", "replace")}
    return made


def render_suite(suite: Fields, folder: str) -> bytes:
    """`folder` is where the page will lie: its links are relative, so that it can be moved with the reports."""

    def link(path: str) -> str:
        return quote(os.path.relpath(path, folder) if folder else path)

    return render_page("suite.html", suite=suite, link=link)
