"""What a SESSION_STATE document that is not of our writing means for the project: tasks, history, focus, and what is left out.

A version 3 file where it lies, another tool's version 4, or ours with a person's additions: all come in by the same way.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event, own_event
from holdfast.core.kinds.project_events import AdoptedLine, DocumentAdopted, TaskAdded, TaskDone
from holdfast.features.project.document.old_formats import (
    OLD_VERSION,
    BadState,
    as_v4,
    decode_text,
    parsed,
    priority_of,
)
from holdfast.features.project.document.text import HEAD_MARK, plural
from holdfast.features.project.state import MAX_HISTORY, Project, Task
from holdfast.usage.fields import milliseconds

SOURCE = "session-state"
MAX_TASKS = 500
OVER = ("done", "complete", "completed", "closed", "cancelled", "resolved")
UNDERSTOOD = frozenset(
    "SCHEMA_VERSION LAST_UPDATED PROJECT CURRENT_STATE TASKS PROJECT_RESOLUTION WORK_CONTEXT LEARNED_PATTERNS RESOURCE_LOCKS "
    "STATE_HISTORY NEXT_ACTIONS next_actions BLOCKERS RECENT_WORK CURRENT_FOCUS GIT_STATUS GIT TESTS TOKEN_BUDGET".split()
)
"""What a section says of git, tests, locks and the like is looked at anew, never believed."""
_TASK_ID = re.compile(r"task_(\d{3,9})")
_LISTED = re.compile(r"""^\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[(?P<mark>[ xX])\]\s*)?["']?(?P<text>.*?)["']?\s*$""")
_FIELD = re.compile(r"^(?:id|path|pattern|intent|timestamp|action|agent|description|project|name):(\s|$)")
"""What the entries of the document's own lists begin with."""
_SECTION = re.compile(r"^\s*(P[0-3])_\w+:\s*$")


class FoundTask(msgspec.Struct, frozen=True):
    description: str
    priority: str = "P2"
    done_when: list[str] = []


class Adoption(msgspec.Struct):
    """`left` names what could not be taken, each with the reason; `done` are tasks of ours that it says are done."""

    version: str = ""
    tasks: list[FoundTask] = []
    done: list[str] = []
    history: list[AdoptedLine] = []
    focus: str = ""
    left: list[str] = []


def adopt_document(doc: Project, path: Path, content: bytes, now: int) -> list[Event]:
    """The events that bring it in. The same file twice gives the same events, which happen once."""
    found = read_adoption(content, doc)
    made_by_us = HEAD_MARK.encode() in content
    digest = hashlib.sha256(content).hexdigest()
    known = {task.description for task in doc.own_tasks}
    events = []
    for task in found.tasks:
        if task.description not in known:
            key = adoption_key(doc.project, task.description, digest if made_by_us else "")
            added = TaskAdded(
                description=task.description, priority=task.priority, done_when=task.done_when, imported=SOURCE,
                why=f"It was written into {path.name}.",
            )  # fmt: skip
            events.append(msgspec.structs.replace(own_event(added, now, project=doc.project), key=key))
    events += _finished(doc, found.done, now)
    adopted = DocumentAdopted(
        path=str(path),
        version=found.version,
        tasks=len(events),
        history=found.history,
        focus=found.focus,
        left=found.left,
    )
    key = adoption_key(doc.project, str(path), digest)
    return [*events, msgspec.structs.replace(own_event(adopted, now, project=doc.project), key=key)]


def adoption_key(*parts: str) -> str:
    return hashlib.sha256("\n".join((SOURCE, *parts)).encode("utf-8", "replace")).hexdigest()


def _finished(doc: Project, ids: Iterable[str], now: int) -> Iterator[Event]:
    """Only tasks of one's own: derived ones close when what they were found on does."""
    for task in doc.tasks:
        if task.id in ids and task.type == "own_task":
            yield own_event(TaskDone(key=task.key, id=task.id), now, project=doc.project)


def describe(data: DocumentAdopted) -> str:
    """One line for people: what was taken, and what could not be."""
    taken = [plural(data.tasks, "task")] if data.tasks else []
    taken += [plural(len(data.history), "line of history", "lines of history")] if data.history else []
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
        return _read_state(state, doc if HEAD_MARK in text else None)
    except BadState as error:
        return _read_lines(text, doc, error)


def _read_state(state: Mapping[str, Any], doc: Project | None) -> Adoption:
    version = str(state.get("SCHEMA_VERSION", OLD_VERSION))
    v4 = as_v4(dict(state))
    found = Adoption(version=version, tasks=[], done=[], history=[], left=[])
    for priority, item in _listed(v4.get("TASKS"), ""):
        _add_task(found, priority, item, doc)
    if doc is not None or version[:1] == "4":  # Sections of version 3 in a version 4 file: a person's.
        for name, level in (("BLOCKERS", "P0"), ("NEXT_ACTIONS", ""), ("next_actions", "")):
            for priority, item in _listed(state.get(name), level):
                _add_task(found, priority, item, doc)
    for name in state:
        if name not in UNDERSTOOD:
            _add_unknown_section(found, str(name), state[name])
    if doc is None:
        found.history = list(_history(v4.get("STATE_HISTORY")))
        context = v4.get("WORK_CONTEXT")
        found.focus = str(context.get("current_phase") or "")[:300] if isinstance(context, Mapping) else ""
    found.tasks = found.tasks[:MAX_TASKS]
    return found


def _add_unknown_section(found: Adoption, name: str, value: Any) -> None:
    """A list somebody wrote is taken as things to do; anything else is named."""
    if isinstance(value, list) and all(isinstance(item, str | Mapping) for item in value):
        for item in value:
            _add_task(found, "", item, None)
    else:
        found.left.append(f"{name[:60]} (an unknown section)")


def _listed(written: Any, priority: str) -> Iterator[tuple[str, Any]]:
    """Lists, or mappings of lists by priority: both have been seen. The key `P1` or `P1_urgent` is the priority."""
    if isinstance(written, Mapping):
        for key, value in written.items():
            level = str(key)[:2].upper() if re.match(r"(?i)p[0-3](?![a-z0-9])", str(key)) else priority
            yield from _listed(value if isinstance(value, list) else [value], level)
    elif isinstance(written, str):
        yield priority, written
    elif isinstance(written, list):
        yield from ((priority, item) for item in written)


def _add_task(found: Adoption, priority: str, item: Any, doc: Project | None) -> None:
    fields: Mapping[str, Any] = item if isinstance(item, Mapping) else {"description": item}
    description = _description(fields)
    if doc is not None and (ours := _task_of_ours(fields, doc)):
        found.done += [ours] if _is_over(fields) else []
    elif not description:
        found.left.append("a task without a description")
    elif not _is_over(fields):
        level = priority or priority_of(fields.get("priority"))
        found.tasks.append(FoundTask(description, level, _done_when(fields)))


def _task_of_ours(fields: Mapping[str, Any], doc: Project) -> str:
    """Its id, where the entry is one that we wrote: numbered by us, with the time of its discovery."""
    match = _TASK_ID.fullmatch(str(fields.get("id") or ""))
    ours = match and int(match[1]) < doc.next_task and fields.get("discovered_at")
    return str(fields["id"]) if ours else ""


def _is_over(fields: Mapping[str, Any]) -> bool:
    return str(fields.get("status", "")).lower() in OVER


def _description(fields: Mapping[str, Any]) -> str:
    names = ("description", "action", "task", "title", "name")
    text = next((fields[name] for name in names if fields.get(name)), "")
    return " ".join(str(text).split())[:500]


def _done_when(fields: Mapping[str, Any]) -> list[str]:
    names = ("done_when", "resolution_criteria", "completion_criteria", "success_criteria")
    value: Any = next((fields[name] for name in names if fields.get(name)), [])
    return [str(one)[:300] for one in value][:20] if isinstance(value, list) else [str(value)[:300]]


def _history(written: Any) -> Iterator[AdoptedLine]:
    for line in written[:MAX_HISTORY] if isinstance(written, list) else ():
        if isinstance(line, Mapping) and line.get("summary"):
            at = milliseconds(line.get("timestamp"))
            yield AdoptedLine(at=at, section=str(line.get("section") or "")[:100], summary=str(line["summary"])[:300])


def _read_lines(text: str, doc: Project | None, error: BadState) -> Adoption:
    """For a file that is no YAML any more: list items that are no fields of ours."""
    found = Adoption(tasks=[], done=[], history=[], left=[f"what is no list item ({error.detail})"])
    known = _known_texts(doc)
    priority = "P2"
    for line in text.splitlines()[:20_000]:
        if section := _SECTION.match(line):
            priority = section[1]
        match = _LISTED.match(line)
        if not match or match["mark"] in ("x", "X"):
            continue
        words = " ".join(match["text"].split())[:500]
        if words and words not in known and not _FIELD.match(words):
            found.tasks.append(FoundTask(words, priority))
    found.tasks = found.tasks[:MAX_TASKS]
    return found


def _known_texts(doc: Project | None) -> set[str]:
    tasks: list[Task] = doc.tasks if doc else []
    lists = [text for task in tasks for text in (*task.done_when, *task.blocking, *task.capabilities, *task.resources)]
    evidence = doc.git.conflicts if doc else []
    return {*lists, *evidence, *(task.description for task in tasks)}
