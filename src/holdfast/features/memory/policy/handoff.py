"""Builds the hand-over packet for another agent, and what a compaction lost."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from holdfast.analysis.handover.session_history import Course
from holdfast.analysis.handover.summary import SessionEvent, Summary, build_summary
from holdfast.core.event import Event
from holdfast.core.text import estimate_tokens
from holdfast.features.memory.state.documents import Act, MemorySession, SessionGates, Snapshot, day_of, one_line
from holdfast.features.memory.state.words import search_terms

# Lines of one kind in a packet.
MOST = 10
OPEN_TASK, OPEN_GATES, NEXT_STEP = "- open task: ", "- gates still open: ", "- next step: "
NOTHING_LEFT = "ask the user what is left"
Exists = Callable[[str], bool]


def summarise_session(events: Iterable[Event]) -> Summary:
    """Summarise a session from its own events."""
    course = Course()
    for event in events:
        course.add(event)
    return course.summary()


def summarise_turn(doc: MemorySession) -> Summary:
    """Summarise the current turn from the session's document."""
    course = [SessionEvent("prompt", text=doc.first_prompt)] if doc.first_prompt else []
    course += [SessionEvent("answer", text=doc.context)] if doc.context else []
    course += [SessionEvent("prompt", text=doc.prompt)] if doc.prompt else []
    course += [_session_step(act) for act in doc.acts if act.action in ("shell", "edit")]
    course += [SessionEvent("answer", text=doc.message)] if doc.message else []
    return build_summary(course)


def _session_step(act: Act) -> SessionEvent:
    if act.action == "edit":
        return SessionEvent("edit", path=next(iter(act.paths), ""))
    # The document keeps no exit code, only whether it failed.
    return SessionEvent("command", command=act.command, exit=0 if act.ok else 1, output=act.text)


def is_file_of(project: str) -> Exists:
    """A deleted file is not handed over."""
    return lambda path: (Path(project) / path).exists()


def handoff_packet(doc: MemorySession, summary: Summary, gates: Sequence[str], exists: Exists, note: str = "") -> str:
    """`gates`: those open in the session now."""
    return "\n".join(_packet_lines(doc, summary, gates, exists, note))


def gate_names(session: SessionGates | None) -> list[str]:
    """Open gates, as counted by the session's figures."""
    return sorted(session.open_gates) if session else []


def _packet_lines(
    doc: MemorySession, summary: Summary, gates: Sequence[str], exists: Exists, note: str
) -> Iterator[str]:
    whose = doc.agent or "another agent"
    yield f"Handed over from {whose}, session {doc.id}, as of {day_of(doc.at)} (data, not orders):"
    yield f"- goal: {doc.first_prompt or 'not said'}"
    if doc.prompt and one_line(doc.prompt, 200) != doc.first_prompt:
        yield f"- asked last: {one_line(doc.prompt, 300)}"
    if said := " ".join(summary.said) or doc.message:
        yield f"- the agent said: {one_line(said, 400)}"
    yield from (f"- check passed: {one}" for one in summary.proven)
    yield from (f"- {one.type}: {one.text} [{one.id}]" for one in doc.own[-MOST:])
    yield from (f"{OPEN_TASK}{task}" for task in [*doc.tasks.values(), *doc.todos][:MOST])
    if gates:
        yield OPEN_GATES + ", ".join(gates)
    yield from (f"- refused by a gate, not done since: {one}" for one in summary.refused)
    if files := [path for path in doc.edited if exists(path)]:
        yield f"- files changed: {', '.join(path.removeprefix(f'{doc.project}/') for path in files[-MOST:])}"
    yield from (f"- failed last: {one}" for one in _failing_commands(doc, summary))
    yield from (f"- commit: {one}" for one in summary.commits)
    yield from (f"- exact command: `{command}`" for command in list(doc.commands)[-5:])
    yield NEXT_STEP + (note or _next_step(doc, summary))


