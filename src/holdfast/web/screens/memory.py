"""Memory: what was decided, fixed and learned, and what of it agents were told."""

from typing import Any

from holdfast.web.screen import Screen, Visit

MOST = 100


def memory_page(visit: Visit) -> dict[str, Any]:
    wanted_type = visit.query.get("type", "")
    status = visit.query.get("status", "active")
    listed = visit.view("memory.listed", everywhere=not visit.project, status=status, limit=MOST)["observations"]
    types = sorted({one["type"] for one in listed})
    return {
        "observations": [one for one in listed if not wanted_type or one["type"] == wanted_type],
        "types": types,
        "wanted": wanted_type,
        "status": status,
        "inbox": visit.view("memory.listed", everywhere=not visit.project, status="candidate", limit=MOST)[
            "observations"
        ],
        "injected": visit.view("memory.injected", everywhere=not visit.project, limit=30)["injected"],
        "projects": visit.view("project.list")["projects"],
        "meter": visit.view("memory.meter"),
    }


SCREEN = Screen(name="memory", title="Memory", path="/memory", page=memory_page, key="m", live="memory. decision.")
