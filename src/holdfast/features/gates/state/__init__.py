"""The documents of the gates and their reducers; here the session's own."""

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from holdfast.core.document import DocumentType, with_newest, without_keys
from holdfast.core.event import Event
from holdfast.core.feature import Feature, State
from holdfast.core.kinds import HookPayload, ToolEndPayload, ToolPayload
from holdfast.core.kinds.agent_events import PromptSubmitted
from holdfast.core.kinds.base import Record
from holdfast.core.kinds.engine_events import AnswerUndelivered, DecisionMade
from holdfast.core.kinds.gates_events import (
    GatesBypassed,
    GatesCleared,
    GatesPassed,
    GatesTriggered,
    SatisfiedPayload,
)
from holdfast.core.ports import Doc, Reader, Ref
from holdfast.core.text import sanitise_line
from holdfast.features.gates import events
from holdfast.features.gates.events import SESSION_OVER, SUBSCRIBED_KINDS, branch_of, keys, repo_or_project
from holdfast.features.gates.evidence import Facts, reduce_facts
from holdfast.features.gates.looking import only_looks
from holdfast.features.gates.rules.tool_commands import command_of
from holdfast.features.gates.rules.triggers import acts_of
from holdfast.features.gates.state import attention, branches
from holdfast.features.gates.state.attention import AcceptedRules, Attention, Pause
from holdfast.features.gates.state.branches import BranchState, Document, LiveSessions, replace
from holdfast.features.gates.state.spending import Spending, reduce_spending

# Bounds of one document; the oldest entries go first.
MOST_TRIGGERED, MOST_TOLD, MOST_CALLS = 100, 40, 20
# Clocks of files and of hooks differ by some milliseconds.
MARGIN_MS = 100
# So many failures of the same call in a row are a loop.
LOOP = 5
LONGEST_CALL = 80
MOST_SHOWN_ACTS = 10
DOCUMENT_PAGE = 200
D = TypeVar("D", bound=Any)


class ToolCall(Document, frozen=True):
    """While a call is open a file may change because of it."""

    began: int
    ended: int = 0
    read: dict[str, str] = {}
    """Digests of the scripts and recipes it runs, when it was checked, by their names in `meanings`."""
    shows: list[str] = []
    """The acts of git that its command showed, so that git's own hooks need not ask again."""


class Bypass(Document, frozen=True):
    what: str = ""
    requirements: list[str] = []
    seq: int = 0


class Failing(Document, frozen=True):
    """The call that failed last, how often in a row, and how often some call failed `LOOP` times in a row."""

    digest: str = ""
    what: str = ""
    count: int = 0
    loops: int = 0


class Denied(Document, frozen=True):
    at: int = 0
    names: list[str] = []


class GateSession(Document, frozen=True):
    session: str
    agent: str = ""
    project: str = ""
    status: str = "live"
    started: int = 0
    at: int = 0
    place: str = ""
    branch: str = ""
    triggered: dict[str, int] = {}
    stops: int = 0
    """Refusals to stop in a row without progress."""
    stop_names: list[str] = []
    refused: int = 0
    satisfied: int = 0
    turn: int = 0
    held: int = 0
    """The end of a turn that was refused last."""
    calls: dict[str, ToolCall] = {}
    refs: dict[str, str] = {}
    bypassed: list[Bypass] = []
    passed: dict[str, int] = {}
    """Requirement → when a hook of git let something through because it was met."""
    used: dict[str, int] = {}
    """Requirement → the event that used up what was proven before."""
    warned: dict[str, int] = {}
    told: list[str] = []
    denied: Denied = Denied()
    failing: Failing = Failing()
    began: dict[str, str] = {}
    """What the worktree held at the beginning."""
    content: dict[str, str] = {}
    content_before: dict[str, str] = {}
    content_at: int = 0
    """When it was last known."""

    @property
    def is_busy(self) -> bool:
        return any(not call.ended for call in self.calls.values())

    def was_busy(self, at: int) -> bool:
        """Whether a tool call of this session was running then."""
        return any(
            # A call without an end may still be running.
            call.began - MARGIN_MS <= at and (not call.ended or at <= call.ended + MARGIN_MS)
            for call in self.calls.values()
        )


