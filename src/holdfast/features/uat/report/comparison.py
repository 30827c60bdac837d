"""Compares two runs of a scenario."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.features.uat import files
from holdfast.features.uat.record import Record

SLOWER = 1.2
"""A step is slower when it took this much longer, and at least a noticeable time."""
NOTICEABLE_MS = 100


def compare_runs(before: Record, after: Record) -> dict[str, Any]:
    if before.doc.scenario != after.doc.scenario:
        names = f"{before.doc.scenario!r} and {after.doc.scenario!r}"
        raise CommandRefused(f"these are runs of two scenarios: {names}", fix="Compare runs of the same one.")
    return {
        "scenario": before.doc.scenario,
        "before": _run_head(before),
        "after": _run_head(after),
        "steps": compare_steps(before, after),
        "errors": _compare_messages(before.errors(), after.errors()),
        "warnings": _compare_messages(before.warnings(), after.warnings()),
        "assertions": changed_assertions(before, after),
        "screenshots": pair_screenshots(before, after),
    }


def _run_head(record: Record) -> dict[str, Any]:
    doc, performance = record.doc, files.performance_section(record)
    ms = None if doc.end is None else doc.end - doc.start
    head = {"id": doc.id, "start": doc.start, "outcome": doc.outcome or doc.status, "ms": ms}
    return {**head, "calls": performance["toolCallCount"], "errors": performance["errorCount"]}


def compare_steps(before: Record, after: Record) -> list[dict[str, Any]]:
    old, new = files.scenario_section(before)["steps"], files.scenario_section(after)["steps"]
    return [_compare_step(a, b) for a, b in zip(old, new, strict=False)]


def _compare_step(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    a, b = old["duration"], new["duration"]
    both_timed = a is not None and b is not None
    slower = both_timed and b > a * SLOWER and b - a >= NOTICEABLE_MS
    faster = both_timed and a > b * SLOWER and a - b >= NOTICEABLE_MS
    return {
        "step": new["stepNumber"],
        "action": new["action"],
        "description": new["description"],
        "before": a,
        "after": b,
        "was": old["status"],
        "now": new["status"],
        "change": "slower" if slower else "faster" if faster else "",
    }


def changed_assertions(before: Record, after: Record) -> list[dict[str, Any]]:
    """Only those whose result is another one."""
    old = {a["description"]: a["result"] for a in files.assertion_entries(before)}
    return [
        {"description": a["description"], "was": old.get(a["description"]), "now": a["result"]}
        for a in files.assertion_entries(after)
        if old.get(a["description"]) != a["result"]
    ]


def _compare_messages(before: Iterable[dict[str, Any]], after: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    # A message that came many times is one message.
    old, new = (list(dict.fromkeys(str(p["message"]) for p in side)) for side in (before, after))
    return {"new": [m for m in new if m not in old], "gone": [m for m in old if m not in new]}


def pair_screenshots(before: Record, after: Record) -> list[dict[str, Any]]:
    """Pairs by step and order; a picture without a partner stands alone."""
    old, new = _by_step(before), _by_step(after)
    pairs = []
    for step in sorted({*old, *new}):
        for number in range(max(len(old[step]), len(new[step]))):
            a, b = (side[number] if number < len(side) else "" for side in (old[step], new[step]))
            pairs.append({"step": step, "number": number + 1, "before": a, "after": b})
    return pairs


def _by_step(record: Record) -> defaultdict[int, list[str]]:
    pictures: defaultdict[int, list[str]] = defaultdict(list)
    for shot in record.shots:
        pictures[shot.data.step].append(shot.data.path)
    return pictures
