"""What happened in a session, in order: every prompt and every tool call, once, under its turn."""

# A call is one row: its start and its end are paired by the agent's id of the call, and where the agent gives none by
# lane, tool, input and order within the turn.

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import SESSION_KINDS, TOOL_ENDS, ToolEndPayload, ToolPayload
from holdfast.core.kinds.agent_events import (
    CompactStarted,
    PromptSubmitted,
    SessionStarted,
    SubagentEnded,
    TurnEnded,
)
from holdfast.core.kinds.check_events import CheckFinished, GitActed
from holdfast.core.kinds.engine_events import AnswerUndelivered, DecisionMade
from holdfast.core.kinds.gates_events import requirement_names
from holdfast.core.kinds.session_events import ToolExitRead, TurnAnswerRead
from holdfast.core.kinds.workspace_events import WorkspaceChanged
from holdfast.core.ports import EventQuery, Reader
from holdfast.core.text import without_fences
from holdfast.features.sessions.state.call_text import about_call
from holdfast.features.sessions.state.documents import EndedCall, Session, Turn, one_line
from holdfast.features.sessions.state.lifecycle import SHELL, is_start_of, is_synthetic, is_within_turn, prompt_text
from holdfast.features.sessions.state.reducer import Turns

HIDDEN_KINDS = frozenset((
    "permission.granted", "turn.processed", "turn.adopted", "session.process", "session.summarised",
    "tool.exit_read", "turn.answer_read",
))  # fmt: skip
SHOWN_KINDS = (
    "session.started", "session.ended", "prompt.submitted", "tool.started", *sorted(TOOL_ENDS), "permission.requested",
    "permission.denied", "turn.ended", "turn.failed", "turn.interrupted", "subagent.started", "subagent.ended",
    "compact.started", "compact.ended", "notification", "model.switched", "task.created", "task.completed", "elicitation.requested",
    "decision.made", "answer.undelivered", "note.added", *(kind for kind in SESSION_KINDS if kind not in HIDDEN_KINDS),
)  # fmt: skip
RULE_KINDS = (
    "check.finished", "git.acted", "gates.triggered", "gates.satisfied", "gates.approved", "gates.cleared",
    "gates.bypassed", "gates.attempted", "gates.paused", "gates.resumed", "workspace.changed",
)  # fmt: skip
"""What checks and gates noted in a session. The dashboard shows them in line; texts and exports leave them out."""
PAIRED_KINDS = (
    "tool.started", *sorted(TOOL_ENDS), "decision.made", "answer.undelivered", "permission.denied", "prompt.submitted",
    "turn.ended", "turn.failed", "turn.interrupted", "turn.escaped", "turn.recovered", "session.ended", "session.lost",
)  # fmt: skip
DENIAL_KINDS = ("decision.made", "permission.denied")
CALL_KINDS = ("tool.started", *TOOL_ENDS, *DENIAL_KINDS)
FILES_NAMED = 6
NAMED_TURNS = 4
"""Turns among which the one is looked for that an event names."""
LOOK_AROUND = 200
"""Events read before and after a page, to pair calls that begin or end outside of it."""

LABELS = {
    "prompt.submitted": "prompt", "turn.ended": "answer", "turn.failed": "error", "turn.interrupted": "interrupted",
    "turn.recovered": "closed by recovery", "turn.escaped": "interrupted", "permission.requested": "asks permission",
    "permission.denied": "denied", "session.started": "started", "session.ended": "ended",
    "session.lost": "process gone", "session.stale": "stale", "session.left": "left", "session.closed": "closed by you",
    "session.reopened": "reopened by you", "session.linked": "continues", "session.branched": "continued in",
    "subagent.started": "subagent started", "subagent.ended": "subagent ended", "compact.ended": "compacted",
    "compact.started": "compaction began",
    "decision.made": "holdfast", "answer.undelivered": "not delivered",
    "elicitation.requested": "asks", "model.switched": "model", "note.added": "note",
    "task.created": "task", "task.completed": "task done",
}  # fmt: skip


