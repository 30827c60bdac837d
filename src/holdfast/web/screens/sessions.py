"""Sessions: all of them, filtered, sorted and paged; a page of the list is an address that can be kept."""

import time
from datetime import datetime
from typing import Any

from holdfast.core.errors import HoldfastError
from holdfast.usage.report import format_dollars
from holdfast.web.screen import Screen, Visit

PAGE = 100
COLUMNS = (
    ("title", "Session", ""), ("last", "Last", "n"), ("duration", "Duration", "n"), ("turns", "Turns", "n"),
    ("tools", "Tools", "n"), ("tokens", "Tokens", "n"), ("cost", "Cost", "n"),
)  # fmt: skip
RANGES = (("", "Any time"), ("1", "Today"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days"))
CHOSEN = ("project", "agent", "state", "branch", "model", "text", "days", "tokens", "cost", "sort", "reverse")
MICRO = 1_000_000
DAY_MS = 86_400_000


def sessions_page(visit: Visit) -> dict[str, Any]:
    chosen = {name: visit.query.get(name, "") for name in CHOSEN}
    costs = _costs(visit)
    offset = visit.number("offset")
    answer = visit.view("sessions.table", costs=costs, offset=offset, limit=PAGE, **_table_arguments(chosen, visit))
    for row in answer["sessions"]:
        row["cost"] = format_dollars(costs[row["id"]]) if row["id"] in costs else "–"
    return {
        "told": answer,
        "chosen": chosen,
        "kept": {name: value for name, value in chosen.items() if value},
        "columns": COLUMNS,
        "ranges": RANGES,
        "filtered": any(chosen[name] for name in CHOSEN if name not in ("sort", "reverse")),
        "before": max(0, offset - PAGE),
        "after": offset + PAGE if offset + PAGE < answer["total"] else 0,
        "first": min(offset + 1, answer["total"]),
        "last": min(offset + PAGE, answer["total"]),
    }


def _table_arguments(chosen: dict[str, str], visit: Visit) -> dict[str, Any]:
    named = {name: chosen[name] for name in ("project", "agent", "state", "branch", "model", "text")}
    return {
        **named,
        "since": _start_of_days(chosen["days"]),
        "min_tokens": visit.number("tokens"),
        "min_cost": visit.number("cost") * MICRO,
        "sort": chosen["sort"] or "last",
        "reverse": bool(chosen["reverse"]),
    }


def _start_of_days(days: str) -> int:
    """Whole days of this machine's calendar: "today" begins at midnight."""
    if not days.isdecimal() or len(days) > 4 or not int(days):
        return 0
    midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return int(midnight.timestamp() * 1000) - (int(days) - 1) * DAY_MS


class _Costs:
    """Adding up every session takes a while on a long log: kept for some seconds."""

    KEPT_S = 10.0

    def __init__(self) -> None:
        self._until = 0.0
        self._of: object = None
        self._known: dict[str, int] = {}

    def __call__(self, visit: Visit) -> dict[str, int]:
        if time.monotonic() > self._until or self._of is not visit.client:
            self._known = self._look(visit)
            self._until, self._of = time.monotonic() + self.KEPT_S, visit.client
        return self._known

    @staticmethod
    def _look(visit: Visit) -> dict[str, int]:
        try:
            groups = visit.view("cost.report", by="session")["groups"]
        except HoldfastError:
            return {}
        return {one["group"]: one["cost_micro_dollars"] for one in groups if one["cost_micro_dollars"] is not None}


_costs = _Costs()

SCREEN = Screen(
    name="sessions", title="Sessions", path="/sessions", page=sessions_page, key="l", live="session. prompt. turn. permission.",
    script="sessions.js",
)  # fmt: skip
