"""Documents of the code index, by the session id that the agent gives: a new id is a new document, so no flag can
stick."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.core.document import DocumentType
from holdfast.core.event import Event
from holdfast.core.kinds import REINDEX_KINDS, ToolEndPayload
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.core.kinds.reindex_events import (
    ChunksSuggested,
    FlagInitialized,
    FlagMarked,
    RunDecided,
    RunDetails,
    RunFinished,
    RunResult,
)
from holdfast.core.ports import Ref

# The kinds of events this feature handles, and the values in its own.

SUBSCRIBED_KINDS = frozenset(
    (
        *REINDEX_KINDS,
        "session.started",
        "session.ended",
        "prompt.submitted",
        "tool.finished",
        "turn.ended",
        "decision.made",
    )
)

FIRST_PROMPT, TURN_END, BRANCH, COMMAND, AGAIN = "first_prompt", "turn_end", "branch_switch", "command", "again"
RUN, SKIP = "run", "skip"
NOT_READY, COOLDOWN, CONCURRENT, SPAWNED = (
    "prerequisites_not_ready",
    "cooldown_active",
    "concurrent_reindex",
    "reindex_spawned",
)
COMPLETED, UNCHANGED, SUPERSEDED, SKIPPED, FAILED, TIMEOUT, KILLED = (
    "completed",
    "unchanged",
    "superseded",
    "skipped",
    "failed",
    "timeout",
    "killed",
)
GOOD = frozenset((COMPLETED, UNCHANGED))
SOURCE = "reindex"
"""The source name of injected chunks."""


MOST_CHUNKS = 3


class TurnWork(msgspec.Struct, frozen=True):
    """What one turn did that may have changed files."""

    edits: int = 0
    commands: int = 0


class LastRun(msgspec.Struct, frozen=True):
    """The last run as a session's file shows it."""

    trigger: str
    result: str
    timestamp: int
    details: dict[str, float | int] = {}


class Offer(msgspec.Struct, frozen=True):
    """Chunks that fit the prompt `of`, until they are injected or another prompt comes."""

    of: int
    chunks: list[dict[str, Any]]


class FlagState(msgspec.Struct, kw_only=True):
    """A session: whether its first prompt was seen, its branch, and what its turn did."""

    session_id: str
    project: str = ""
    shown: bool = False
    first_prompt_seq: int = 0
    first_prompt_at: int = 0
    started: bool = False
    branch: str = ""
    switched_seq: int = 0
    edits: int = 0
    commands: int = 0
    turn: TurnWork = TurnWork()
    last_reindex: LastRun | None = None
    offer: Offer | None = None
    status: str = "waiting"
    at: int = 0


class NewestSession(msgspec.Struct, frozen=True):
    session_id: str
    shown: bool = False


class ActiveRun(msgspec.Struct, frozen=True):
    id: str
    trigger: str
    at: int
    session: str = ""
    rebuild: bool = False


class EndedRun(msgspec.Struct, kw_only=True, frozen=True):
    """The last run of a checkout and its result."""

    run: str = ""
    trigger: str = ""
    status: str = ""
    reason: str = ""
    branch: str = ""
    files: int = 0
    left_out: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    chunks: int = 0
    embedded: int = 0
    ms: float | int = 0
    note: str = ""
    root: str = ""
    at: int = 0


class Refused(msgspec.Struct, frozen=True):
    why: str
    at: int


class RunDecision(msgspec.Struct, kw_only=True, frozen=True):
    """The last decision on whether to run."""

    decision: str = ""
    reason: str = ""
    details: RunDetails = msgspec.field(default_factory=RunDetails)
    trigger: str = ""
    run: str = ""
    timestamp: int = 0
    session: str = ""


class Checkout(msgspec.Struct, kw_only=True):
    """A project: its run, its last result, its newest session."""

    project: str
    newest: NewestSession | None = None
    prompts: int = 0
    run: ActiveRun | None = None
    again: bool = False
    last: EndedRun | None = None
    good_at: int = 0
    started_at: int = 0
    refused: Refused | None = None
    decided: RunDecision | None = None
    status: str = "new"
    at: int = 0


