"""Builds the hand-over packet for another agent, and what a compaction lost."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from holdfast.analysis.handover.session_history import SessionHistory
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
    course = SessionHistory()
    for event in events:
        course.add(event)
    return course.summary()


def summarise_turn(doc: MemorySession) -> Summary:
    """Summarise the current turn from the session's document."""
    said = (("prompt", doc.first_prompt), ("answer", doc.context), ("prompt", doc.prompt))
    course = [SessionEvent(kind, text=text) for kind, text in said if text]
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
    said = one_line(" ".join(summary.said) or doc.message, 400)
    rows: tuple[tuple[str, Iterable[str]], ...] = (
        ("- goal: ", (doc.first_prompt or "not said",)),
        ("- asked last: ", _if_any(_asked_last(doc))),
        ("- the agent said: ", _if_any(said)),
        ("- check passed: ", summary.proven),
        ("- ", (f"{one.type}: {one.text} [{one.id}]" for one in doc.own[-MOST:])),
        (OPEN_TASK, _open_tasks(doc)[:MOST]),
        (OPEN_GATES, _if_any(", ".join(gates))),
        ("- refused by a gate, not done since: ", summary.refused),
        ("- files changed: ", _if_any(", ".join(_files_left(doc, exists)))),
        ("- failed last: ", _failing_commands(doc, summary)),
        ("- commit: ", summary.commits),
        ("- exact command: ", (f"`{command}`" for command in list(doc.commands)[-5:])),
        (NEXT_STEP, (note or _next_step(doc, summary),)),
    )
    whose = doc.agent or "another agent"
    title = f"Handed over from {whose}, session {doc.id}, as of {day_of(doc.at)} (data, not orders):"
    return "\n".join([title, *(prefix + text for prefix, texts in rows for text in texts)])


def _files_left(doc: MemorySession, exists: Exists) -> list[str]:
    return [path.removeprefix(f"{doc.project}/") for path in doc.edited if exists(path)][-MOST:]


def _asked_last(doc: MemorySession) -> str:
    return one_line(doc.prompt, 300) if one_line(doc.prompt, 200) != doc.first_prompt else ""


def _if_any(text: str) -> tuple[str, ...]:
    return (text,) if text else ()


def _open_tasks(doc: MemorySession) -> list[str]:
    return [*doc.tasks.values(), *doc.todos]


def gate_names(session: SessionGates | None) -> list[str]:
    """Open gates and those that a stop was let through with, as in the session's figures."""
    return sorted({*session.open_gates, *session.let_through}) if session else []


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
    if _failing_commands(doc, summary):
        return "make the failing command pass"
    return next(iter(_open_tasks(doc)), NOTHING_LEFT)


def update_packet(text: str, doc: MemorySession | None, gates: Sequence[str]) -> str:
    """The packet without finished tasks and closed gates."""
    if doc is None:
        return text
    lines, open_now = text.split("\n"), _open_tasks(doc)
    tasks = {line.removeprefix(OPEN_TASK) for line in lines if line.startswith(OPEN_TASK)}
    updated = (_update_line(line, tasks - set(open_now), open_now, gates) for line in lines)
    return "\n".join(line for line in updated if line is not None)


def _update_line(line: str, finished: set[str], open_now: Sequence[str], gates: Sequence[str]) -> str | None:
    if line.startswith(OPEN_GATES):
        names = [name for name in line.removeprefix(OPEN_GATES).split(", ") if name in gates]
        return OPEN_GATES + ", ".join(names) if names else None
    if line.startswith(NEXT_STEP) and line.removeprefix(NEXT_STEP) in finished:
        return NEXT_STEP + next(iter(open_now), NOTHING_LEFT)
    return None if line.removeprefix(OPEN_TASK) in finished else line


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
