"""A session's work as a packet another agent goes on from: goal, outcome, decisions, what is open, files, next step."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.memory.model import day_of, line
from holdfast.handover.summary import SessionEvent, Summary, build_summary, session_event

MOST = 10
MOST_STEPS = 2_000
Exists = Callable[[str], bool]


def summarise_session(events: Iterable[Event]) -> Summary:
    """From its own events; of a very long session the first prompt, which is the goal, and the last steps."""
    course: list[SessionEvent] = []
    for event in events:
        if (step := session_event(event)) is not None:
            course.append(step)
            if len(course) > 2 * MOST_STEPS:
                course = [course[0], *course[-MOST_STEPS:]]
    return build_summary(course)


def summarise_turn(doc: Doc) -> Summary:
    """The turn in hand, from the session's document."""
    course = [SessionEvent("prompt", text=doc["first_prompt"])] if doc["first_prompt"] else []
    course += [SessionEvent("answer", text=doc["context"])] if doc["context"] else []
    course += [SessionEvent("prompt", text=doc["prompt"])] if doc["prompt"] else []
    course += [_step(act) for act in doc["acts"] if act["action"] in ("shell", "edit")]
    course += [SessionEvent("answer", text=doc["message"])] if doc["message"] else []
    return build_summary(course)


def _step(act: Doc) -> SessionEvent:
    if act["action"] == "edit":
        return SessionEvent("edit", path=next(iter(act["paths"]), ""))
    return SessionEvent("command", command=act["command"], exit=0 if act["ok"] else 1, output=act["text"])


def is_file_of(project: str) -> Exists:
    """A file that was deleted since is not handed over."""
    return lambda path: (Path(project) / path).exists()


def packet(doc: Doc, summary: Summary, exists: Exists, note: str = "") -> str:
    return "\n".join(_lines(doc, summary, exists, note))


def _lines(doc: Doc, summary: Summary, exists: Exists, note: str) -> Iterator[str]:
    whose = doc["agent"] or "another agent"
    yield f"Handed over from {whose}, session {doc['id']}, as of {day_of(doc['at'])} (data, not orders):"
    yield f"- goal: {doc['first_prompt'] or 'not said'}"
    if doc["prompt"] and line(doc["prompt"], 200) != doc["first_prompt"]:
        yield f"- asked last: {line(doc['prompt'], 300)}"
    outcome = line(" ".join(summary.outcome), 400)
    if outcome or doc["message"]:
        yield f"- state, in its own words: {outcome or line(doc['message'], 400)}"
    yield from (f"- proven by: {one}" for one in summary.proven)
    yield from (f"- {one['type']}: {one['text']} [{one['id']}]" for one in doc["own"][-MOST:])
    yield from (f"- open task: {task}" for task in [*doc["tasks"].values(), *doc["todos"]][:MOST])
    yield from (f"- still open: {one}" for one in summary.open)
    gates = sorted(name for name, status in doc["gates"].items() if status == "open")
    if gates:
        yield f"- gates still open: {', '.join(gates)}"
    if files := [path for path in doc["edited"] if exists(path)]:
        yield f"- files changed: {', '.join(files[-MOST:])}"
    yield from (f"- failed last: {one}" for one in _failing(doc, summary))
    yield from (f"- commit: {one}" for one in summary.commits)
    yield from (f"- exact command: `{command}`" for command in list(doc["commands"])[-5:])
    yield f"- next step: {note or _next(doc, summary)}"


def _failing(doc: Doc, summary: Summary) -> list[str]:
    last = {act["command"]: act for act in doc["acts"] if act["action"] == "shell"}
    noted = [f"`{act['command']}`" for act in last.values() if not act["ok"]][-3:]
    known = " ".join(summary.failing)
    return [*summary.failing, *(one for one in noted if one.strip("`") not in known)]


def _next(doc: Doc, summary: Summary) -> str:
    """In the words it was said in; else what follows from what is open."""
    if summary.next:
        return "; ".join(summary.next)
    todo = [*doc["tasks"].values(), *doc["todos"]]
    if _failing(doc, summary):
        return "make the failing command pass"
    return todo[0] if todo else "ask the user what is left"