SESSION = DocumentType("reindex_session", FlagState)
CHECKOUT = DocumentType("reindex_checkout", Checkout)

AnyDocument = FlagState | Checkout
D = TypeVar("D", FlagState, Checkout)


def keys(event: Event) -> Iterable[Ref]:
    if event.kind == "decision.made" and not _has_reindex_context(event):
        return
    if event.session:
        yield SESSION.ref(event.session)
    # These change nothing of a checkout and are frequent.
    if event.project and event.kind not in ("tool.finished", "decision.made", "reindex.suggested"):
        yield CHECKOUT.ref(event.project)


def reduce(doc: AnyDocument | None, event: Event, ref: Ref) -> AnyDocument | None:
    if ref.kind == SESSION.kind:
        flag = doc if isinstance(doc, FlagState) else None
        return _apply_handler(OF_SESSION, flag, event, _new_flag)
    checkout = doc if isinstance(doc, Checkout) else None
    return _apply_handler(OF_CHECKOUT, checkout, event, _new_checkout)


def _new_flag(event: Event) -> FlagState:
    return FlagState(session_id=event.session, project=event.project, at=event.at)


def _new_checkout(event: Event) -> Checkout:
    return Checkout(project=event.project, at=event.at)


def _apply_handler(
    steps: dict[str, Callable[[D, Event], D]], current: D | None, event: Event, make_new: Callable[[Event], D]
) -> D | None:
    step = steps.get(event.kind)
    if step is None:
        return current
    after = step(current or make_new(event), event)
    # Unchanged documents keep their time and are not written.
    return current if after is current else replace(after, at=event.at)


def facets(_ref: Ref, doc: AnyDocument) -> tuple[str, str, int]:
    return doc.project, doc.status, doc.at


# ── a session ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _session_started(doc: FlagState, event: Event) -> FlagState:
    """S0-5: the same id keeps its flag, whatever `source` says, unless another session was here meanwhile (S0-4)."""
    return replace(_on_branch(doc, event, switch=False), started=True, project=event.project or doc.project)


def _session_ended(doc: FlagState, _event: Event) -> FlagState:
    return replace(doc, last_reindex=None, offer=None)


def _session_prompt(doc: FlagState, event: Event) -> FlagState:
    doc = _on_branch(doc, event)
    if doc.shown:
        return replace(doc, offer=None) if doc.offer else doc
    return replace(doc, shown=True, status="shown", first_prompt_seq=event.seq, first_prompt_at=event.at)


def _session_tool(doc: FlagState, event: Event) -> FlagState:
    doc, data = _on_branch(doc, event), event.data
    if not isinstance(data, ToolEndPayload) or data.ok is False:
        return doc
    if data.action == "edit":
        return replace(doc, edits=doc.edits + 1)
    # Only whether there was one matters, so the document changes once per turn.
    if data.action == "shell" and not doc.commands:
        return replace(doc, commands=1)
    return doc


def _session_turn(doc: FlagState, event: Event) -> FlagState:
    """Kept until the next turn ends: the trigger reads it after this event."""
    doc = _on_branch(doc, event)
    did = TurnWork(doc.edits, doc.commands)
    # Equal counts need no write, but non-zero counters must be reset.
    changed = did != doc.turn or doc.edits or doc.commands
    return replace(doc, turn=did, edits=0, commands=0) if changed else doc


def _on_branch(doc: FlagState, event: Event, switch: bool = True) -> FlagState:
    branch = event.get("branch", "")
    if not branch or branch == doc.branch:
        return doc
    # The first known branch is no switch.
    return replace(doc, branch=branch, switched_seq=event.seq if switch and doc.branch else doc.switched_seq)


def _session_marked(doc: FlagState, event: Event) -> FlagState:
    data: FlagMarked = event.data
    return replace(doc, shown=data.shown, status="shown" if data.shown else "waiting")


def _session_initialized(doc: FlagState, event: Event) -> FlagState:
    data: FlagInitialized = event.data
    if doc.started and doc.shown == data.shown:
        return doc
    return replace(doc, started=True, shown=data.shown, status="shown" if data.shown else "waiting")


