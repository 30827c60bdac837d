"""Takes over SESSION_STATE documents that Holdfast did not write: tasks, history, focus."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.core.event import Event, own_event
from holdfast.core.kinds.project_events import DOCUMENT_SOURCE, AdoptedLine, DocumentAdopted, TaskAdded, TaskDone
from holdfast.core.lazy import lazy_pattern
from holdfast.features.project.document.old_formats import (
    FENCE,
    OLD_VERSION,
    BadState,
    as_v4,
    decode_text,
    entries_of,
    entry_text,
    parsed,
    priority_of,
)
from holdfast.features.project.document.text import HEAD_MARK, count_with_noun
from holdfast.features.project.state import MAX_HISTORY, Project

MAX_TASKS = 500
OVER = ("done", "complete", "completed", "closed", "cancelled", "resolved")
UNDERSTOOD = frozenset(
    "SCHEMA_VERSION LAST_UPDATED PROJECT CURRENT_STATE TASKS PROJECT_RESOLUTION WORK_CONTEXT LEARNED_PATTERNS RESOURCE_LOCKS "
    "STATE_HISTORY NEXT_ACTIONS next_actions BLOCKERS RECENT_WORK CURRENT_FOCUS GIT_STATUS GIT TESTS TOKEN_BUDGET".split()
)
"""What a section says of git, tests, locks and the like is never believed: the next look finds it out."""
_HEADING = lazy_pattern(r"^#{1,6} .*$", re.MULTILINE)
_TASK_ID = lazy_pattern(r"task_(\d{3,9})")
# A list item with an optional check mark and optional quotes: `- [x] "text"`, `3. text`.
_LISTED = lazy_pattern(r"""^\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[(?P<mark>[ xX])\]\s*)?["']?(?P<text>.*?)["']?\s*$""")
_FIELD = lazy_pattern(r"^(?:id|path|pattern|intent|timestamp|action|agent|description|project|name):(\s|$)")
"""What the entries of the document's own lists begin with."""
# The heading of one of our own lists, such as `P1_urgent:`.
_SECTION = lazy_pattern(r"^\s*(P[0-3])_\w+:\s*$")


class Adoption(msgspec.Struct):
    """`left` names what could not be taken, each with the reason; `done` are tasks of ours that it says are done."""

    version: str = ""
    tasks: list[TaskAdded] = []
    done: list[str] = []
    history: list[AdoptedLine] = []
    focus: str = ""
    left: list[str] = []
    is_ours: bool = False


def adopt_document(doc: Project, path: Path, content: bytes, now: int) -> list[Event]:
    """The events that bring it in. The same file twice gives the same events, which happen once."""
    adoption = read_adoption(content, doc)
    digest = hashlib.sha256(content).hexdigest()
    known_texts = {task.description for task in doc.own_tasks}
    # The same words in another version of our own file are a new task; in a foreign file they are the same one.
    version = digest if adoption.is_ours else ""

    def keyed(payload: TaskAdded | DocumentAdopted, *parts: str) -> Event:
        return msgspec.structs.replace(
            own_event(payload, now, project=doc.project), key=adoption_key(doc.project, *parts)
        )

    events = [
        keyed(msgspec.structs.replace(task, why=f"It was written into {path.name}."), task.description, version)
        for task in adoption.tasks
        if task.description not in known_texts
    ]
    # Only the user's own tasks: derived ones close when their gap does.
    done = [task for task in doc.tasks if task.id in adoption.done and task.type == "own_task"]
    events += [own_event(TaskDone(key=task.key, id=task.id), now, project=doc.project) for task in done]
    adopted = DocumentAdopted(
        path=str(path), version=adoption.version, tasks=len(events), history=adoption.history, focus=adoption.focus,
        left=adoption.left,
    )  # fmt: skip
    return [*events, keyed(adopted, str(path), digest)]


def adoption_key(*parts: str) -> str:
    return hashlib.sha256("\n".join((DOCUMENT_SOURCE, *parts)).encode("utf-8", "replace")).hexdigest()


def describe_adoption(data: DocumentAdopted) -> str:
    """One line for people: what was taken over, and what was not."""
    taken = [count_with_noun(data.tasks, "task")] if data.tasks else []
    taken += [count_with_noun(len(data.history), "line of history", "lines of history")] if data.history else []
    taken += [f"the focus ({data.focus[:60]})"] if data.focus else []
    line = f"{Path(data.path).name}{f', version {data.version}' if data.version else ''}: "
    line += f"{', '.join(taken)} taken over" if taken else "nothing to take over"
    return line + (f"; not taken: {'; '.join(data.left[:5])}" if data.left else "")


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_adoption(content: bytes, doc: Project | None = None) -> Adoption:
    """Never fails: a file that is no YAML is read line by line, and one that is no text at all is left."""
    try:
        text = decode_text(content)
    except UnicodeDecodeError:
        return Adoption(left=["the whole file (it is no text)"])
    try:
        state = parsed(text)
        adoption = _read_state(state, doc if doc and _is_ours(text, state, doc) else None)
        if FENCE.search(text) and _HEADING.sub("", FENCE.sub("", text, count=1)).strip():
            adoption.left.append("the text around its YAML")
        return adoption
    except BadState as error:
        return _read_lines(text, doc, error)


def _is_ours(text: str, state: Mapping[str, Any], doc: Project) -> bool:
    """An editor that writes YAML in its own way loses our comments, not our numbers and times."""
    if HEAD_MARK in text:
        return True
    ours = {(task.id, task.discovered_at // 1000) for task in doc.tasks}
    ours |= {(line.summary, line.timestamp // 1000) for line in doc.history}
    history = state.get("STATE_HISTORY")
    written = [(one.get("id"), one.get("discovered_at")) for one in entries_of(state.get("TASKS"))]
    written += [
        (one.get("summary"), one.get("timestamp"))
        for one in (history if isinstance(history, list) else ())
        if isinstance(one, Mapping)
    ]
    return any((str(what), (parse_milliseconds(at) or 0) // 1000) in ours for what, at in written)


def _read_state(state: dict[str, Any], doc: Project | None) -> Adoption:
    version = str(state.get("SCHEMA_VERSION", OLD_VERSION))
    v4 = as_v4(state)
    adoption = Adoption(version=version, is_ours=doc is not None)
    sections = [(v4.get("TASKS"), "")]
    if doc is not None or version[:1] == "4":  # Sections of version 3 in a version 4 file: a person's.
        sections += [(state.get("BLOCKERS"), "P0"), (state.get("NEXT_ACTIONS"), ""), (state.get("next_actions"), "")]
    for written, priority in sections:
        _add_tasks(adoption, written, priority, doc)
    for name in state:
        if name not in UNDERSTOOD:
            _add_unknown_section(adoption, name, state[name])
    if isinstance(state.get("CURRENT_STATE"), str | list):
        adoption.left.append("CURRENT_STATE (no sections: the next look finds it out)")
    # Our own document was changed by hand: its history and focus are known here already.
    if doc is None:
        adoption.history = list(_adopted_lines(v4.get("STATE_HISTORY")))
        context = v4.get("WORK_CONTEXT")
        adoption.focus = str(context.get("current_phase") or "")[:300] if isinstance(context, Mapping) else ""
    return adoption


def _add_unknown_section(adoption: Adoption, name: str, value: Any) -> None:
    """A list is taken as tasks; anything else is reported."""
    if isinstance(value, list) and all(isinstance(item, str | Mapping) for item in value):
        _add_tasks(adoption, value, "", None)
    else:
        adoption.left.append(f"{name[:60]} (an unknown section)")


def _add_tasks(adoption: Adoption, written: Any, priority: str, doc: Project | None) -> None:
    for entry in entries_of(written, priority):
        description = entry_text(entry)
        if doc is not None and (ours := _task_of_ours(entry, doc)):
            adoption.done += [ours] if _is_over(entry) else []
        elif not description:
            adoption.left.append("a task without a description")
        elif not _is_over(entry) and len(adoption.tasks) < MAX_TASKS:
            level = priority_of(entry.get("priority"))
            adoption.tasks.append(_found_task(description, level, _done_when(entry)))


def _found_task(description: str, priority: str, done_when: list[str]) -> TaskAdded:
    return TaskAdded(description=description, priority=priority, done_when=done_when, imported=DOCUMENT_SOURCE)


def _task_of_ours(fields: Mapping[str, Any], doc: Project) -> str:
    """Its id, where the entry is one that we wrote: numbered by us, with the time of its discovery."""
    match = _TASK_ID.fullmatch(str(fields.get("id") or ""))
    # A number that was not given out yet is not ours.
    ours = match and int(match[1]) < doc.next_task and fields.get("discovered_at")
    return str(fields["id"]) if ours else ""


def _is_over(fields: Mapping[str, Any]) -> bool:
    return str(fields.get("status", "")).lower() in OVER


def _done_when(fields: Mapping[str, Any]) -> list[str]:
    names = ("done_when", "resolution_criteria", "completion_criteria", "success_criteria")
    value: Any = next((fields[name] for name in names if fields.get(name)), [])
    return [str(one)[:300] for one in value][:20] if isinstance(value, list) else [str(value)[:300]]


def _adopted_lines(written: Any) -> Iterator[AdoptedLine]:
    for line in written[:MAX_HISTORY] if isinstance(written, list) else ():
        if isinstance(line, Mapping) and line.get("summary"):
            at = parse_milliseconds(line.get("timestamp"))
            yield AdoptedLine(at=at, section=str(line.get("section") or "")[:100], summary=str(line["summary"])[:300])


def _read_lines(text: str, doc: Project | None, error: BadState) -> Adoption:
    """For a file that is no YAML any more: list items that are no fields of ours."""
    adoption = Adoption(left=[f"what is no list item ({error.detail})"])
    known_texts = _known_texts(doc)
    priority = "P2"
    for line in text.splitlines()[:20_000]:
        if section := _SECTION.match(line):
            priority = section[1]
        match = _LISTED.match(line)
        if not match or match["mark"] in ("x", "X"):
            continue
        words = " ".join(match["text"].split())[:500]
        if words and words not in known_texts and not _FIELD.match(words) and len(adoption.tasks) < MAX_TASKS:
            adoption.tasks.append(_found_task(words, priority, []))
    return adoption


def _known_texts(doc: Project | None) -> set[str]:
    tasks = doc.tasks if doc else []
    lists = [text for task in tasks for text in (*task.done_when, *task.blocking, *task.capabilities, *task.resources)]
    return {*lists, *(doc.git.conflicts if doc else ()), *(task.description for task in tasks)}
