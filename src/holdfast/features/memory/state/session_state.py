"""Reduces events to the document of a session: what was asked, what worked, what is open, what was injected."""

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from holdfast.core.checks import Verdict
from holdfast.core.document import with_newest, without_keys
from holdfast.core.event import Event
from holdfast.core.kinds import SESSION_ENDS, ToolEndPayload, ToolPayload
from holdfast.core.kinds.agent_events import (
    AgentTaskPayload,
    CompactEnded,
    HookPayload,
    PromptSubmitted,
    SessionStarted,
    TurnEnded,
    TurnFailed,
)
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.core.kinds.engine_events import DecisionMade, InjectedContext
from holdfast.core.kinds.memory_events import MemoryPayload, RememberedPayload
from holdfast.core.kinds.session_events import SessionLinked, ToolExitRead, TurnAnswerRead
from holdfast.core.lazy import lazy_pattern
from holdfast.features.memory.requests import corrections_in, limits_in
from holdfast.features.memory.state import documents
from holdfast.features.memory.state.documents import CommandUse, MemorySession
from holdfast.features.memory.state.words import plain_words, stem_word

# Bounds of the lists in a session's document.
MOST_SHOWN, MOST_OWN, MOST_TASKS, MOST_EDITED = 300, 30, 30, 30
MOST_ASKED, MOST_LIMITS, MOST_WORDS, MOST_FILES, MOST_COMMANDS = 3, 24, 150, 60, 80
MOST_RUNNING, MOST_FAILING = 8, 8
# Characters of a prompt, an answer, a command, the agent's summary of a compaction.
PROMPT, ANSWER, COMMAND, SUMMARY = 1_600, 2_000, 160, 8_000
MOST_USES = 8
"""A file or command used more often changes nothing, so the document is not written again."""
NEWEST = 8
OWN_TYPES = frozenset(("decision", "rule", "preference", "gotcha", "trade_off"))
# Says only: go on with what was asked before.
_CHAT = lazy_pattern(
    r"\W*(?:ok(?:ay)?|yes|yep|y|sure|go|go (?:on|ahead)|continue|please (?:continue|go on)|proceed|resume|thanks?|good|great"
    r"|nice|perfect|weiter|sigue|继续)\W*",
    re.IGNORECASE,
)
_TITLE = lazy_pattern(r"^#+\s*(\S.*?)\s*$", re.MULTILINE)
_WORKTREE = lazy_pattern(r"(?:^|.*/)\.?worktrees/[^/]+/")

Step = Callable[[MemorySession, Event], MemorySession]


def reduce(doc: MemorySession | None, event: Event) -> MemorySession | None:
    step = STEPS.get(event.kind)
    # A session begins with an event of an agent; our own events about an unknown one are ignored.
    if step is None or (doc is None and not event.agent):
        return doc
    before = doc or _new_session(event)
    after = step(before, event)
    return doc if after is before and doc is not None else replace(after, at=event.at)


def _new_session(event: Event) -> MemorySession:
    return MemorySession(
        id=event.session, agent=event.agent, project=event.project, at=event.at, first_seq=event.seq, left_at=event.at
    )


def memory_contexts(event: Event) -> list[InjectedContext]:
    """The part of an answer that came from memory."""
    data: DecisionMade = event.data
    return [context for context in data.contexts if context.source in documents.TOLD_SOURCES]


# ── what was said ────────────────────────────────────────────────────────────────────────────────────────────────────


def _apply_prompt(doc: MemorySession, event: Event) -> MemorySession:
    data: PromptSubmitted = event.data
    if data.lane or data.synthetic:
        return doc
    doc = replace(doc, project=event.project or doc.project, branch=data.branch or doc.branch, prompts=doc.prompts + 1)
    # "Go on" after an interruption takes the stopped request up again.
    if is_chat(data.prompt) and doc.asked:
        return replace(doc, stopped=False, summary="")
    kept = doc.asked[:-1] if doc.stopped else doc.asked
    prompt, said = _both_ends(data.prompt), "" if data.is_plan else data.prompt
    return replace(
        doc, asked=[*kept, prompt][-MOST_ASKED:], stopped=False, message="", summary="",
        first_prompt=doc.first_prompt or documents.one_line(prompt, 200),
        constraints=_with_last(doc.constraints, limits_in(said), MOST_LIMITS),
        corrections=_with_last(doc.corrections, corrections_in(said), MOST_LIMITS),
        words=list(dict.fromkeys((*doc.words, *prompt_words(data.prompt))))[:MOST_WORDS],
    )  # fmt: skip


def is_chat(prompt: str) -> bool:
    return bool(_CHAT.fullmatch(prompt.strip()[:60]))