def _session_finished(doc: FlagState, event: Event) -> FlagState:
    data: RunFinished = event.data
    counts = {"files": data.files, "chunks": data.chunks, "ms": data.ms}
    return replace(doc, last_reindex=LastRun(data.trigger, data.status, event.at, counts))


def _session_suggested(doc: FlagState, event: Event) -> FlagState:
    """Only for the prompt it was found for."""
    data: ChunksSuggested = event.data
    return replace(doc, offer=Offer(data.of, data.chunks[:MOST_CHUNKS]))


def _session_told(doc: FlagState, _event: Event) -> FlagState:
    return replace(doc, offer=None) if doc.offer else doc


def _has_reindex_context(event: Event) -> bool:
    data = event.data
    return isinstance(data, DecisionMade) and any(context.source == SOURCE for context in data.contexts)


OF_SESSION: dict[str, Callable[[FlagState, Event], FlagState]] = {
    "session.started": _session_started,
    "session.ended": _session_ended,
    "prompt.submitted": _session_prompt,
    "tool.finished": _session_tool,
    "turn.ended": _session_turn,
    "reindex.marked": _session_marked,
    "reindex.initialized": _session_initialized,
    "reindex.finished": _session_finished,
    "reindex.suggested": _session_suggested,
    "decision.made": _session_told,
}

# ── a checkout ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _checkout_initialized(doc: Checkout, event: Event) -> Checkout:
    data: FlagInitialized = event.data
    return replace(doc, newest=NewestSession(event.session, data.shown))


def _checkout_prompt(doc: Checkout, event: Event) -> Checkout:
    """Counted, so that the session's file is checked and repaired with every prompt."""
    return replace(_newest_shown(doc, event, True), prompts=doc.prompts + 1)


def _checkout_marked(doc: Checkout, event: Event) -> Checkout:
    data: FlagMarked = event.data
    return _newest_shown(replace(doc, newest=doc.newest or NewestSession(event.session)), event, data.shown)


def _newest_shown(doc: Checkout, event: Event, shown: bool) -> Checkout:
    newest = doc.newest
    if not newest or newest.session_id != event.session or newest.shown == shown:
        return doc
    return replace(doc, newest=replace(newest, shown=shown))


def _checkout_decided(doc: Checkout, event: Event) -> Checkout:
    data: RunDecided = event.data
    decided = RunDecision(
        decision=data.decision, reason=data.reason, details=data.details, trigger=data.trigger, run=data.run,
        timestamp=event.at, session=event.session,
    )  # fmt: skip
    doc = replace(doc, decided=decided)
    if data.decision == RUN:
        run = ActiveRun(data.run, data.trigger, event.at, event.session, data.details.rebuild)
        # A run that starts now also covers earlier requests.
        return replace(doc, run=run, started_at=event.at, status="running", again=False)
    if data.reason == CONCURRENT:
        # Remembered: the current run may have passed the changed files already.
        return replace(doc, again=True)
    # The repeat was decided against, so it is not requested again.
    return replace(doc, again=False) if data.trigger == AGAIN else doc


def _checkout_finished(doc: Checkout, event: Event) -> Checkout:
    data: RunFinished = event.data
    not_ready = data.status == SKIPPED and data.cause == NOT_READY
    # The end of a superseded run must not clear the newer one.
    mine = doc.run is not None and doc.run.id == data.run
    return replace(
        doc,
        last=_ended_run(data, event.at),
        refused=Refused(data.reason, event.at) if not_ready else None,
        good_at=event.at if data.status in GOOD else doc.good_at,
        run=None if mine else doc.run,
        status=data.status if mine or doc.run is None else doc.status,
    )


def _ended_run(data: RunResult, at: int) -> EndedRun:
    return EndedRun(**{name: getattr(data, name) for name in EndedRun.__struct_fields__ if name != "at"}, at=at)


OF_CHECKOUT: dict[str, Callable[[Checkout, Event], Checkout]] = {
    "reindex.initialized": _checkout_initialized,
    "reindex.marked": _checkout_marked,
    "reindex.decided": _checkout_decided,
    "reindex.finished": _checkout_finished,
    "prompt.submitted": _checkout_prompt,
}
