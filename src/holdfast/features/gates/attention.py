"""What a person should see: rules that wait for a word, ways round a requirement, attempts at what only a person may do."""

from collections.abc import Callable
from typing import Any

from holdfast.core.event import Event
from holdfast.core.ids import alias
from holdfast.core.ports import Doc
from holdfast.features.gates import memory

MOST = 60
DAY_MS = 86_400_000
Entry = dict[str, Any]


def with_rules(doc: Doc | None, event: Event) -> Doc:
    """The rules in force of one project, or (under the empty name) of the user's own files."""
    data = event.data
    if event.kind == "gates.rules_accepted":
        memory.note_in_force()
        return {"scope": data.get("scope", ""), "digest": data.get("digest", ""), "rules": data.get("rules") or {},
                "by": data.get("by", ""), "at": event.at}  # fmt: skip
    waiting = {"digest": data.get("digest", ""), "differences": list(data.get("differences") or ()), "at": event.at}
    return {**(doc or {"scope": data.get("scope", ""), "digest": "", "rules": {}, "by": "", "at": event.at}), "waiting": waiting}


def with_event(doc: Doc | None, event: Event) -> Doc | None:
    doc = doc or {"entries": [], "at": event.at}
    shown = SHOWN[event.kind](event) if event.kind in SHOWN else ""
    if event.kind == "daemon.stopped":
        return {**doc, "stopped": True, "at": event.at}
    if event.kind == "daemon.started":
        killed = doc.get("running") and not doc.get("stopped")
        shown = "Holdfast's daemon was ended from outside, without being stopped" if killed else ""
        doc = {**doc, "running": True, "stopped": False}
    if not shown:
        return doc if event.kind.startswith("daemon.") else None
    entry = {"at": event.at, "text": shown, "session": event.session, "project": event.project, "kind": event.kind}
    return {**doc, "entries": [*doc["entries"], entry][-MOST:], "at": event.at}


def recent(doc: Doc | None, now: int) -> list[Entry]:
    """Of the last day, newest first, each text once."""
    entries = [one for one in (doc or {}).get("entries", ()) if now - one["at"] < DAY_MS]
    return list({one["text"]: one for one in entries}.values())[::-1]


def _bypassed(event: Event) -> str:
    return f"{', '.join(event.data.get('requirements') or ())}: {event.data.get('what', '')} (session {alias(event.session)})"


def _attempted(event: Event) -> str:
    return f"refused to an agent: {event.data.get('act', '')} ({event.data.get('why', '')})"


def _kept(event: Event) -> str:
    return "settings changed by an agent or unknown, and would loosen: " + "; ".join(event.data.get("differences") or ())


def _accepted(event: Event) -> str:
    if event.data.get("by") != "files":
        return ""
    return "settings changed on disk, taken as yours: " + "; ".join(event.data.get("differences") or ())


def _approved(event: Event) -> str:
    if event.data.get("certain") is not False:
        return ""
    names = ", ".join(str(one.get("name")) for one in event.data.get("requirements") or ())
    return f"{names} approved without a terminal; if that was not you, see: holdfast events list"


def _satisfied(event: Event) -> str:
    if event.data.get("method") != "agent":
        return ""
    names = ", ".join(str(one.get("name")) for one in event.data.get("requirements") or ())
    return f"{names} satisfied by the agent's own word (session {alias(event.session)})"


SHOWN: dict[str, Callable[[Event], str]] = {
    "gates.bypassed": _bypassed,
    "gates.attempted": _attempted,
    "gates.rules_kept": _kept,
    "gates.rules_accepted": _accepted,
    "gates.approved": _approved,
    "gates.satisfied": _satisfied,
}
