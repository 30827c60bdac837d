"""Tasks: what needs doing in every project, why, and when it is done; who holds which lease."""

from typing import Any

from holdfast.web.screen import Screen, Visit

PRIORITIES = {"P0": "nothing else can go on", "P1": "urgent", "P2": "soon", "P3": "when there is time"}


def tasks_page(visit: Visit) -> dict[str, Any]:
    projects = visit.view("project.list")["projects"]
    chosen = [one for one in projects if not visit.project or one["root"] == visit.project]
    lists = [visit.view("project.tasks", project=one["root"]) for one in chosen]
    tasks = [{**task, "root": of["root"], "project": of["project"]} for of in lists for task in of["tasks"]]
    lease_list = visit.view("project.leases")
    return {
        "projects": projects,
        "sections": [(name, words, [t for t in tasks if t["priority"] == name]) for name, words in PRIORITIES.items()],
        "count": len(tasks),
        "leases": [lease for lease in lease_list["leases"] if lease["holders"] or lease["waiters"]],
        "now": lease_list["now"],
    }


SCREEN = Screen(
    name="tasks", title="Tasks", path="/tasks", page=tasks_page, key="t", live="project. gates. uat. turn. reindex."
)
