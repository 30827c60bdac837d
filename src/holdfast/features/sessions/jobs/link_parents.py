"""Finding the parent of a fork or a clear (O4-d): the same process first, then shared history, then the clock."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.kinds.session_events import SessionBranched, SessionLeft, SessionLinked
from holdfast.core.ports import Reader
from holdfast.features.sessions.events import session_event
from holdfast.features.sessions.state.documents import COMPLETED, RECENT_SESSIONS, SESSION, Session
from holdfast.usage.follow import open_regular

JUST_ENDED_MS = 5_000
SAME_DAY_MS = 86_400_000
FIRST_BYTES = 256 << 10
LINKED_SOURCES = ("clear", "fork")


def link_parent(call: JobCall) -> list[Event]:
    session = SESSION.load(call.reader, str(call.job.payload["session"]))
    return list(parent_events(session, call.reader, call.now)) if session else []


def parent_events(session: Session, reader: Reader, now: int) -> Iterator[Event]:
    reason = session.origin
    if session.parent or reason not in LINKED_SOURCES:
        return
    older = [other for other in _neighbours(session, reader) if other.first_seq < session.first_seq]
    parent = _find_cleared(session, older) if reason == "clear" else _find_forked(session, older)
    if parent:
        linked = SessionLinked(parent=parent.id, reason=reason, parent_seq=parent.first_seq)
        yield session_event(session, linked, now, "once")
        yield session_event(parent, SessionBranched(child=session.id, reason=reason), now, session.first_seq)
        if reason == "clear" and parent.is_active and same_process(session, parent):
            # Codex tells of a clear only when it exits.
            yield session_event(parent, SessionLeft(to=session.id), now, parent.restarts)


def _neighbours(session: Session, reader: Reader) -> Iterator[Session]:
    """Sessions of the same agent in the same project, the latest first."""
    known = RECENT_SESSIONS.load(reader, session.project)
    for name in known.recent if known else []:
        other = SESSION.load(reader, name)
        if other and other.id != session.id and other.agent == session.agent:
            yield other


def _find_cleared(session: Session, older: list[Session]) -> Session | None:
    """The process says it exactly; without one, whoever was cleared last, first within seconds, then today."""
    same = [o for o in older if same_process(session, o)]
    cleared = [o for o in older if o.status == COMPLETED and o.reason == "clear"]
    began = session.started_at
    return (
        _latest(o for o in same if abs(began - o.at) < SAME_DAY_MS)
        or _latest(o for o in cleared if abs(began - o.ended_at) < JUST_ENDED_MS)
        or _latest(o for o in cleared if 0 <= began - o.ended_at < SAME_DAY_MS)
    )


def same_process(session: Session, other: Session) -> bool:
    """By the agent's own process; where one of them is not known, by the parent of their hooks."""
    if session.process and other.process:
        return (session.process.pid, session.process.start) == (other.process.pid, other.process.start)
    return bool(session.hook and other.hook and session.hook[0] == other.hook[0])


def _latest(sessions: Iterable[Session]) -> Session | None:
    return max(sessions, key=lambda session: session.seq, default=None)


def _find_forked(session: Session, older: list[Session]) -> Session | None:
    """A fork begins with its parent's messages, under their own ids."""
    root = first_message(session.transcript)
    return _latest(o for o in older if root and first_message(o.transcript) == root)


def first_message(path: str) -> str:
    """The id of the first message of a transcript."""
    with suppress(OSError, ValueError), open(path, "rb", opener=open_regular) as file:
        for line in file.read(FIRST_BYTES).split(b"\n"):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                found = msgspec.json.decode(line)
                if isinstance(found, dict) and found.get("type") == "user":
                    return str(found.get("uuid") or "")[:100]
    return ""
