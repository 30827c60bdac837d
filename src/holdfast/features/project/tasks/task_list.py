"""Tasks are gaps with a number: the number stays while the gap lasts, and the task closes when the gap does."""

import msgspec

from holdfast.features.project.state import Project, Task
from holdfast.features.project.tasks.gaps import Gap, open_gaps
from holdfast.features.project.tasks.history import closing_line, with_line

SECTIONS = {"P0": "P0_blockers", "P1": "P1_urgent", "P2": "P2_maintenance", "P3": "P3_improvements"}
MAX_TASKS = 200


def update_tasks(before: Project, doc: Project, at: int, pid: int = 0) -> Project:
    """The same facts with the tasks they mean at this moment, and a line of history for each that closed."""
    gaps = {gap.identity: gap for gap in open_gaps(doc, at)[:MAX_TASKS]}
    known = {task.identity: task for task in doc.tasks}
    number = doc.next_task
    tasks = []
    for identity, gap in gaps.items():
        task = known.get(identity)
        tasks.append(_task(gap, task.id, task.discovered_at) if task else _task(gap, f"task_{number:03}", at))
        number += task is None
    closed = [task for identity, task in known.items() if identity not in gaps]
    if not closed and tasks == doc.tasks:
        return doc
    after = msgspec.structs.replace(doc, tasks=tasks, next_task=number)
    for task in closed:
        if line := closing_line(before, after, task):
            after = with_line(after, at, pid, line)
    return after


def tasks_at(doc: Project, at: int) -> Project:
    """For reading: the tasks as they are at this moment, where only time went by."""
    return update_tasks(doc, doc, at)


def is_due(doc: Project, now: int) -> bool:
    """Whether the passing of time alone opened or closed a gap since the tasks were last made."""
    return {gap.identity for gap in open_gaps(doc, now)[:MAX_TASKS]} != {task.identity for task in doc.tasks}


def by_section(tasks: list[Task]) -> dict[str, list[Task]]:
    return {name: [task for task in tasks if task.priority == level] for level, name in SECTIONS.items()}


def _task(gap: Gap, name: str, at: int) -> Task:
    """A list where the rule gave a tuple: a document must not differ from its replay."""
    return Task(
        id=name,
        discovered_at=at,
        type=gap.type,
        key=gap.key,
        priority=gap.priority,
        description=gap.description,
        why=gap.why,
        done_when=list(gap.done_when),
        method=gap.method,
        blocking=list(gap.blocking),
        capabilities=list(gap.capabilities),
        resources=list(gap.resources),
        complexity=gap.complexity,
        minutes=gap.minutes,
        confidence=gap.confidence,
        basis=gap.basis,
        seen_at=gap.seen_at,
    )
