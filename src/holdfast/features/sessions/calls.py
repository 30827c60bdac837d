"""What runs now and what the user is asked, each in its lane."""

from collections.abc import Iterable
from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.sessions.model import ACTIVE, MOST_ASKS, MOST_RUNNING, REMEMBERED_CALLS, about


def begun(doc: Doc, event: Event, call: str) -> None:
    entry = {"tool": event.tool, "about": about(event), "at": event.at, "lane": event.get("lane", "")}
    doc["running"] = _capped({**doc["running"], call: entry}, MOST_RUNNING)


def ended(doc: Doc, event: Event) -> None:
    """A call that ended is remembered for a while: its start may come later, and its end again."""
    call = event.get("call", "")
    through(doc, [call] if call else _nameless(doc, event))
    if call:
        doc["done"] = [*doc["done"], call][-REMEMBERED_CALLS:]
    answered(doc, event)


def _nameless(doc: Doc, event: Event) -> list[str]:
    """Agents without call ids: the oldest running call of the same tool in the same lane."""
    lane = event.get("lane", "")
    return next(([c] for c, r in doc["running"].items() if r["tool"] == event.tool and r["lane"] == lane), [])


def ask(doc: Doc, event: Event, what: str) -> None:
    if doc["status"] == ACTIVE:
        ask = {
            "what": what, "tool": event.tool, "about": about(event), "lane": event.get("lane", ""), "at": event.at,
            "shell": what == "permission" and event.get("action") == "shell",
        }  # fmt: skip
        doc["asks"] = [*(a for a in doc["asks"] if not _same(a, event)), ask][-MOST_ASKS:]


def answered(doc: Doc, event: Event) -> None:
    """A notification names no tool, so any end in its lane answers it."""
    if not doc["asks"]:
        return
    lane = event.get("lane", "")
    doc["asks"] = [a for a in doc["asks"] if not _same(a, event) and (a["tool"] or a["lane"] != lane)]


def _same(ask: Doc, event: Event) -> bool:
    return (ask["tool"], ask["about"], ask["lane"]) == (event.tool, about(event), event.get("lane", ""))


def through(doc: Doc, calls: Iterable[str]) -> None:
    gone = set(calls)
    if gone & doc["running"].keys():
        doc["running"] = {call: entry for call, entry in doc["running"].items() if call not in gone}


def nothing_runs(doc: Doc, lane: str | None = None) -> None:
    """In the given lane, or at all."""
    if doc["running"]:
        doc["running"] = {c: r for c, r in doc["running"].items() if lane is not None and r["lane"] != lane}
    if doc["asks"]:
        doc["asks"] = [a for a in doc["asks"] if lane is not None and a["lane"] != lane]


def _capped(entries: dict[str, Any], most: int) -> dict[str, Any]:
    return entries if len(entries) <= most else dict(list(entries.items())[-most:])