def reduce_session(doc: GateSession | None, event: Event) -> GateSession | None:
    data = event.data
    if isinstance(data, HookPayload) and data.claimed:
        return None  # An agent's own word about its session changes nothing.
    doc = doc or GateSession(
        session=event.session, agent=event.agent, project=event.project, started=event.at, at=event.at,
        place=repo_or_project(event), branch=branch_of(event),
    )  # fmt: skip
    doc = SESSION_STEPS.get(event.kind, _apply_activity)(doc, event)
    return _with_content(doc, data.content, event.at) if isinstance(data, HookPayload) and data.content else doc


def _with_content(doc: GateSession, content: dict[str, str], at: int) -> GateSession:
    """What the worktree held at the beginning, and when it was last looked at."""
    # A first look after an edit is no baseline: then the session is asked for what it did.
    if not doc.triggered and any(key not in doc.began for key in content):
        doc = replace(doc, began={**content, **doc.began})
    return replace(doc, content={**doc.content, **content}, content_before=doc.content, content_at=at)


def _call_started(doc: GateSession, event: Event) -> GateSession:
    data = event.data
    assert isinstance(data, ToolPayload)
    read = digest_meanings(data.meanings) if data.meanings else {}
    call = ToolCall(began=event.at, read=read, shows=_shown_git_acts(event))
    calls = with_newest(doc.calls, data.call or str(event.seq), call, MOST_CALLS)
    # A call without refs keeps the last known ones.
    return replace(doc, calls=calls, at=event.at, refs=data.refs or doc.refs)


def _shown_git_acts(event: Event) -> list[str]:
    if "git" not in command_of(event):
        return []
    return [one[:LONGEST_CALL] for one in acts_of(event).readings if one.startswith("git ")][:MOST_SHOWN_ACTS]


def digest_meanings(meanings: Mapping[str, str]) -> dict[str, str]:
    return {
        name: blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest() for name, text in meanings.items()
    }


def _call_ended(doc: GateSession, event: Event) -> GateSession:
    doc = _count_failures(doc, event)
    call = event.data.call if isinstance(event.data, ToolPayload) else ""
    if call not in doc.calls:
        return doc
    return replace(doc, calls={**doc.calls, call: replace(doc.calls[call], ended=event.at)}, at=event.at)


def _count_failures(doc: GateSession, event: Event) -> GateSession:
    data = event.data
    if not isinstance(data, ToolEndPayload):
        return doc
    failed = event.kind == "tool.failed" or data.ok is False or bool(data.exit_code)
    digest, before = _call_digest(event.tool, data), doc.failing
    if not failed:
        # Looking around between two failures changes nothing.
        keeps = not before.count or (data.action == "shell" and only_looks(data.command))
        return doc if keeps else replace(doc, failing=replace(before, digest="", count=0))
    count = before.count % LOOP + 1 if digest == before.digest else 1
    what = sanitise_line(data.command or event.tool, LONGEST_CALL)
    return replace(doc, failing=Failing(digest, what, count, before.loops + (count == LOOP)))


def _call_digest(tool: str, data: ToolPayload) -> str:
    text = f"{tool}\0{data.command}\0{data.input}"
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _apply_undelivered(doc: GateSession, event: Event) -> GateSession:
    """An undelivered refusal lets the call run; a refusal by the hook itself does not."""
    data = event.data
    if not isinstance(data, AnswerUndelivered) or not data.call:
        return doc
    if data.instead == "deny":
        return replace(doc, calls=without_keys(doc.calls, [data.call]))
    if data.verdict != "deny":
        return doc
    return replace(doc, calls=with_newest(doc.calls, data.call, ToolCall(began=event.at), MOST_CALLS))


def _apply_bypass(doc: GateSession, event: Event) -> GateSession:
    data = event.data
    assert isinstance(data, GatesBypassed)
    seen = Bypass(what=data.what, requirements=data.requirements, seq=event.seq)
    return replace(doc, bypassed=[*doc.bypassed, seen][-MOST_TOLD:], at=event.at)