def prompt_words(prompt: str) -> list[str]:
    return [stem_word(word) for word in plain_words(prompt[: 2 * PROMPT]) if len(word) > 2]


def _with_last(before: list[str], new: Iterable[str], most: int) -> list[str]:
    added = list(new)
    return [*(one for one in before if one not in added), *added][-most:] if added else before


def _both_ends(prompt: str) -> str:
    """The text between was pasted."""
    return prompt if len(prompt) <= PROMPT else f"{prompt[: PROMPT * 3 // 4]} […] {prompt[-PROMPT // 4 :]}"


def _turn_over(doc: MemorySession, event: Event) -> MemorySession:
    data: HookPayload = event.data
    if data.lane:
        return doc
    message = data.message[:ANSWER] if isinstance(data, TurnEnded | TurnFailed) else ""
    stopped = event.kind == "turn.interrupted"
    return replace(doc, message=message, stopped=stopped) if (message, stopped) != (doc.message, doc.stopped) else doc


def _answer_read(doc: MemorySession, event: Event) -> MemorySession:
    """The hook only said that the turn ended."""
    data: TurnAnswerRead = event.data
    return doc if data.lane or doc.message else replace(doc, message=data.message[:ANSWER])


# ── what was done ────────────────────────────────────────────────────────────────────────────────────────────────────


def _apply_tool_start(doc: MemorySession, event: Event) -> MemorySession:
    """Plans are recognised by the call that shows them, or by the file that they are written to."""
    data: ToolPayload = event.data
    if data.action == "plan":
        text = data.input.get("plan")
    elif data.action == "edit" and any("/plans/" in path for path in data.paths[:1]):
        text = data.input.get("content")
    else:
        return doc
    title = plan_title(text) if isinstance(text, str) else ""
    return replace(doc, plan=title) if title and title != doc.plan else doc


def plan_title(text: str) -> str:
    """The first heading of a plan."""
    match = _TITLE.search(text[:4_000])
    return documents.one_line(match[1], 160) if match else ""


def _apply_tool_end(doc: MemorySession, event: Event) -> MemorySession:
    data: ToolEndPayload = event.data
    if data.lane:
        return doc
    if data.action == "todo":
        return _todos_noted(doc, data)
    if data.action == "shell":
        return _apply_command(doc, event, data)
    if data.action in ("read", "edit") and event.kind == "tool.finished":
        return _with_files(doc, event, data)
    return doc


def _apply_command(doc: MemorySession, event: Event, data: ToolEndPayload) -> MemorySession:
    command = data.command.strip()
    # A multi-line command is a script, and useless as "exact command".
    if not command or "\n" in command or len(command) > COMMAND:
        return doc
    if data.detached:
        return replace(doc, running=with_newest(doc.running, command, event.seq, MOST_RUNNING))
    checks = data.judgement.checks if data.judgement else ()
    worked = event.kind == "tool.finished" and data.ok is not False and data.exit_code in (None, 0)
    if not worked and not checks:
        return doc
    used = doc.commands.get(command, CommandUse())
    if used.times >= MOST_USES and command in list(doc.commands)[-NEWEST:]:
        return doc
    commands = {**without_keys(doc.commands, [command]), command: CommandUse(used.times + 1, bool(checks))}
    if len(commands) > MOST_COMMANDS:
        worst = min(commands, key=lambda one: commands[one].times + 2 * commands[one].check)
        del commands[worst]
    return replace(doc, commands=commands)


def _failed_after_all(doc: MemorySession, event: Event) -> MemorySession:
    """The hook only said that it ran; the result was read later."""
    data: ToolExitRead = event.data
    known = doc.commands.get(data.command.strip())
    if data.ok is not False or known is None or known.check:
        return doc
    return replace(doc, commands=without_keys(doc.commands, [data.command.strip()]))


def _apply_check(doc: MemorySession, event: Event) -> MemorySession:
    data: CheckFinished = event.data
    if data.lane or not data.command:
        return doc
    command = documents.one_line(data.command, COMMAND)
    if data.verdict == Verdict.FAILED:
        what = f"{data.failed} failed" if data.failed else "failed"
        named = f": {', '.join(data.failures[:3])}" if data.failures else ""
        return replace(
            doc, failing=with_newest(doc.failing, command, documents.one_line(what + named, 200), MOST_FAILING)
        )
    mended = [one for one in doc.failing if one == command or data.selection == "all"]
    return replace(doc, failing=without_keys(doc.failing, mended)) if data.verdict == Verdict.PASSED and mended else doc