ORDINARY_STARTS = ("startup", "new")
VERDICTS = {"deny": "denied"}
ENDS_IN_WORDS = {
    **dict.fromkeys(("other", "exit", "complete", "completed", "end_turn"), ""),
    **dict.fromkeys(("prompt_input_exit", "user_exit", "user_close", "window_close"), "by the user"),
    "clear": "by a clear", "logout": "by a logout", "import": "as far as it was imported",
    "import-working": "in the middle of a turn, as far as it was imported", "import-exit": "by the user",
}  # fmt: skip
"""What agents call the end of a session; some of their words say nothing."""

replace = msgspec.structs.replace


class Row(msgspec.Struct, kw_only=True):
    """One line of a timeline, the same for every door."""

    seq: int
    at: int
    kind: str
    label: str
    turn: int
    tool: str = ""
    lane: str = ""
    lane_type: str = ""
    text: str = ""
    outcome: str = ""
    """Of a tool call: ok, failed, denied, interrupted, running, not ended; empty when how it ended is not known."""
    reason: str = ""
    """Why it was denied."""
    call: str = ""
    ok: bool | None = None
    exit_code: int | None = None
    began: int = 0
    ms: int = 0
    synthetic: bool = False
    action: str = ""
    verdict: str = ""
    of_kind: str = ""
    injected: int = 0
    output: str = ""


class CallPairing:
    """Fed with the events of a session in order: which start belongs to which end, and what became of each call."""

    def __init__(self) -> None:
        self.open: dict[int, Event] = {}
        """Starts without an end so far, by their number."""
        self.outcomes: dict[int, str] = {}
        """Of starts that have no end of their own: denied, interrupted, not ended."""
        self.reasons: dict[int, str] = {}
        self.start_of: dict[int, Event] = {}
        """By the number of the end."""
        self.refused_by: dict[int, Event] = {}
        """Starts, by the number of the denial."""
        self.folded: set[int] = set()
        """Events that are shown in the row of another: starts with an end, denials of a call, ends after a denial."""
        self._left: dict[int, Event] = {}
        self._ended_first: dict[tuple[str, str], int] = {}
        self._ended: dict[tuple[str, str], EndedCall] = {}
        """The end of each call, by lane and id, that did not begin again."""

    def add(self, event: Event) -> None:
        if handle := _PAIRING.get(event.kind):
            handle(self, event)

    def _start(self, event: Event) -> None:
        call = (event.data.lane, event.data.call)
        ended, end_seq = self._ended.pop(call, None), self._ended_first.pop(call, 0)
        if ended is None or not is_start_of(event, ended):
            self.open[event.seq] = event  # An id may be used again.
            return
        self._ended[call] = msgspec.structs.replace(ended, started=True)
        if end_seq:
            self._pair(event, end_seq)  # Hooks of one moment may be stored in any order.
        else:
            self.folded.add(event.seq)

    def _end(self, event: Event) -> None:
        call = (event.data.lane, event.data.call)
        if call in self._ended:
            self.folded.add(event.seq)  # Told twice.
            return
        start = self._matching(event, self.open) or self._matching(event, self._left)
        if event.data.call:
            self._ended[call] = EndedCall(about=about_call(start or event), at=event.at, started=start is not None)
        if start:
            self.open.pop(start.seq, None)
            denied = self.outcomes.get(start.seq) == "denied"
            self._left.pop(start.seq, None)
            if denied:
                self.folded.add(event.seq)
            else:
                self._pair(start, event.seq)
        elif event.data.call:
            self._ended_first[call] = event.seq

    def _pair(self, start: Event, end: int) -> None:
        self.start_of[end] = start
        self.folded.add(start.seq)
        self.outcomes.pop(start.seq, None)

    def _decided(self, event: Event) -> None:
        data: DecisionMade = event.data
        if data.verdict == "deny" and data.of_kind == "tool.started":
            self._deny(data.of, _reasons_text(data.reasons), event.seq)

    def _refused(self, event: Event) -> None:
        if match := self._matching(event, self.open) or self._matching(event, self._left):
            self._deny(match.seq, event.data.reason, event.seq)

    def _deny(self, start: int, reason: str, by: int) -> None:
        event = self.open.pop(start, None) or self._left.get(start)
        if event:
            self._left[start] = event
            self.outcomes[start], self.reasons[start] = "denied", reason
            self.refused_by[by] = event
            self.folded.add(by)

    def _undelivered(self, event: Event) -> None:
        """The refusal did not reach the agent: the call runs."""
        start = event.data.of
        if not event.data.instead and self.outcomes.get(start) == "denied" and start in self._left:
            self.open[start] = self._left.pop(start)
            del self.outcomes[start], self.reasons[start]

    def _close_turn(self, lane: str | None, outcome: str) -> None:
        """A turn is over: what began in it and did not end will hardly end any more. A late end is still taken, without
        an id only until the turn after that is over too."""
        # Without an id a later end of the same tool could be matched to a call long gone.
        over = {seq for seq, e in self._left.items() if not e.data.call and (lane is None or e.data.lane == lane)}
        self._left = {seq: event for seq, event in self._left.items() if seq not in over}
        for seq, start in [*self.open.items()]:
            if lane is None or start.data.lane == lane:
                self.outcomes[seq] = outcome
                self._left[seq] = self.open.pop(seq)

    def _prompted(self, event: Event) -> None:
        if prompt_text(event.data) and not (is_synthetic(event.data) or is_within_turn(event.data)):
            self._close_turn(event.data.lane, "not ended")

    def _matching(self, end: Event, among: dict[int, Event]) -> Event | None:
        """The start of the same call by its id; without one the oldest of the same input, else of the same tool."""
        data: ToolPayload = end.data
        starts = [start for start in among.values() if start.data.lane == data.lane]
        named = [start for start in starts if start.data.call == data.call]
        if data.call and named:
            return named[-1]  # The latest: ids may be used again.
        # Two different ids are never the same call.
        alike = [start for start in starts if start.tool == end.tool and not (start.data.call and data.call)]
        same_input = [start for start in alike if start.data.input == data.input]
        return next(iter([*same_input, *self._ran(alike, data.call)]), None)

    def _ran(self, starts: list[Event], call: str) -> list[Event]:
        """A call that was denied did not run: another input shows that this is the end of another call."""
        return [] if call else [start for start in starts if self.outcomes.get(start.seq) != "denied"]


