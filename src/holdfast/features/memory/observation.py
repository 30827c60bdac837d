"""One thing that is remembered. Merged by its words, superseded by a newer one, forgotten as a tombstone. Pure."""

from collections.abc import Callable

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.memory.model import (
    ACTIVE,
    CANDIDATE,
    DROPPED,
    FORGOTTEN,
    LONGEST_TEXT,
    MOST_EVIDENCE,
    SUPERSEDED,
    line,
    strings,
)  # fmt: skip

Step = Callable[[Doc | None, Event, str], Doc | None]


def reduce(doc: Doc | None, event: Event, identity: str) -> Doc | None:
    return STEPS[event.kind](doc, event, identity)


def _observed(doc: Doc | None, event: Event, identity: str) -> Doc | None:
    if event.get("id") != identity:
        return doc and {**doc, "status": SUPERSEDED, "superseded_by": event.get("id")} if _is(doc, ACTIVE) else doc
    if doc is None:
        return _born(event, identity)
    if doc["status"] in (FORGOTTEN, DROPPED):
        return doc
    evidence = list(dict.fromkeys((*doc["evidence"], *_numbers(event))))
    fresh = evidence != doc["evidence"]
    status = CANDIDATE if _is(doc, CANDIDATE) and _uncertain(event) else ACTIVE
    return {
        **doc, "evidence": evidence[-MOST_EVIDENCE:], "times": doc["times"] + fresh, "at": event.at,
        "status": status, "superseded_by": "", "importance": max(doc["importance"], int(event.get("importance") or 0)),
    }  # fmt: skip


def _born(event: Event, identity: str) -> Doc:
    return {
        "id": identity, "type": str(event.get("type") or "discovery"), "text": line(event.get("text"), LONGEST_TEXT),
        "detail": line(event.get("detail"), LONGEST_TEXT), "origin": str(event.get("origin") or ""),
        "importance": int(event.get("importance") or 1), "files": strings(event.get("files")),
        "evidence": _numbers(event), "session": event.session, "project": event.project, "agent": event.agent,
        "repo": str(event.get("repo") or ""),
        "supersedes": strings(event.get("supersedes")), "superseded_by": "", "pinned": bool(event.get("pinned")),
        "promoted": False, "times": 1, "status": CANDIDATE if _uncertain(event) else ACTIVE,
        "first_at": event.at, "at": event.at, "seq": event.seq,
    }  # fmt: skip


def _kept(doc: Doc | None, event: Event, identity: str) -> Doc | None:
    """In the words the person chose; where these are others, the candidate itself is dropped."""
    if event.get("was") == identity and event.get("id") != identity:
        return {**doc, "status": DROPPED} if doc else doc
    if event.get("id") != identity:
        return _observed(doc, event, identity)
    kept = doc if doc and not _is(doc, FORGOTTEN) else _born(event, identity)
    return {**kept, "status": ACTIVE, "type": str(event.get("type") or kept["type"]), "at": event.at}


def _dropped(doc: Doc | None, _event: Event, _identity: str) -> Doc | None:
    return {**doc, "status": DROPPED} if _is(doc, CANDIDATE) and doc else doc


def _uncertain(event: Event) -> bool:
    value: bool = event.get("status") == CANDIDATE
    return value


def _pinned(doc: Doc | None, event: Event, _identity: str) -> Doc | None:
    return {**doc, "pinned": bool(event.get("pinned", True))} if doc and not _is(doc, FORGOTTEN) else doc


def _promoted(doc: Doc | None, _event: Event, _identity: str) -> Doc | None:
    return {**doc, "promoted": True} if doc and not _is(doc, FORGOTTEN) else doc


def _forgotten(doc: Doc | None, event: Event, identity: str) -> Doc | None:
    """The tombstone keeps no words: only that there was something, and when it went."""
    project = doc["project"] if doc else event.project
    return {
        "id": identity, "type": doc["type"] if doc else "", "text": "", "detail": "", "origin": "", "importance": 0,
        "files": [], "evidence": [], "session": "", "project": project, "agent": "", "supersedes": [],
        "superseded_by": "", "pinned": False, "promoted": False, "times": 0, "status": FORGOTTEN,
        "first_at": doc["first_at"] if doc else event.at, "at": event.at, "seq": doc["seq"] if doc else event.seq,
    }  # fmt: skip


def _is(doc: Doc | None, status: str) -> bool:
    return bool(doc) and doc is not None and doc["status"] == status


def _numbers(event: Event) -> list[int]:
    found = event.get("evidence") or ()
    return [n for n in found if isinstance(n, int)][:MOST_EVIDENCE]


STEPS: dict[str, Step] = {
    "memory.observed": _observed,
    "memory.kept": _kept,
    "memory.dropped": _dropped,
    "memory.pinned": _pinned,
    "memory.promoted": _promoted,
    "memory.forgotten": _forgotten,
}
