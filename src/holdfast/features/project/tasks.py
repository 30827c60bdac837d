"""Tasks are gaps with a number: the number stays while the gap lasts, and the task closes when the gap does."""

from typing import Any

import msgspec

from holdfast.core.ports import Doc
from holdfast.features.project.gaps import Gap, open_gaps, task_identity
from holdfast.features.project.history import closing_line, with_line

SECTIONS = {"P0": "P0_blockers", "P1": "P1_urgent", "P2": "P2_maintenance", "P3": "P3_improvements"}
MOST_TASKS = 200
Task = dict[str, Any]


def settled(before: Doc, doc: Doc, at: int, pid: int = 0) -> Doc:
    """The same facts with the tasks they mean at this moment, and a line of history for each that closed."""
    gaps = {_identity(gap): gap for gap in open_gaps(doc, at)[:MOST_TASKS]}
    known = {_task_identity(task): task for task in doc["tasks"]}
    number, tasks = doc["next_task"], []
    for identity, gap in gaps.items():
        task = known.get(identity)
        tasks.append(_task(gap, task["id"], task["discovered_at"]) if task else _task(gap, f"task_{number:03}", at))
        number += task is None
    closed = [task for identity, task in known.items() if identity not in gaps]
    if not closed and tasks == doc["tasks"]:
        return doc
    after = {**doc, "tasks": tasks, "next_task": number}
    for task in closed:
        if line := closing_line(before, after, task):
            after = with_line(after, at, pid, line)
    return after


def with_tasks_of(doc: Doc, at: int) -> Doc:
    """For reading: the tasks as they are at this moment, where only time went by."""
    return settled(doc, doc, at)


def due(doc: Doc, now: int) -> bool:
    """Whether the passing of time alone opened or closed a gap since the tasks were last made."""
    gaps = {_identity(gap) for gap in open_gaps(doc, now)[:MOST_TASKS]}
    return gaps != {_task_identity(task) for task in doc["tasks"]}


def sections(tasks: list[Task]) -> dict[str, list[Task]]:
    return {name: [task for task in tasks if task["priority"] == level] for level, name in SECTIONS.items()}


def _identity(gap: Gap) -> str:
    return task_identity(gap.type, gap.key)


def _task_identity(task: Task) -> str:
    return task_identity(task["type"], task["key"])


def _task(gap: Gap, name: str, at: int) -> Task:
    plain = {field: _plain(value) for field, value in msgspec.structs.asdict(gap).items()}
    return {"id": name, "discovered_at": at, **plain}


def _plain(value: Any) -> Any:
    """Tuples are lists after a replay: a document must not differ by that."""
    return list(value) if isinstance(value, tuple) else value
