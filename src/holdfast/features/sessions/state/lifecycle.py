"""The parts of a session and how they change: its beginning and end, its turns, its subagents (lanes, H6: keyed by session
and agent id, never sessions of their own), what runs and what is asked, which gates stand in its way, and what of a prompt
a person typed."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import TOOL_ENDS
from holdfast.core.kinds.agent_events import PromptSubmitted, SessionStarted, SubagentEnded
from holdfast.core.kinds.engine_events import DecisionMade
from holdfast.core.kinds.gates_events import SatisfiedPayload, requirement_names
from holdfast.core.kinds.session_events import SessionLinked, TurnAnswerRead
from holdfast.core.text import VOICE, without_contexts
from holdfast.features.sessions.state.call_text import about_call
from holdfast.features.sessions.state.documents import (  # fmt: skip  # fmt: skip
    ACTIVE,
    COMPLETED,
    LATE_MS,
    MAX_ASKS,
    MAX_CHILDREN,
    MAX_LANES,
    MAX_OPEN_GATES,
    MAX_REMEMBERED_CALLS,
    MAX_REMEMBERED_TURNS,
    MAX_RUNNING,
    EndedCall,
    Lane,
    OpenGate,
    PendingQuestion,
    RunningCall,
    Session,
    Turn,
    TurnDocument,
    one_line,
)

# Turns: opened by a prompt, closed by the agent's stop, the next prompt, or recovery.

CONCLUDED_TURN_ENDS = ("recovered", "notified", "lost")
"""Ends that were concluded, not reported: activity in a live session proves them wrong."""
USERS_TURN = ("stopped", "failed", "interrupted", "notified", "denied")
"""Ends after which it is the user's turn."""


def open_turn(session: Session, event: Event, *, origin: str, prompt: str = "", turn_id: str = "") -> None:
    close_turn(session, event, "next-prompt")
    last = session.turn
    if last and last.is_unprocessed:
        # Two are kept at hand; of those before them it is only known where they begin: the log has the rest.
        if session.previous and not session.missed:
            session.missed = session.previous.n
        session.previous = last
    n = (last.n if last else 0) + 1
    session.turn = Turn(
        n=n, id=turn_id, origin=origin, prompt=one_line(prompt), at=event.at, first=event.seq, seq=event.seq
    )
    session.recent = [*session.recent, (n, event.at)][-MAX_REMEMBERED_TURNS:]


def close_turn(session: Session, event: Event, how: str, answer: str = "") -> None:
    turn = session.turn
    if turn and turn.is_open:
        session.turn = msgspec.structs.replace(
            # 0 means open, so an end at time 0 becomes 1.
            turn,
            end=event.at or 1,
            how=how,
            answer=one_line(answer) or turn.answer,
            seq=event.seq,
        )


def reopen_turn(session: Session) -> None:
    if session.turn:
        session.turn = msgspec.structs.replace(session.turn, end=0, how="")


def is_answered_by(turn: Turn | TurnDocument, read: TurnAnswerRead) -> bool:
    """Not when the turn went on after that end and has a later answer."""
    return turn.n == read.n and not read.lane and (read.of >= turn.seq or not turn.answer)


def count_in_turn(session: Session, event: Event, *, tools: int = 0, failed: int = 0, begins: bool = False) -> None:
    """An activity belongs to the latest turn, even a closed one; without any turn, one is made for it.

    What only begins after the end of a turn (`begins`) shows that the agent works on without a prompt.
    """
    turn = session.turn
    if turn is None:
        open_turn(session, event, origin="recovery")
    # What ends after a turn's end belongs to it; what begins after it shows that it goes on.
    elif session.is_active and turn.end and (turn.how in CONCLUDED_TURN_ENDS or (begins and event.at > turn.end)):
        reopen_turn(session)
    turn = session.turn
    if turn:
        session.turn = msgspec.structs.replace(
            turn, seq=event.seq, tools=turn.tools + tools, failed=turn.failed + failed
        )


def mark_processed(session: Session, n: int, seq: int) -> None:
    last, previous = session.turn, session.previous
    # Something may have happened in it since it was gone through: then it stays.
    if previous and previous.n == n and previous.seq <= seq:
        session.previous = None
    if last and last.n == n:
        session.turn = msgspec.structs.replace(last, processed=max(last.processed, seq))
    if session.missed == n:
        last_turn = session.previous or session.turn
        session.missed = n + 1 if last_turn and n + 1 < last_turn.n else 0