_PAIRING: dict[str, Callable[[CallPairing, Event], None]] = {
    "tool.started": CallPairing._start,
    **dict.fromkeys(TOOL_ENDS, CallPairing._end),
    "decision.made": CallPairing._decided,
    "answer.undelivered": CallPairing._undelivered,
    "permission.denied": CallPairing._refused,
    "prompt.submitted": CallPairing._prompted,
    **dict.fromkeys(
        ("turn.interrupted", "turn.escaped"), lambda pairing, _event: pairing._close_turn("", "interrupted")
    ),
    **dict.fromkeys(
        ("turn.ended", "turn.failed", "turn.recovered"),
        lambda pairing, event: pairing._close_turn(event.get("lane", ""), "not ended"),
    ),
    "session.ended": lambda pairing, _event: pairing._close_turn(None, "not ended"),
    "session.lost": lambda pairing, _event: pairing._close_turn(None, "interrupted"),
}


def pair_calls(events: Iterable[Event]) -> CallPairing:
    pairing = CallPairing()
    for event in events:
        pairing.add(event)
    return pairing


def rows_of(
    session: Session, page: Sequence[Event], reader: Reader, turns: Turns | None = None, *, fold_denials: bool = True
) -> list[Row]:
    """The rows of a page of events. Whatever the page, a call is in the row of its end, or of its start without one.

    A list without starts shows the denial of a call in a row of its own (`fold_denials` is False).
    """
    turns = turns or Turns(session, reader)
    pairing = pair_calls(_events_around_page(session, page, reader, with_starts=not fold_denials))
    later, judged_again = _read_later(session, page, reader), _judged_again(session, page, reader)
    shown = [e for e in page if e.seq not in pairing.folded or (not fold_denials and e.kind in DENIAL_KINDS)]
    numbers = _turn_numbers(shown, turns)
    rows = [
        _build_row(event, n, session, pairing, later.get(event.seq))
        for event, n in zip(shown, numbers, strict=True)
        if _is_shown(event, n, turns) and event.seq not in judged_again
    ]
    # Some things are known later than they happened.
    return sorted(rows, key=lambda row: row.at)


