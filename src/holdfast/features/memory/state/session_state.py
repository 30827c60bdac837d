"""A session as memory sees it: the current turn, what is open, what was injected."""

import re
from collections.abc import Callable

from msgspec.structs import replace

from holdfast.core.checks import Verdict
from holdfast.core.document import with_newest, without_keys
from holdfast.core.event import Event
from holdfast.core.kinds import SESSION_ENDS, ToolEndPayload
from holdfast.core.kinds.agent_events import (
    AgentTaskPayload,
    CompactEnded,
    HookPayload,
    PromptSubmitted,
    SessionStarted,
    TurnEnded,
    TurnFailed,
)
from holdfast.core.kinds.engine_events import DecisionMade, InjectedContext
from holdfast.core.kinds.memory_events import MemoryPayload, RememberedPayload
from holdfast.core.kinds.session_events import SessionLinked, ToolExitRead, TurnAnswerRead
from holdfast.features.memory.policy import turn_rules
from holdfast.features.memory.state import documents

# Bounds of the lists in a session's document.
MOST_ACTS = 60
MOST_SHOWN = 300
MOST_OWN = 30
MOST_TASKS = 30
MOST_COMMANDS = 12
MOST_EDITED = 30
# The most characters of a prompt and answer, of the context before it, a command, its output, a summary.
PROMPT, CONTEXT, COMMAND, HEARD, SUMMARY = 4_000, 1_000, 300, 400, 8_000
OWN_TYPES = frozenset(("decision", "rule", "preference", "gotcha", "trade_off"))
NOTED = frozenset(("shell", "edit"))
# Commands that a later session may want to repeat exactly.
_WORTH_KEEPING = re.compile(r"\b(test|build|make|run|lint|check|deploy|migrat|serve|start|pytest|cargo|npm|docker)")

Step = Callable[[documents.MemorySession, Event], documents.MemorySession]


def reduce(doc: documents.MemorySession | None, event: Event) -> documents.MemorySession | None:
    step = STEPS.get(event.kind)
    # A session begins with an event of an agent; our own events about an unknown one are ignored.
    if step is None or (doc is None and not event.agent):
        return doc
    before = doc or _new_session(event)
    after = step(before, event)
    return doc if after is before and doc is not None else replace(after, at=event.at)


def _new_session(event: Event) -> documents.MemorySession:
    return documents.MemorySession(
        id=event.session, agent=event.agent, project=event.project, at=event.at, first_seq=event.seq, left_at=event.at
    )


def memory_contexts(event: Event) -> list[InjectedContext]:
    """The part of an answer that came from memory."""
    data: DecisionMade = event.data
    return [
        context
        for context in data.contexts
        if context.source in (documents.SOURCE, documents.PUT_BACK, documents.HANDOFF)
    ]


# ── turns ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ended_unsaid(doc: documents.MemorySession) -> bool:
    """If the end of a turn was never reported, the next prompt or the session's end is it."""
    return not doc.closed and bool(doc.prompt or doc.acts)


