"""After a compaction: what was there before it and is not in the summary, put back within a budget. Pure."""

from collections.abc import Iterator

from holdfast.core import fence
from holdfast.core.ports import Doc
from holdfast.features.memory import handoff
from holdfast.features.memory.model import line
from holdfast.features.memory.terms import terms
from holdfast.handover.summary import Summary

STILL_THERE = 0.75
MOST_EACH = 12
COMMAND = "exact command"
ABOUT = "Before the compaction, and missing from its summary (data recorded by Holdfast):"


def put_back(doc: Doc, budget: int) -> str:
    snapshot = doc["snapshot"] or {name: doc[name] for name in ("prompt", "tasks", "todos", "gates", "commands", "own")}
    kept = set(terms(doc["summary"]))
    lines, left = [], budget - fence.tokens(ABOUT)
    for label, text, mark in _pieces(snapshot, handoff.summarise_turn(doc)):
        words = f"- {label}: {text}{mark}"
        there = text in doc["summary"] if label == COMMAND else _said(text, kept)
        if not there and fence.tokens(words) < left:
            lines.append(words)
            left -= fence.tokens(words) + 1
    return "\n".join([ABOUT, *lines]) if lines else ""


def _pieces(snapshot: Doc, summary: Summary) -> Iterator[tuple[str, str, str]]:
    """(label, text, the mark of a memory), the weightiest first."""
    for one in reversed(snapshot["own"][-MOST_EACH:]):
        yield one["type"], one["text"], f" [{one['id']}]"
    for task in [*snapshot["tasks"].values(), *snapshot["todos"]][:MOST_EACH]:
        yield "open task", task, ""
    open_gates = sorted(name for name, status in snapshot["gates"].items() if status == "open")
    if open_gates:
        yield "gates still open", ", ".join(open_gates), ""
    for label, texts in (("next step", summary.next), ("failed last", summary.failing), ("still open", summary.open)):
        yield from ((label, text, "") for text in texts)
    if snapshot["prompt"]:
        yield "asked last", line(snapshot["prompt"], 300), ""
    for command in list(reversed(snapshot["commands"]))[:MOST_EACH]:
        yield COMMAND, command, ""


def _said(text: str, kept: set[str]) -> bool:
    words = set(terms(text))
    return bool(words) and len(words & kept) >= STILL_THERE * len(words)