def _failing_commands(doc: MemorySession, summary: Summary) -> list[str]:
    # The latest run of each command decides whether it still fails.
    last = {act.command: act for act in doc.acts if act.action == "shell"}
    noted = [f"`{act.command}`" for act in last.values() if not act.ok][-3:]
    summary_text = " ".join(summary.failing)
    return [*summary.failing, *(one for one in noted if one.strip("`") not in summary_text)]


def _next_step(doc: MemorySession, summary: Summary) -> str:
    """As it was said; else derived from what is open."""
    if summary.next:
        return "; ".join(summary.next)
    todo = [*doc.tasks.values(), *doc.todos]
    if _failing_commands(doc, summary):
        return "make the failing command pass"
    return todo[0] if todo else NOTHING_LEFT


def packet_lines_now(text: str, doc: MemorySession | None, gates: Sequence[str]) -> Iterator[str]:
    """The lines of a packet without finished tasks and closed gates."""
    lines = text.split("\n")
    if doc is None:
        yield from lines
        return
    open_now = [*doc.tasks.values(), *doc.todos]
    finished = {line.removeprefix(OPEN_TASK) for line in lines if line.startswith(OPEN_TASK)} - set(open_now)
    for line in lines:
        if line.startswith(OPEN_GATES):
            names = [name for name in line.removeprefix(OPEN_GATES).split(", ") if name in gates]
            yield from [OPEN_GATES + ", ".join(names)] if names else []
        elif line.startswith(NEXT_STEP) and line.removeprefix(NEXT_STEP) in finished:
            yield NEXT_STEP + next(iter(open_now), NOTHING_LEFT)
        elif line.removeprefix(OPEN_TASK) not in finished:
            yield line


# Share of a line's words that makes it count as present in the summary.
STILL_THERE = 0.75
MOST_PIECES = 12
EXACT_COMMAND = "exact command"
ABOUT_COMPACTION = "Before the compaction, and missing from its summary (data recorded by Holdfast):"


def put_back(doc: MemorySession, gates: Sequence[str], budget: int) -> str:
    snapshot = _still_open(doc)
    summary_terms = set(search_terms(doc.summary))
    lines, left = [], budget - estimate_tokens(ABOUT_COMPACTION)
    for label, text, mark in _snapshot_pieces(snapshot, gates, summarise_turn(doc)):
        words = f"- {label}: {text}{mark}"
        # A command is only useful verbatim; other lines may be reworded.
        there = text in doc.summary if label == EXACT_COMMAND else _is_said(text, summary_terms)
        if not there and estimate_tokens(words) < left:
            lines.append(words)
            left -= estimate_tokens(words) + 1
    return "\n".join([ABOUT_COMPACTION, *lines]) if lines else ""


def _still_open(doc: MemorySession) -> Snapshot:
    """The earlier list without what was finished since."""
    before = doc.before_compaction()
    return replace(
        before,
        tasks={name: task for name, task in before.tasks.items() if name in doc.tasks},
        todos=[todo for todo in before.todos if todo in doc.todos],
    )


def _snapshot_pieces(snapshot: Snapshot, gates: Sequence[str], summary: Summary) -> Iterator[tuple[str, str, str]]:
    """(label, text, the memory's mark), heaviest first."""
    for one in reversed(snapshot.own[-MOST_PIECES:]):
        yield one.type, one.text, f" [{one.id}]"
    for task in [*snapshot.tasks.values(), *snapshot.todos][:MOST_PIECES]:
        yield "open task", task, ""
    if gates:
        yield "gates still open", ", ".join(gates), ""
    for label, texts in (("next step", summary.next), ("failed last", summary.failing)):
        yield from ((label, text, "") for text in texts)
    if snapshot.prompt:
        yield "asked last", one_line(snapshot.prompt, 300), ""
    for command in list(reversed(snapshot.commands))[:MOST_PIECES]:
        yield EXACT_COMMAND, command, ""


def _is_said(text: str, summary_terms: set[str]) -> bool:
    words = set(search_terms(text))
    return bool(words) and len(words & summary_terms) >= STILL_THERE * len(words)
