"""Tasks are gaps with a number: the number stays while the gap lasts, and the task closes when the gap does."""

from typing import Any

import msgspec

from holdfast.core.ports import Doc
from holdfast.features.project.gaps import Gap, open_gaps
from holdfast.features.project.history import with_line

SECTIONS = {"P0": "P0_blockers", "P1": "P1_urgent", "P2": "P2_maintenance", "P3": "P3_improvements"}
MOST_TASKS = 200
Task = dict[str, Any]


def settled(doc: Doc, at: int, pid: int = 0) -> Doc:
    """The same facts with the tasks they mean at this moment, and a line of history for each that is done."""
    gaps = {_identity(gap): gap for gap in open_gaps(doc, at)[:MOST_TASKS]}
    before = {_task_identity(task): task for task in doc["tasks"]}
    number, tasks = doc["next_task"], []
    for identity, gap in gaps.items():
        known = before.get(identity)
        tasks.append(_task(gap, known["id"], known["discovered_at"]) if known else _task(gap, f"task_{number:03}", at))
        number += known is None
    done = [task for identity, task in before.items() if identity not in gaps]
    if not done and tasks == doc["tasks"]:
        return doc
    after = {**doc, "tasks": tasks, "next_task": number}
    for task in done:
        line = {"change_type": "task_completed", "task_id": task["id"], "summary": f"Done: {task['description']}"}
        after = with_line(after, at, pid, line)
    return after


def due(doc: Doc, now: int) -> bool:
    """Whether the passing of time alone opened or closed a gap since the tasks were last made."""
    gaps = {_identity(gap) for gap in open_gaps(doc, now)[:MOST_TASKS]}
    return gaps != {_task_identity(task) for task in doc["tasks"]}


def sections(tasks: list[Task]) -> dict[str, list[Task]]:
    return {name: [task for task in tasks if task["priority"] == level] for level, name in SECTIONS.items()}


def _identity(gap: Gap) -> tuple[str, str]:
    return gap.type, gap.key


def _task_identity(task: Task) -> tuple[str, str]:
    return task["type"], task["key"]


def _task(gap: Gap, name: str, at: int) -> Task:
    plain = {field: _plain(value) for field, value in msgspec.structs.asdict(gap).items()}
    return {"id": name, "discovered_at": at, **plain}


def _plain(value: Any) -> Any:
    """Tuples are lists after a replay: a document must not differ by that."""
    return list(value) if isinstance(value, tuple) else value