def _events_around_page(
    session: Session, page: Sequence[Event], reader: Reader, *, with_starts: bool
) -> Iterable[Event]:
    """The page, with as much before, in and after it as its calls need, in order."""
    if not any(event.kind in CALL_KINDS for event in page):
        return page
    query, first, last = EventQuery(session=session.id, kinds=PAIRED_KINDS), page[0].seq, page[-1].seq
    by_seq = {event.seq: event for event in page}
    queries = [replace(query, before=first, newest=True, limit=LOOK_AROUND)]
    if with_starts:
        queries.append(replace(query, kinds=("tool.started",), after=first, before=last, limit=2 * LOOK_AROUND))
    if any(event.kind == "tool.started" for event in page):
        queries.append(replace(query, after=last, limit=LOOK_AROUND))
    for one in queries:
        by_seq |= {event.seq: event for event in reader.events(one)}
    return [by_seq[seq] for seq in sorted(by_seq)]


def _is_shown(event: Event, turn: int, turns: Turns) -> bool:
    """Prompts that nobody typed are no rows, unless the agent began a turn with one; nor is what a compaction starts and
    ends besides."""
    data = event.data
    if isinstance(data, SessionStarted):
        return data.source != "compact"
    if isinstance(data, CompactStarted):
        return data.end_untold
    if isinstance(data, PromptSubmitted):
        opens = turns.first_event(turn) == event.seq
        hidden = not opens and data.source != SHELL and (is_synthetic(data) or _is_repeated(data, turns.get(turn)))
        return bool(prompt_text(data)) and not hidden
    if isinstance(data, TurnEnded) and data.lane_untold:
        return not data.lane  # A subagent's: its own end follows.
    return not (isinstance(data, SubagentEnded) and data.compaction)


def _is_repeated(data: PromptSubmitted, turn: Turn | None) -> bool:
    """The prompt that opened the turn, reported again by hooks that are registered twice."""
    same = turn is not None and bool(turn.id) and turn.id == data.turn
    return same and not data.lane and turn is not None and turn.prompt == one_line(prompt_text(data))


def _turn_numbers(page: Sequence[Event], turns: Turns) -> list[int]:
    """Walked downwards from the last turn that begins in or before the page."""
    # From the end: neighbouring events mostly share a turn, so few lookups are needed.
    if not page or not turns.last:
        return [0] * len(page)
    n = turns.at_event(page[-1].seq)
    numbers, first = [], turns.first_event(n)
    for event in reversed(page):
        while n and event.seq < first:
            n -= 1
            first = turns.first_event(n)
        numbers.append(_named_turn(event, n, turns))
    return numbers[::-1]


def _named_turn(event: Event, n: int, turns: Turns) -> int:
    """What a transcript reports late belongs to the turn that it names."""
    name = event.data.get("turn", "") if event.data.get("imported", "") else ""
    recent = range(n, max(0, n - NAMED_TURNS), -1) if name else ()
    return next((m for m in recent if (turn := turns.get(m)) and turn.id == name), n)


ReadLater = ToolExitRead | TurnAnswerRead
"""What an agent's hook did not say and its transcript did."""


