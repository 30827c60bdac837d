"""Two runs of a scenario side by side: slower steps, new errors, assertions and pictures that changed."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.features.uat import files
from holdfast.features.uat.record import Record

SLOWER = 1.2
"""A step is slower when it took this much longer, and at least a noticeable time."""
NOTICEABLE_MS = 100


def compared(before: Record, after: Record) -> dict[str, Any]:
    if before.doc.scenario != after.doc.scenario:
        names = f"{before.doc.scenario!r} and {after.doc.scenario!r}"
        raise CommandRefused(f"these are runs of two scenarios: {names}", fix="Compare runs of the same one.")
    return {
        "scenario": before.doc.scenario,
        "before": _head(before),
        "after": _head(after),
        "steps": steps(before, after),
        "errors": _new(before.errors(), after.errors()),
        "warnings": _new(before.warnings(), after.warnings()),
        "assertions": assertions(before, after),
        "screenshots": screenshots(before, after),
    }


def _head(record: Record) -> dict[str, Any]:
    doc, told = record.doc, files.performance(record)
    ms = None if doc.end is None else doc.end - doc.start
    head = {"id": doc.id, "start": doc.start, "outcome": doc.outcome or doc.status, "ms": ms}
    return {**head, "calls": told["toolCallCount"], "errors": told["errorCount"]}


def steps(before: Record, after: Record) -> list[dict[str, Any]]:
    old, new = files.scenario(before)["steps"], files.scenario(after)["steps"]
    return [_step(a, b) for a, b in zip(old, new, strict=False)]


def _step(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    a, b = old["duration"], new["duration"]
    known = a is not None and b is not None
    slower = known and b > a * SLOWER and b - a >= NOTICEABLE_MS
    faster = known and a > b * SLOWER and a - b >= NOTICEABLE_MS
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


def assertions(before: Record, after: Record) -> list[dict[str, Any]]:
    """Only those whose result is another one."""
    old = {a["description"]: a["result"] for a in files.assertions(before)}
    return [
        {"description": a["description"], "was": old.get(a["description"]), "now": a["result"]}
        for a in files.assertions(after)
        if old.get(a["description"]) != a["result"]
    ]


def _new(before: Iterable[dict[str, Any]], after: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    old, new = (list(dict.fromkeys(str(p["message"]) for p in side)) for side in (before, after))
    return {"new": [m for m in new if m not in old], "gone": [m for m in old if m not in new]}


def screenshots(before: Record, after: Record) -> list[dict[str, Any]]:
    """Pairs by step and order; a picture without a partner stands alone."""
    old, new = _by_step(before), _by_step(after)
    pairs = []
    for step in sorted({*old, *new}):
        for number in range(max(len(old[step]), len(new[step]))):
            a, b = (side[number] if number < len(side) else "" for side in (old[step], new[step]))
            pairs.append({"step": step, "number": number + 1, "before": a, "after": b})
    return pairs


def _by_step(record: Record) -> defaultdict[int, list[str]]:
    found: defaultdict[int, list[str]] = defaultdict(list)
    for shot in record.shots:
        found[shot.data.step].append(shot.data.path)
    return found