def _with_files(doc: MemorySession, event: Event, data: ToolEndPayload) -> MemorySession:
    files, edited = doc.files, doc.edited
    for path in data.paths[:5]:
        name = file_name(path, data.worktree or event.project)
        times = files.get(name, 0)
        if name and times < MOST_USES:
            files = _without_rarest({**files, name: times + 1})
        if data.action == "edit" and path not in edited:
            edited = with_newest(edited, path[:1000], event.seq, MOST_EDITED)
    return doc if files is doc.files and edited is doc.edited else replace(doc, files=files, edited=edited)


def _without_rarest(files: dict[str, int]) -> dict[str, int]:
    return files if len(files) <= MOST_FILES else without_keys(files, [min(files, key=lambda name: files[name])])


def file_name(path: str, root: str) -> str:
    """Relative to its worktree; empty outside of it."""
    if match := _WORKTREE.match(path):
        return path[match.end() :][:300]
    return path[len(root) + 1 :][:300] if root and path.startswith(f"{root}/") else ""


def _todos_noted(doc: MemorySession, data: ToolEndPayload) -> MemorySession:
    todos = data.input.get("todos")
    if not isinstance(todos, list):
        return doc
    left = list(_open_todos(todos))[:MOST_TASKS]
    return replace(doc, todos=left) if left != doc.todos else doc


def _open_todos(todos: list[object]) -> Iterator[str]:
    for one in todos:
        if isinstance(one, dict) and one.get("status") != "completed":
            yield documents.one_line(str(one.get("content") or ""), 160)


# ── what is open ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _task_opened(doc: MemorySession, event: Event) -> MemorySession:
    data: AgentTaskPayload = event.data
    subject = documents.one_line(data.subject, 160)
    return replace(doc, tasks=with_newest(doc.tasks, data.task or subject, subject, MOST_TASKS))


def _task_done(doc: MemorySession, event: Event) -> MemorySession:
    data: AgentTaskPayload = event.data
    return replace(doc, tasks=without_keys(doc.tasks, [data.task or documents.one_line(data.subject, 160)]))


def _session_over(doc: MemorySession, _event: Event) -> MemorySession:
    """Its background commands end with the agent."""
    return replace(doc, running={}) if doc.running else doc


# ── what is remembered of it, and what was injected ─────────────────────────────────────────────────────────────────


def _apply_observed(doc: MemorySession, event: Event) -> MemorySession:
    data: RememberedPayload = event.data
    if data.type not in OWN_TYPES or data.origin == documents.OUTSIDE or data.status == documents.CANDIDATE:
        return doc
    # What it replaces is not handed over with it.
    gone = {data.id, *data.supersedes}
    others = [one for one in doc.own if one.id not in gone]
    return replace(
        doc, own=[*others, documents.OwnMemory(data.id, documents.one_line(data.text, 300), data.type)][-MOST_OWN:]
    )


def _memory_gone(doc: MemorySession, event: Event) -> MemorySession:
    data: MemoryPayload = event.data
    remaining = [one for one in doc.own if one.id != data.id]
    return replace(doc, own=remaining) if len(remaining) < len(doc.own) else doc


def _apply_compact_end(doc: MemorySession, event: Event) -> MemorySession:
    data: CompactEnded = event.data
    return replace(doc, summary=data.summary[:SUMMARY])


def _apply_session_start(doc: MemorySession, event: Event) -> MemorySession:
    """A compaction discarded what was injected before it, so it may be injected again."""
    data: SessionStarted = event.data
    doc = replace(doc, project=event.project or doc.project, agent=event.agent or doc.agent, left_at=doc.at)
    # Both discard the conversation; after a resume or fork it is still there.
    if data.source in ("compact", "clear"):
        return replace(doc, shown={})
    return replace(doc, went_on=True) if data.source in ("resume", "fork") else doc


def _apply_session_link(doc: MemorySession, event: Event) -> MemorySession:
    """A fork continues its parent's whole conversation; after a clear there is none."""
    data: SessionLinked = event.data
    if data.reason in ("clear", "compact"):
        return doc
    return replace(doc, parent=data.parent, went_on=doc.went_on or data.reason in ("fork", "resume"))


def _apply_injected(doc: MemorySession, event: Event) -> MemorySession:
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
    "tool.started": _apply_tool_start,
    "tool.finished": _apply_tool_end,
    "tool.failed": _apply_tool_end,
    "tool.exit_read": _failed_after_all,
    "check.finished": _apply_check,
    **dict.fromkeys(("turn.ended", "turn.interrupted", "turn.failed"), _turn_over),
    "turn.answer_read": _answer_read,
    **dict.fromkeys(SESSION_ENDS, _session_over),
    "task.created": _task_opened,
    "task.completed": _task_done,
    "compact.ended": _apply_compact_end,
    "memory.observed": _apply_observed,
    "memory.forgotten": _memory_gone,
    "memory.ended": _memory_gone,
    "decision.made": _apply_injected,
}
