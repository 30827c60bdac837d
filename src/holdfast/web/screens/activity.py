"""Activity: a year at a glance, and who did how much where."""

import bisect
from datetime import date
from typing import Any

from holdfast.web.screen import Screen, Visit

WEEKS = 53
MEASURES = (("ms", "Time"), ("tokens", "Tokens"), ("tools", "Tool calls"), ("turns", "Turns"))
LEVELS = 4
RANGES = (7, 30, 90)


def activity_page(visit: Visit) -> dict[str, Any]:
    measure = next((name for name, _ in MEASURES if name == visit.query.get("by")), "ms")
    span = next((n for n in RANGES if str(n) == visit.query.get("days")), 30)
    activity = visit.view("sessions.activity", days=WEEKS * 7, detailed=span)
    return {
        "today": activity["today"],
        "heat": heat_map(activity["days"], measure),
        "projects": sum_rows(activity["rows"], "project", measure),
        "agents": sum_rows(activity["rows"], "agent", measure),
        "days": day_bars(activity["days"][-span:], measure),
        "measure": measure,
        "measures": MEASURES,
        "span": span,
        "ranges": RANGES,
    }


def heat_map(days: list[dict[str, Any]], measure: str) -> dict[str, Any]:
    """A column a week, a square a day; the darkest is the busiest."""
    first = date.fromisoformat(days[0]["day"])
    ordered = sorted(day[measure] for day in days if day[measure])
    cells = []
    months: list[dict[str, Any]] = []
    for n, day in enumerate(days):
        day_index = n + first.weekday()
        when = date.fromisoformat(day["day"])
        if when.day == 1:
            months.append({"x": day_index // 7, "name": when.strftime("%b")})
        cells.append({**day, "x": day_index // 7, "y": day_index % 7, "level": _heat_level(day[measure], ordered)})
    return {"cells": cells, "months": months, "weeks": cells[-1]["x"] + 1}


def _heat_level(value: int | None, ordered: list[int]) -> int:
    """By quarter of the busy days, so that one huge day does not make all others pale."""
    if not value:
        return 0
    rank = bisect.bisect_right(ordered, value)
    return -(-rank * LEVELS // len(ordered))


def day_bars(days: list[dict[str, Any]], measure: str) -> list[dict[str, Any]]:
    most = max((day[measure] or 0 for day in days), default=0) or 1
    return [{**day, "share": round((day[measure] or 0) / most * 100, 1)} for day in days]


def sum_rows(rows: list[dict[str, Any]], by: str, measure: str) -> list[dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for row in rows:
        one = groups.setdefault(row[by], {"name": row[by], "tokens": None})
        for name, value in row.items():
            if isinstance(value, int):
                one[name] = (one.get(name) or 0) + value
    most = max((one[measure] or 0 for one in groups.values()), default=0) or 1
    ranked = sorted(groups.values(), key=lambda one: -(one[measure] or 0))
    return [{**one, "share": round((one[measure] or 0) / most * 100, 1)} for one in ranked]


SCREEN = Screen(
    name="activity", title="Activity", path="/activity", page=activity_page, key="a", live="turn. model. session."
)