def _apply_activity(doc: GateSession, event: Event) -> GateSession:
    status = "ended" if event.kind in SESSION_OVER else "live"
    doc = _without_open_calls(doc, event.at) if status == "ended" else doc
    if not event.project:
        return replace(doc, status=status, at=event.at)
    return replace(
        doc, place=repo_or_project(event), branch=branch_of(event), project=event.project, status=status, at=event.at
    )  # fmt: skip


def _apply_prompt(doc: GateSession, event: Event) -> GateSession:
    """A prompt of a person resets the count of refusals."""
    doc = _without_open_calls(_apply_activity(doc, event), event.at)
    synthetic = isinstance(event.data, PromptSubmitted) and event.data.synthetic
    return doc if synthetic else replace(doc, stops=0, stop_names=[])


def _apply_turn_end(doc: GateSession, event: Event) -> GateSession:
    """Refusals are in a row only if the turn before this one was refused (or let go) too."""
    # `held` is the event of the turn's end that was refused; `turn` is that of the last one.
    in_a_row = bool(doc.held) and doc.held == doc.turn
    doc = _without_open_calls(_apply_activity(doc, event), event.at)
    return replace(doc, turn=event.seq) if in_a_row else replace(doc, turn=event.seq, stops=0, stop_names=[])


def _apply_triggered(doc: GateSession, event: Event) -> GateSession:
    triggered = doc.triggered
    for name in event.data.requirements if isinstance(event.data, GatesTriggered) else ():
        triggered = with_newest(triggered, name, event.at, MOST_TRIGGERED)
    return replace(doc, triggered=triggered, at=event.at)


def _apply_held(doc: GateSession, event: Event) -> GateSession:
    return replace(doc, refused=doc.refused + 1, at=event.at)


def _apply_passed(doc: GateSession, event: Event) -> GateSession:
    passed = doc.passed
    for name in event.data.requirements if isinstance(event.data, GatesPassed) else ():
        passed = with_newest(passed, name, event.at, MOST_TRIGGERED)
    return replace(doc, passed=passed, at=event.at)


def _apply_satisfied(doc: GateSession, event: Event) -> GateSession:
    more = len(event.data.requirements) if isinstance(event.data, SatisfiedPayload) else 0
    return replace(doc, satisfied=doc.satisfied + more, at=event.at)


def _apply_cleared(doc: GateSession, event: Event) -> GateSession:
    """A fact that was used for one action is no proof for the next one."""
    data, used = event.data, doc.used
    if isinstance(data, GatesCleared) and data.method == "used":
        for name in data.requirements:
            used = with_newest(used, name, event.seq, MOST_TRIGGERED)
    return replace(doc, used=used, at=event.at)


def _without_open_calls(doc: GateSession, at: int) -> GateSession:
    """No call outlives its turn."""
    closed = {call: one if one.ended else replace(one, ended=at) for call, one in doc.calls.items()}
    return replace(doc, calls=closed) if closed else doc


# ── what the gates answered ──────────────────────────────────────────────────────────────────────────────────────────


class OpenRequirement(Record):
    name: str = ""
    type: str = ""
    why: str = ""
    resolve: str = ""


class GateDetail(Record):
    """What an answer was about; stored in the `details` of `decision.made`."""

    gate: str = ""
    """refused, asked, stop, let_go, warned, told, bypass or protected."""
    requirements: list[OpenRequirement] = []
    name: str = ""
    lines: int = 0
    digests: list[str] = []
    what: str = ""

    @property
    def names(self) -> list[str]:
        return sorted(one.name for one in self.requirements)


def details_of(data: DecisionMade) -> list[GateDetail]:
    ours = [detail for detail in data.details if "gate" in detail]
    return msgspec.convert(ours, list[GateDetail])


def _apply_decision(doc: GateSession, event: Event) -> GateSession:
    data = event.data
    if not isinstance(data, DecisionMade):
        return doc
    if data.verdict == "deny" and data.call:
        doc = replace(doc, calls=without_keys(doc.calls, [data.call]))  # it never ran
    for detail in details_of(data):
        if step := DECISION_STEPS.get(detail.gate):
            doc = step(doc, detail, event.at, data.of)
    return doc


