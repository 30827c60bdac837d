"""Finding the parent of a fork or a clear (O4-d): the same process first, then shared history, then the clock."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ports import Doc, Reader, Ref
from holdfast.features.sessions.model import ACTIVE, COMPLETED, PLACE, SESSION, said
from holdfast.features.sessions.transcript import open_regular

JUST_ENDED_MS = 5_000
SAME_DAY_MS = 86_400_000
FIRST_BYTES = 256 << 10
LINKED_SOURCES = ("clear", "fork")


def link(call: JobCall) -> list[Event]:
    doc = call.reader.state(Ref(SESSION, str(call.job.payload["session"])))
    return list(parent_of(doc, call.reader, call.now)) if doc else []


def parent_of(doc: Doc, reader: Reader, now: int) -> Iterator[Event]:
    reason = doc["origin"]
    if doc["parent"] or reason not in LINKED_SOURCES:
        return
    older = [other for other in _neighbours(doc, reader) if other["first_seq"] < doc["first_seq"]]
    parent = _cleared(doc, older) if reason == "clear" else _forked(doc, older)
    if parent:
        data = {"parent": parent["id"], "reason": reason, "parent_seq": parent["first_seq"]}
        yield said(doc, "session.linked", now, "once", **data)
        yield said(parent, "session.branched", now, doc["first_seq"], child=doc["id"], reason=reason)
        if reason == "clear" and parent["status"] == ACTIVE and same_process(doc, parent):
            # Codex tells of a clear only when it exits.
            yield said(parent, "session.left", now, parent["restarts"], to=doc["id"])


def _neighbours(doc: Doc, reader: Reader) -> Iterator[Doc]:
    """Sessions of the same agent in the same project, the latest first."""
    place = reader.state(Ref(PLACE, doc["project"])) or {"recent": []}
    for session in place["recent"]:
        other = reader.state(Ref(SESSION, session))
        if other and other["id"] != doc["id"] and other["agent"] == doc["agent"]:
            yield other


def _cleared(doc: Doc, older: list[Doc]) -> Doc | None:
    """The process says it exactly; without one, whoever was cleared last, first within seconds, then today."""
    same = [o for o in older if same_process(doc, o)]
    cleared = [o for o in older if o["status"] == COMPLETED and o["reason"] == "clear"]
    began = doc["started_at"]
    return (
        _latest(o for o in same if abs(began - o["at"]) < SAME_DAY_MS)
        or _latest(o for o in cleared if abs(began - o["ended_at"]) < JUST_ENDED_MS)
        or _latest(o for o in cleared if 0 <= began - o["ended_at"] < SAME_DAY_MS)
    )


def same_process(doc: Doc, other: Doc) -> bool:
    return bool(doc["hook"] and other["hook"] and doc["hook"][0] == other["hook"][0])


def _latest(docs: Iterable[Doc]) -> Doc | None:
    return max(docs, key=lambda doc: doc["seq"], default=None)


def _forked(doc: Doc, older: list[Doc]) -> Doc | None:
    """A fork begins with its parent's messages, under their own ids."""
    root = first_message(doc["transcript"])
    return _latest(o for o in older if root and first_message(o["transcript"]) == root)


def first_message(path: str) -> str:
    with suppress(OSError, ValueError), open(path, "rb", opener=open_regular) as file:
        for line in file.read(FIRST_BYTES).split(b"\n"):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                found = msgspec.json.decode(line)
                if isinstance(found, dict) and found.get("type") == "user":
                    return str(found.get("uuid") or "")[:100]
    return ""