def _read_later(session: Session, page: Sequence[Event], reader: Reader) -> dict[int, ReadLater]:
    """By the numbers of the events that said nothing."""
    silent = [event for event in page if _is_silent(event.data)]
    if not silent:
        return {}
    kinds = (ToolExitRead.KIND, TurnAnswerRead.KIND)
    query = EventQuery(session=session.id, kinds=kinds, after=silent[0].seq, limit=2 * len(page) + LOOK_AROUND)
    return {event.data.of: event.data for event in reader.events(query)}


def _judged_again(session: Session, page: Sequence[Event], reader: Reader) -> set[int]:
    """Checks that could not be judged when they ended, and were when their exit status was known."""
    unknown = [event for event in page if isinstance(event.data, CheckFinished) and event.data.verdict == "unknown"]
    if not unknown:
        return set()
    kinds, most = (CheckFinished.KIND, ToolExitRead.KIND), 2 * len(page) + LOOK_AROUND
    query = EventQuery(session=session.id, kinds=kinds, after=unknown[0].seq, limit=most)
    later = reader.events(query)
    exits = {event.data.of: event.seq for event in later if isinstance(event.data, ToolExitRead)}
    again = {event.data.of for event in later if event.seq > exits.get(event.data.of, event.seq)}
    return {event.seq for event in unknown if event.data.of in again and event.seq < exits[event.data.of]}


def _is_silent(data: object) -> bool:
    if isinstance(data, TurnEnded):
        return not data.message
    return isinstance(data, ToolEndPayload) and data.action == "shell" and data.exit_code is None


def _lane_of(data: Any, session: Session) -> tuple[str, str]:
    """Name and type. Some agents report the type only when a subagent begins, Cursor only the type when it ends."""
    lane, lane_type = data.get("lane", ""), data.get("lane_type", "")
    known_lane = session.lanes.get(lane)
    return lane or lane_type, lane_type or (known_lane.type if known_lane else "")


def _build_row(event: Event, turn: int, session: Session, pairing: CallPairing, later: ReadLater | None) -> Row:
    data, (lane, lane_type) = event.data, _lane_of(event.data, session)
    row = Row(
        seq=event.seq, at=event.at, kind=event.kind, label=label_of(event), turn=turn, tool=event.tool, lane=lane,
        lane_type=lane_type, text=text_of(event), began=event.at,
    )  # fmt: skip
    if isinstance(data, ToolPayload):
        row.call, row.action = data.call, data.action
    if isinstance(data, ToolEndPayload):
        _add_end(row, event, pairing, later if isinstance(later, ToolExitRead) else None)
    elif event.kind == "tool.started":
        _add_unended(row, event, session, pairing)
    elif isinstance(data, DecisionMade | AnswerUndelivered):
        _add_decision(row, event, pairing.refused_by.get(event.seq))
    elif isinstance(data, PromptSubmitted):
        row.synthetic = is_synthetic(data)
    elif isinstance(later, TurnAnswerRead):
        row.text = later.message
    if event.kind == "turn.ended" and not row.text:
        row.label = "turn ended"  # What was answered is not known.
    return row


def _add_decision(row: Row, event: Event, refused: Event | None) -> None:
    data: DecisionMade | AnswerUndelivered = event.data
    row.verdict, row.of_kind, row.reason = data.verdict, data.of_kind, _reasons_text(data.reasons)
    if isinstance(data, DecisionMade):
        row.injected = sum(context.tokens for context in data.contexts)
    # In a row of its own a denial says what it denied.
    if refused:
        row.text = f"denied: {about_call(refused) or refused.tool} — {row.reason}"


def _add_end(row: Row, event: Event, pairing: CallPairing, exit_read: ToolExitRead | None) -> None:
    """How it ended, when it began and how long it took: as the agent measured, else as we saw it."""
    data: ToolEndPayload = event.data
    start = pairing.start_of.get(event.seq)
    row.ok, row.exit_code = (exit_read.ok, exit_read.exit_code) if exit_read else (data.ok, data.exit_code)
    # Our own difference includes the hook's way to us.
    row.ms = int(data.ms) if data.ms is not None else max(0, event.at - start.at) if start else 0
    row.began, row.output = event.at - row.ms, data.output or data.error
    row.text = row.text or (about_call(start) if start else "")
    row.outcome = "interrupted" if data.interrupted else {True: "ok", False: "failed", None: ""}[row.ok]


