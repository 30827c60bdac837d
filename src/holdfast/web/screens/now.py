"""Now: every live session of every project, those that wait for you first."""

from typing import Any

from holdfast.web.screen import Screen, Visit

ENDED_SHOWN = 10


def now_page(visit: Visit) -> dict[str, Any]:
    who = visit.view("sessions.who")
    rows = who["sessions"]
    latest = visit.view("sessions.list", all=True, limit=ENDED_SHOWN * 2)["sessions"]
    return {
        "waiting": [row for row in rows if row["needs"]],
        "working": [row for row in rows if not row["needs"] and row["state"] == "working"],
        "quiet": [row for row in rows if not row["needs"] and row["state"] != "working"],
        "ended": [row for row in latest if row["state"] == "ended"][:ENDED_SHOWN],
        "projects": len({row["project"] for row in rows}),
        "today": visit.view("sessions.activity", days=1, detailed=1)["today"],
        "now": who["now"],
    }


SCREEN = Screen(name="now", title="Now", path="/", page=now_page, key="n", live="*")
