"""What a session's documents hold. Every list is capped: the whole story is in the log."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import Meta

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.core.section import Section

SESSION, TURN, SUMMARY, PLACE = "session", "turn", "summary", "place"
"""Kinds of documents: a session, one of its turns, what it came to, which sessions a project has had lately."""

SESSION_INACTIVE_TIMEOUT_SECONDS = 3600
BATCH_ACTIVE_TIMEOUT_SECONDS = 300
BACKGROUND_PROCESSING_INTERVAL = 60
WATCH_SECONDS = 5.0

MOST_LANES = MOST_RUNNING = MOST_CHILDREN = 20
MOST_ASKS = 5
REMEMBERED_CALLS = 8
REMEMBERED_TURNS = 8
RECENT_IN_PLACE = 20
HEAD = 200
LATE_MS = 5_000
"""Events of one moment come in any order; what is older than this came before."""
TITLE = 80

ACTIVE, COMPLETED = "active", "completed"
WATCHED = "watched"
"""In the index only: active with a known process. There are never more of them than agents that run."""
WORKING, WAITING, IDLE, ENDED = "working", "waiting", "idle", "ended"
REASONS = ("exit", "clear", "process-gone", "stale", "closed-by-user")
TOKENS = ("input", "output", "cache_read", "cache_write")

KINDS = {
    "session.process": "the agent's process was found (`pid`, `start`, `boot`, `host`, `name`)",
    "session.lost": "the agent's process is gone (`pid`, `start`)",
    "session.stale": "nothing came from a session without a known process for too long (`last`)",
    "session.left": "the agent went on with another session in the same process (`to`)",
    "session.closed": "a person closed a session",
    "session.reopened": "a person opened a closed session again",
    "session.linked": "a session goes on from another (`parent`, `reason`, `parent_seq`)",
    "session.branched": "another session goes on from this one (`child`, `reason`)",
    "session.summarised": "what a session came to, made without a model (`title`, `text`, `files`, …)",
    "permission.granted": "the command that a permission was asked for runs (`asked`)",
    "turn.recovered": "a turn without activity was closed (`n`, `last`)",
    "turn.escaped": "the transcript says that the user interrupted the turn (`n`, `when`)",
    "turn.adopted": "activities without a prompt were given a turn of their own (`n`, `first`)",
    "turn.processed": "a closed turn was gone through (`n`, and its facts)",
    "tool.exit_read": "how a command ended was read from the transcript (`of`: its event, `command`, `ok`, `exit_code`)",
    "tokens.read": "token use was read from the transcript (`path`, `offset`, `total`, `by_turn`)",
}


class SessionsSettings(Section):
    marks = {"guarded": True}

    session_inactive_timeout_seconds: Annotated[
        int, Meta(ge=1, description="A session whose process nobody knows ends after so long.")
    ] = SESSION_INACTIVE_TIMEOUT_SECONDS
    batch_active_timeout_seconds: Annotated[
        int, Meta(ge=1, description="A turn is closed after so long without a sign of life.")
    ] = BATCH_ACTIVE_TIMEOUT_SECONDS
    background_processing_interval: Annotated[
        int, Meta(ge=1, description="Seconds between two rounds of recovery.")
    ] = BACKGROUND_PROCESSING_INTERVAL
    idle_after_seconds: Annotated[
        int, Meta(ge=1, description="A session whose turn is over is shown as idle after it.")
    ] = 1800
    inject: Annotated[bool, Meta(description="Tell an agent at its start what else is going on in the project.")] = True
    transcripts: Annotated[
        bool, Meta(description="Read token use, and exit codes of Codex, from the transcripts the agents name.")
    ] = True


DEFAULTS = SessionsSettings()

Handler = Callable[[Doc, Event], None]
"""Changes the copy of a session's document it is given. Values inside are replaced, never changed in place."""


def turn_key(session: str, n: int) -> str:
    return f"{session}/{n}"


def head(text: Any, limit: int = HEAD) -> str:
    """The beginning, on one line."""
    if not text:
        return ""
    line = " ".join(str(text)[: limit * 4].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def counted(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def about(event: Event) -> str:
    """What a tool call is about: its command, its first file, its skill."""
    data = event.data
    paths = data.get("paths")
    return head(data.get("command") or (paths[0] if paths else "") or data.get("skill") or data.get("message"))


def said(doc: Doc, kind: str, now: int, once: object, **data: Any) -> Event:
    """An event of ours about a session. The same thing found twice (`once`) is one event."""
    session = str(doc["id"])
    digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    key = f"{kind}/{digest}/{once}"
    return Event(key=key, kind=kind, at=now, session=session, project=doc.get("project", ""), data=data)


def is_open(turn: Mapping[str, Any] | None) -> bool:
    return turn is not None and not turn["end"]
