"""Compares two runs of a scenario."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.features.uat import files
from holdfast.features.uat.record import Record
from holdfast.features.uat.state import Run

SLOWER = 1.2
"""A step is slower when it took this much longer, and at least a noticeable time."""
NOTICEABLE_MS = 100


def compare_runs(before: Record, after: Record) -> dict[str, Any]:
    if before.doc.scenario != after.doc.scenario:
        names = f"{before.doc.scenario!r} and {after.doc.scenario!r}"
        raise CommandRefused(f"these are runs of two scenarios: {names}", fix="Compare runs of the same one.")
    old, new = (files.scenario_section(record)["steps"] for record in (before, after))
    return {
        "scenario": before.doc.scenario,
        "before": _run_head(before.doc),
        "after": _run_head(after.doc),
        "steps": [_compare_step(a, b) for a, b in zip(old, new, strict=False)],
        "errors": _compare_messages(before.errors(), after.errors()),
        "warnings": _compare_messages(before.warnings(), after.warnings()),
        "assertions": changed_assertions(before, after),
        "screenshots": pair_screenshots(before, after),
    }


def _run_head(doc: Run) -> dict[str, Any]:
    ms = None if doc.end is None else doc.end - doc.start
    same = {name: getattr(doc, name) for name in ("id", "start", "calls", "errors")}
    return {**same, "outcome": doc.outcome or doc.status, "ms": ms}


def _compare_step(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return {
        "step": new["stepNumber"],
        "action": new["action"],
        "description": new["description"],
        "before": old["duration"],
        "after": new["duration"],
        "was": old["status"],
        "now": new["status"],
        "change": _change_of_time(old["duration"], new["duration"]),
    }


def _change_of_time(before: int | None, after: int | None) -> str:
    if before is None or after is None or abs(after - before) < NOTICEABLE_MS:
        return ""
    return "slower" if after > before * SLOWER else "faster" if before > after * SLOWER else ""


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
    """Pairs by step and order; the path of a picture without a partner is empty."""
    pictures: defaultdict[int, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for side, record in enumerate((before, after)):
        for shot in record.shots:
            pictures[shot.data.step][side].append(shot.data.path)
    return [
        {"step": step, "number": number, "before": old, "after": new}
        for step, sides in sorted(pictures.items())
        for number, (old, new) in enumerate(zip_longest(*sides, fillvalue=""), 1)
    ]