TOLD_ENDS = ("exit", "clear")
CONCLUDED_ENDS = ("process-gone", "stale", "closed-by-user")
"""Ends the agent did not report: activity after them proves that it lives."""


def new_session(event: Event) -> Session:
    return Session(
        id=event.session, agent=event.agent, project=event.project, since=event.at, started_at=event.at, at=event.at,
        first_seq=event.seq, seq=event.seq,
    )  # fmt: skip


def end_session(session: Session, event: Event, reason: str, detail: str = "") -> None:
    """The first end counts, but a report of the agent replaces a conclusion."""
    told_at_last = reason in TOLD_ENDS and session.reason in CONCLUDED_ENDS
    if session.status == COMPLETED and not told_at_last:
        return
    if session.status != COMPLETED:
        turn = session.turn
        session.at_end = (
            "asking" if session.asks else "working" if turn and turn.is_open else "answered" if turn else ""
        )
    # Reported by the agent, the turn ended; concluded, it is lost.
    close_turn(session, event, "ended" if reason in TOLD_ENDS else "lost")
    session.status, session.reason, session.detail = COMPLETED, reason, one_line(detail)
    # A reported end after a concluded one keeps the earlier time.
    session.ended_at = min(session.ended_at or event.at, event.at) or 1


def proves_life(session: Session, event: Event) -> bool:
    """Whether an event of the agent revokes the end of its session."""
    data, later = event.data, event.at > session.ended_at
    if isinstance(data, SessionStarted):
        # Events may come late; a resume reactivates the session whatever its time.
        return later or data.source == "resume"
    if event.kind == "prompt.submitted":
        return later
    return event.kind != "session.ended" and session.reason in CONCLUDED_ENDS and later


def reactivate_session(session: Session) -> None:
    session.status, session.reason, session.detail, session.at_end, session.ended_at = ACTIVE, "", "", "", 0
    session.restarts += 1


def link_parent(session: Session, event: Event) -> None:
    """The first link stays. Parents are older than their children, so there can be no cycle."""
    data: SessionLinked = event.data
    older = data.parent not in ("", session.id) and data.parent_seq < session.first_seq
    if older and not session.parent:
        session.parent, session.parent_reason = data.parent, data.reason


def add_child(session: Session, event: Event) -> None:
    child = event.data.child
    if child not in ("", session.id, *session.children):
        session.children = [*session.children, child][-MAX_CHILDREN:]
        session.children_seen += 1


# Subagents are lanes inside their parent's session (H6): keyed by session + agent id, never sessions of their own.


def touch_lane(session: Session, event: Event, tools: int = 0) -> None:
    """Records an activity in a lane. A lane whose beginning was missed begins here; an ended one stays ended."""
    lane = event.data.lane
    if not lane:
        return
    known_lane = session.lanes.get(lane)
    if known_lane is None:
        session.lanes_seen += 1
        known_lane = Lane(type=one_line(event.data.lane_type, 40), at=event.at)
    entry = msgspec.structs.replace(known_lane, tools=known_lane.tools + tools, last=event.at)
    session.lanes = _cap_lanes({**session.lanes, lane: entry})


def start_lane(session: Session, event: Event) -> None:
    """Where a subagent has only a name (Kimi, Gemini), the same name begins again with the next one."""
    data = event.data
    known_lane = session.lanes.get(data.lane)
    if known_lane is None or data.lane != data.lane_type or known_lane.at == event.at:
        touch_lane(session, event)
        return
    session.lanes_seen += 1
    entry = msgspec.structs.replace(known_lane, end=0, last=event.at)
    session.lanes = {**session.lanes, data.lane: entry}


def end_lane(session: Session, event: Event) -> None:
    """Its transcript may be a file of its own."""
    touch_lane(session, event)
    data = event.data
    lane = data.lane or _oldest_open(session, data.lane_type)
    known_lane = session.lanes.get(lane)
    if known_lane is None:
        return
    entry = msgspec.structs.replace(known_lane, end=known_lane.end or event.at or 1)
    # Named only by the event that ends a subagent.
    if isinstance(data, SubagentEnded) and data.lane_transcript:
        entry.transcript = data.lane_transcript
    session.lanes = {**session.lanes, lane: entry}