def _apply_stop_refusal(doc: GateSession, detail: GateDetail, _at: int, of: int) -> GateSession:
    """Progress is that something refused before is not refused now; a tool that ran is none (H2)."""
    progress = bool(set(doc.stop_names) - set(detail.names))
    stops = 1 if progress else doc.stops + 1
    return replace(doc, refused=doc.refused + 1, stops=stops, stop_names=detail.names, held=of)


SESSION_STEPS: Mapping[str, Callable[[GateSession, Event], GateSession]] = {
    "tool.started": _call_started,
    "tool.finished": _call_ended,
    "tool.failed": _call_ended,
    "gates.bypassed": _apply_bypass,
    "answer.undelivered": _apply_undelivered,
    "prompt.submitted": _apply_prompt,
    "turn.ended": _apply_turn_end,
    "gates.triggered": _apply_triggered,
    "gates.held": _apply_held,
    "gates.passed": _apply_passed,
    "gates.satisfied": _apply_satisfied,
    "gates.approved": _apply_satisfied,
    "gates.cleared": _apply_cleared,
    "decision.made": _apply_decision,
}
DECISION_STEPS: Mapping[str, Callable[[GateSession, GateDetail, int, int], GateSession]] = {
    "refused": lambda doc, detail, at, _of: replace(
        doc, refused=doc.refused + 1, denied=Denied(at=at, names=detail.names)
    ),
    "stop": _apply_stop_refusal,
    "let_go": lambda doc, _detail, _at, of: replace(doc, held=of),
    "warned": lambda doc, one, _at, _of: replace(
        doc, warned=with_newest(doc.warned, one.name, one.lines, MOST_TRIGGERED)
    ),
    "told": lambda doc, detail, _at, _of: replace(doc, told=[*doc.told, *detail.digests][-MOST_TOLD:]),
    "bypass": lambda doc, _detail, _at, _of: replace(doc, bypassed=[]),
}
"""`GateDetail.gate` → what the answer changes; given the time, and the event that was answered."""


BRANCHES = DocumentType(events.BRANCH, BranchState)
SESSIONS = DocumentType(events.SESSION, GateSession)
FACTS_OF = DocumentType(events.FACTS, Facts)
PAUSES = DocumentType(events.PAUSE, Pause)
REGISTRIES = DocumentType(events.LIVE, LiveSessions)
RULES_OF = DocumentType(events.RULES, AcceptedRules)
ATTENTIONS = DocumentType(events.ATTENTION, Attention)
SPENDINGS = DocumentType(events.SPENT, Spending)
DOCUMENTS = (BRANCHES, SPENDINGS, SESSIONS, FACTS_OF, PAUSES, REGISTRIES, RULES_OF, ATTENTIONS)

REDUCERS: Mapping[str, Callable[[Any, Event], Doc | None]] = {
    events.BRANCH: branches.reduce_branch,
    events.SESSION: reduce_session,
    events.FACTS: reduce_facts,
    events.LIVE: branches.reduce_registry,
    events.PAUSE: attention.reduce_pause,
    events.RULES: attention.reduce_rules,
    events.ATTENTION: attention.reduce_attention,
    events.SPENT: reduce_spending,
}


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    return REDUCERS[ref.kind](doc, event)


FOLDED = Feature(name="gates", subscribed_kinds=SUBSCRIBED_KINDS, keys=keys, reduce=reduce)
"""The documents alone, to replay them."""


class Documents:
    """Documents in memory, in the shape that `decide` reads them."""

    def __init__(self) -> None:
        self.docs: dict[Ref, Doc] = {}

    def get(self, kind: str, key: str) -> Doc | None:
        return self.docs.get(Ref(kind, key))


def live_sessions(state: State) -> LiveSessions:
    return REGISTRIES.get(state, "sessions") or LiveSessions()


def every_document(reader: Reader, documents: DocumentType[D]) -> Iterator[D]:
    before = None
    while page := documents.list(reader, before=before, limit=DOCUMENT_PAGE):
        yield from (doc for _, doc in page)
        key, doc = page[-1]
        # Pages go by time and key; the last document of a page is where the next one begins.
        before = (doc.at, key)