def _apply_prompt(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    data: PromptSubmitted = event.data
    if data.lane or data.synthetic:
        return doc
    prompt = _both_ends(data.prompt)
    # `previous`: if the agent never reported the end, this prompt hands that turn to the rules.
    return replace(
        doc, previous=doc.turn() if _ended_unsaid(doc) else None, turn_ended=False, n=doc.n + 1, prompt=prompt,
        context=doc.message[-CONTEXT:], prompt_seq=event.seq, planning=data.mode == "plan", message="", message_seq=0,
        acts=[], closed=False, snapshot=None, summary="", first_prompt=doc.first_prompt or documents.one_line(prompt, 200),
        project=event.project or doc.project,
    )  # fmt: skip


def _both_ends(prompt: str) -> str:
    """What lies between was pasted."""
    return prompt if len(prompt) <= PROMPT else f"{prompt[: PROMPT // 2]}\n{prompt[-PROMPT // 2 :]}"


def _turn_over(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    data: HookPayload = event.data
    if data.lane:
        return doc
    message = data.message[:PROMPT] if isinstance(data, TurnEnded | TurnFailed) else ""
    return replace(doc, message=message, message_seq=event.seq, closed=True, turn_ended=True, previous=None)


def _answer_read(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    """The hook only said that the turn ended; the next prompt may be here already."""
    data: TurnAnswerRead = event.data
    # `of` is the end that the answer belongs to; after the next prompt it is another one.
    if data.lane or doc.message_seq != data.of:
        return doc
    return replace(doc, message=data.message[:PROMPT], message_seq=event.seq)


def _session_over(doc: documents.MemorySession, _event: Event) -> documents.MemorySession:
    return replace(doc, turn_ended=_ended_unsaid(doc), previous=None, closed=True)


# ── what was done ────────────────────────────────────────────────────────────────────────────────────────────────────


def _apply_tool_end(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    data: ToolEndPayload = event.data
    if data.action == "todo":
        return _todos_noted(doc, data)
    if data.action not in NOTED:
        return doc
    ok = event.kind == "tool.finished" and _has_worked(data)
    heard = data.error or ("" if ok else data.output)
    act = documents.Act(
        seq=event.seq, action=data.action, ok=ok, command=data.command[:COMMAND],
        paths=documents.shorten_strings(data.paths, 5) if data.paths else [], text=documents.one_line(heard, HEARD) if heard else "",
    )  # fmt: skip
    # Work after the end of a turn reopens it, so that it is read again at its next end.
    doc = _with_useful(replace(doc, closed=False) if doc.closed else doc, act)
    if turn_rules.is_needed(doc.acts, act):
        return replace(doc, acts=[*doc.acts, act][-MOST_ACTS:])
    return doc


def _has_worked(data: ToolEndPayload) -> bool:
    # Agents report it by the kind of event, by `ok`, or by the exit code alone.
    if data.ok is False or data.exit_code not in (None, 0):
        return False
    # `pytest | tail` ends with 0 whatever the tests did: their own verdict counts.
    checks = data.judgement.checks if data.judgement else ()
    return not any(check.verdict is Verdict.FAILED for check in checks)


def _failed_after_all(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    """The hook only said that it ran; the result was read later, mostly within the same turn."""
    data: ToolExitRead = event.data
    if data.ok is not False or doc.closed:
        return doc
    # In the command's place, because the rules go by order.
    act = documents.Act(seq=data.of, action=data.action, command=data.command[:COMMAND])
    acts = [earlier for earlier in doc.acts if earlier.seq != data.of]
    if turn_rules.is_needed(acts, act):
        acts = sorted([*acts, act], key=lambda earlier: earlier.seq)[-MOST_ACTS:]
    return replace(doc, acts=acts, commands={name: at for name, at in doc.commands.items() if at != data.of})


def _with_useful(doc: documents.MemorySession, act: documents.Act) -> documents.MemorySession:
    """Known values change nothing: the document is written only if it says something new."""
    if not act.ok:
        return doc
    if act.action == "edit":
        edited = doc.edited
        for path in act.paths:
            edited = edited if path in edited else with_newest(edited, path, act.seq, MOST_EDITED)
        return replace(doc, edited=edited) if edited is not doc.edited else doc
    command = act.command
    # A multi-line command is a script and useless as "exact command".
    if command in doc.commands or "\n" in command or not _WORTH_KEEPING.search(command):
        return doc
    return replace(doc, commands=with_newest(doc.commands, command, act.seq, MOST_COMMANDS))


def _todos_noted(doc: documents.MemorySession, data: ToolEndPayload) -> documents.MemorySession:
    todos = data.input.get("todos")
    if not isinstance(todos, list):
        return doc
    entries = [one for one in todos if isinstance(one, dict) and one.get("status") != "completed"]
    left = [documents.one_line(str(one.get("content") or ""), 160) for one in entries][:MOST_TASKS]
    return replace(doc, todos=left) if left != doc.todos else doc


# ── what is open ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _task_opened(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    data: AgentTaskPayload = event.data
    subject = documents.one_line(data.subject, 160)
    return replace(doc, tasks=with_newest(doc.tasks, data.task or subject, subject, MOST_TASKS))


def _task_done(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    data: AgentTaskPayload = event.data
    return replace(doc, tasks=without_keys(doc.tasks, [data.task or documents.one_line(data.subject, 160)]))


# ── what is remembered of it, and what it was told ───────────────────────────────────────────────────────────────────


def _apply_observed(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    data: RememberedPayload = event.data
    if data.type not in OWN_TYPES or data.origin == documents.OUTSIDE or data.status == documents.CANDIDATE:
        return doc
    # What it replaces is not handed over with it.
    gone = {data.id, *data.supersedes}
    others = [one for one in doc.own if one.id not in gone]
    return replace(
        doc, own=[*others, documents.OwnMemory(data.id, documents.one_line(data.text, 300), data.type)][-MOST_OWN:]
    )


def _memory_gone(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    data: MemoryPayload = event.data
    remaining = [one for one in doc.own if one.id != data.id]
    return replace(doc, own=remaining) if len(remaining) < len(doc.own) else doc


def _apply_compact_start(doc: documents.MemorySession, _event: Event) -> documents.MemorySession:
    """The state before the agent summarises it."""
    # Without an earlier snapshot, which `before_compaction` would prefer.
    return replace(doc, snapshot=replace(doc, snapshot=None).before_compaction(), summary="")


def _apply_compact_end(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    data: CompactEnded = event.data
    return replace(doc, summary=data.summary[:SUMMARY])


def _apply_session_start(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    """A compaction discarded what was injected before it, so it may be injected again."""
    data: SessionStarted = event.data
    doc = replace(doc, project=event.project or doc.project, agent=event.agent or doc.agent, left_at=doc.at)
    # Both discard the conversation; after a resume or fork it is still there.
    if data.source in ("compact", "clear"):
        return replace(doc, shown={}, compacted=event.seq)
    return doc


def _apply_session_link(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    """A fork continues its parent's whole conversation; after a clear there is none."""
    data: SessionLinked = event.data
    return replace(doc, parent=data.parent) if data.reason not in ("clear", "compact") else doc


def _apply_injected(doc: documents.MemorySession, event: Event) -> documents.MemorySession:
    shown = doc.shown
    for context in memory_contexts(event):
        # By the marks in the text that went out: what was cut for the budget does not count as shown.
        for identity in documents.IDS.findall(context.text):
            shown = with_newest(shown, identity, event.seq, MOST_SHOWN)
    return doc if shown is doc.shown else replace(doc, shown=shown)


STEPS: dict[str, Step] = {
    "session.started": _apply_session_start,
    "session.linked": _apply_session_link,
    "prompt.submitted": _apply_prompt,
    "tool.finished": _apply_tool_end,
    "tool.failed": _apply_tool_end,
    "tool.exit_read": _failed_after_all,
    **dict.fromkeys(("turn.ended", "turn.interrupted", "turn.failed"), _turn_over),
    "turn.answer_read": _answer_read,
    **dict.fromkeys(SESSION_ENDS, _session_over),
    "task.created": _task_opened,
    "task.completed": _task_done,
    "compact.started": _apply_compact_start,
    "compact.ended": _apply_compact_end,
    "memory.observed": _apply_observed,
    "memory.forgotten": _memory_gone,
    "memory.ended": _memory_gone,
    "decision.made": _apply_injected,
}
ENDS = frozenset(("prompt.submitted", "turn.ended", "turn.interrupted", "turn.failed")) | SESSION_ENDS
"""After these the document may hold a finished turn."""