def _oldest_open(session: Session, lane_type: str) -> str:
    """Cursor names only the type of a subagent that ended."""
    return next((name for name, lane in session.lanes.items() if not lane.end and lane.type == lane_type), "")


def end_all_lanes(session: Session, event: Event) -> None:
    if session.any_lane_open:
        session.lanes = {
            k: v if v.end else msgspec.structs.replace(v, end=event.at or 1) for k, v in session.lanes.items()
        }


def _cap_lanes(lanes: dict[str, Lane]) -> dict[str, Lane]:
    """Those that ended go first, the oldest of them before the others."""
    while len(lanes) > MAX_LANES:
        victim = next((k for k, v in lanes.items() if v.end), None) or next(iter(lanes))
        lanes = {k: v for k, v in lanes.items() if k != victim}
    return lanes


# What runs now and what the user is asked, each in its lane.


def start_call(session: Session, event: Event, call: str) -> None:
    entry = RunningCall(tool=event.tool, about=about_call(event), at=event.at, lane=event.data.lane)
    running = {**session.running, call: entry}
    # Calls whose end is never reported must not pile up.
    session.running = running if len(running) <= MAX_RUNNING else dict(list(running.items())[-MAX_RUNNING:])


def end_call(session: Session, event: Event) -> None:
    """A call that ended is remembered for a while: its start may come later, and its end again."""
    call = event.data.call
    if call:
        remember_ended(session, event)
    remove_calls(session, [call] if call else _calls_without_id(session, event)[:1])
    remove_answered(session, event)


def _call_in_lane(event: Event) -> str:
    """A subagent may use an id that its session uses too."""
    call, lane = event.data.call, event.data.lane
    return f"{lane}\n{call}" if lane else str(call)


def has_ended(session: Session, event: Event) -> bool:
    return bool(event.data.call) and _call_in_lane(event) in session.ended_calls


def remember_ended(session: Session, event: Event) -> None:
    running = session.running.get(event.data.call)
    about = running.about if running else about_call(event) if event.kind in TOOL_ENDS else ""
    entry = EndedCall(about=about, at=event.at, started=running is not None)
    ended = {**session.ended_calls, _call_in_lane(event): entry}
    session.ended_calls = dict(list(ended.items())[-MAX_REMEMBERED_CALLS:])


def is_start_of(event: Event, ended: EndedCall) -> bool:
    """Whether this start is of the call of its id that ended: its end came first, or hooks are registered twice. Else
    the id is used again, for some models count from 0 in every conversation, and it is another call."""
    # However long the call took, its start is not later than its end, but for clocks of two processes.
    return event.at <= ended.at + LATE_MS and not (ended.started and ended.about != about_call(event))


def is_told_again(session: Session, event: Event) -> bool:
    """Whether this start is of a call that ended."""
    name = _call_in_lane(event)
    ended = session.ended_calls.get(name) if event.data.call else None
    if ended is None:
        return False
    others = {call: one for call, one in session.ended_calls.items() if call != name}
    again = is_start_of(event, ended)
    session.ended_calls = {**others, name: msgspec.structs.replace(ended, started=True)} if again else others
    return again


def _calls_without_id(session: Session, event: Event) -> list[str]:
    """Running calls of the same tool in the same lane that have no id: those with the same input first, the oldest of
    them first."""
    lane = event.data.lane
    # Calls without an id are kept as "#" and the number of their start.
    same = [(c, r) for c, r in session.running.items() if c[:1] == "#" and (r.tool, r.lane) == (event.tool, lane)]
    if not same:
        return []
    about = about_call(event)
    return [c for c, r in same if r.about == about] + [c for c, r in same if r.about != about]


def remove_calls(session: Session, calls: Iterable[str]) -> None:
    gone = set(calls)
    if gone & session.running.keys():
        session.running = {call: entry for call, entry in session.running.items() if call not in gone}


def clear_running(session: Session, lane: str | None = None) -> None:
    """Forgets running calls and open questions, of one lane or of all."""
    if session.running:
        session.running = {c: r for c, r in session.running.items() if lane is not None and r.lane != lane}
    if session.asks:
        session.asks = [a for a in session.asks if lane is not None and a.lane != lane]