def _add_unended(row: Row, event: Event, session: Session, pairing: CallPairing) -> None:
    # As `lifecycle.start_call` names calls without an id.
    running = (event.data.call or f"#{event.seq}") in session.running
    outcome = pairing.outcomes.get(event.seq)
    row.outcome = outcome or ("running" if running else _left_behind(session))
    row.reason = pairing.reasons.get(event.seq, "")


def _left_behind(session: Session) -> str:
    return "interrupted" if session.reason == "process-gone" else "not ended"


def label_of(event: Event) -> str:
    if event.kind == "prompt.submitted" and is_synthetic(event.data):
        return "continued"
    return LABELS.get(event.kind) or event.tool or event.kind


def text_of(event: Event) -> str:
    if text := _TEXTS.get(event.kind):
        return text(event.data)
    if event.tool:
        return about_call(event)
    fields = (event.get(name) for name in ("source", "reason", "subject", "text", "new", "trigger", "parent", "child"))
    return str(next(filter(None, fields), ""))


def _start_text(data: SessionStarted) -> str:
    return "" if data.source in ORDINARY_STARTS else data.source


def _message_text(data: Any) -> str:
    return str(data.message or data.get("error") or "")


def _decision_text(data: DecisionMade) -> str:
    sources = ", ".join(context.source for context in data.contexts)
    if data.verdict in ("", "none"):
        return f"injected context: {sources}" if sources else "; ".join(data.notices)
    return f"{VERDICTS.get(data.verdict, data.verdict)}: {_reasons_text(data.reasons) or sources}"


def _undelivered_text(data: AnswerUndelivered) -> str:
    return f"denied: {_reasons_text(data.reasons)}" if data.verdict == "deny" else "refused by the hook alone"


def _reasons_text(reasons: Sequence[str]) -> str:
    return "; ".join(without_fences(reason) for reason in reasons)


def _check_text(data: CheckFinished) -> str:
    return f"{data.verdict.replace('_', ' ')}: {data.command or data.runner} ({data.why})"


def _act_text(data: GitActed) -> str:
    return f"{data.verb} {data.after.branch} {data.after.head[:8]}".strip()


def _files_text(data: WorkspaceChanged) -> str:
    """What a call changed in files, also by shell commands."""
    acts: dict[str, str] = {}
    for one in data.files:
        known = acts.get(one.path, "" if one.before else "+")
        acts[one.path] = "-" if not one.after else known.replace("-", "")
    shown = ", ".join(f"{act}{path}" for path, act in list(acts.items())[:FILES_NAMED])
    more = f" and {len(acts) - FILES_NAMED} more" if len(acts) > FILES_NAMED else ""
    lost = sum(one.lost for one in data.files)
    return f"{shown}{more}" + (f"; {lost} uncommitted lines lost" if lost else "")


def _gate_text(data: Any) -> str:
    names = ", ".join(requirement_names(data.get("requirements", ())))
    message = str(data.get("what") or data.get("why") or "")
    return ": ".join(part for part in (names, message) if part)


_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(RULE_KINDS, _gate_text),
    "workspace.changed": _files_text,
    **dict.fromkeys(("turn.ended", "turn.failed", "notification", "subagent.ended"), _message_text),
    "prompt.submitted": prompt_text,
    "session.started": _start_text,
    "session.ended": lambda data: ENDS_IN_WORDS.get(data.reason, data.reason),
    # Its type is its lane's, and its source says nothing.
    "subagent.started": lambda _data: "",
    "decision.made": _decision_text,
    "answer.undelivered": _undelivered_text,
    "check.finished": _check_text,
    "git.acted": _act_text,
}
