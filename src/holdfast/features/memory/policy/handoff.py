"""Builds the hand-over packet for another agent."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from holdfast.analysis.handover.session_history import SessionHistory
from holdfast.analysis.handover.summary import Summary
from holdfast.core.event import Event
from holdfast.features.memory.state.documents import MemorySession, SessionGates, day_of, one_line

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
        ("- failed last: ", summary.failing),
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


def _next_step(doc: MemorySession, summary: Summary) -> str:
    """As it was said; else derived from what is open."""
    if summary.next:
        return "; ".join(summary.next)
    if summary.failing:
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