def add_ask(session: Session, event: Event, what: str) -> None:
    if session.is_active:
        ask = PendingQuestion(
            what=what, tool=event.tool, about=about_call(event), lane=event.data.lane, at=event.at,
            shell=what == "permission" and event.get("action") == "shell",
        )  # fmt: skip
        # The same question asked again replaces the first.
        session.asks = [*(a for a in session.asks if not _is_about(a, event)), ask][-MAX_ASKS:]


def remove_answered(session: Session, event: Event) -> None:
    """A notification names no tool, so any end in its lane answers it."""
    if session.asks:
        lane = event.data.lane
        session.asks = [a for a in session.asks if not _is_about(a, event) and (a.tool or a.lane != lane)]


def _is_about(ask: PendingQuestion, event: Event) -> bool:
    return (ask.tool, ask.about, ask.lane) == (event.tool, about_call(event), event.data.lane)


# Open gates: those that refused something, until they are satisfied or the refused act was done after all.

END_OF_TURN = "end_of_turn"
REFUSALS = {"refused": "", "stop": END_OF_TURN, "let_go": END_OF_TURN}
"""How the feature `gates` says in a decision's details what it did → what it blocks, where that is no tool."""


def open_gates(session: Session, event: Event) -> None:
    """The call that a denial is about is still known as running when the decision comes."""
    data: DecisionMade = event.data
    # As `start_call` names a call without an id.
    call = session.running.get(data.call or f"#{data.of}")
    gates = dict(session.open_gates)
    for how, name in _refused_requirements(data):
        blocks = REFUSALS[how] or event.tool
        gates[name] = OpenGate(blocks=blocks, about=call.about if call else "", at=event.at)
        if how == "let_go" and name not in session.let_through:
            session.let_through = [*session.let_through, name][-MAX_OPEN_GATES:]
    if gates != session.open_gates:
        session.open_gates = dict(list(gates.items())[-MAX_OPEN_GATES:])


def _refused_requirements(data: DecisionMade) -> Iterator[tuple[str, str]]:
    for detail in data.details:
        how = str(detail.get("gate"))
        if how in REFUSALS:
            yield from ((how, name) for name in requirement_names(detail.get("requirements") or ()))


def gates_satisfied(session: Session, event: Event) -> None:
    data: SatisfiedPayload = event.data
    names = set(requirement_names(data.requirements))
    _close_gates(session, names)
    if names & set(session.let_through):
        session.let_through = [name for name in session.let_through if name not in names]


def call_done(session: Session, event: Event) -> None:
    """Closes the gates that refused this very call: it went through."""
    if session.open_gates:
        about = about_call(event)
        _close_gates(
            session, [k for k, gate in session.open_gates.items() if (gate.blocks, gate.about) == (event.tool, about)]
        )


def turn_let_go(session: Session) -> None:
    """A new prompt after a refused stop: the turn did end."""
    if session.open_gates:
        _close_gates(session, [k for k, gate in session.open_gates.items() if gate.blocks == END_OF_TURN])


def _close_gates(session: Session, names: Iterable[str]) -> None:
    gone = set(names)
    if gone & session.open_gates.keys():
        session.open_gates = {name: gate for name, gate in session.open_gates.items() if name not in gone}


# A person's words in a prompt, without what the agent or Holdfast added.


# Claude Code's message to itself about a background task.
_NOTIFICATION = re.compile(r"<task-notification>.*?<summary>(.*?)</summary>", re.DOTALL)


def prompt_text(data: PromptSubmitted) -> str:
    """Without the contexts that hooks put before it; empty when nothing else is in it. Of an agent's message to itself about
    a background task: the sentence with its result."""
    text = without_contexts(data.prompt).strip()
    summary = _NOTIFICATION.match(text) if data.synthetic else None
    return summary[1].strip() if summary else text


SHELL = "shell"
WITHIN_TURN = ("queue", "rejection", SHELL)
"""Sources of words that a person said while the agent worked, and of commands that they ran next to it."""


def is_within_turn(data: PromptSubmitted) -> bool:
    """Whether the words belong to the turn that was open, whenever they are read."""
    return data.source in WITHIN_TURN


def is_synthetic(data: PromptSubmitted) -> bool:
    """Whether no person typed it."""
    return data.synthetic or prompt_text(data).startswith(VOICE.strip())
