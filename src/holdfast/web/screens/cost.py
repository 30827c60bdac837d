"""Cost: tokens and money of all agents, by day, project, model and the other usual groups."""

import time
from datetime import datetime, timedelta
from typing import Any

from holdfast.usage.report import UNTOLD, format_money, format_token_count, reported_money, token_amounts
from holdfast.web.screen import Screen, Visit

GROUPINGS = (
    ("day", "Day"), ("month", "Month"), ("session", "Session"), ("turn", "Turn"), ("project", "Project"),
    ("agent", "Agent"), ("model", "Model"), ("branch", "Branch"), ("commit", "Commit"), ("block", "Five hours"),
)  # fmt: skip
RANGES = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("all", "Everything"))
MOST_ROWS = 200
BY_TIME = frozenset(("day", "month", "block"))


def cost_page(visit: Visit) -> dict[str, Any]:
    by = next((name for name, _ in GROUPINGS if name == visit.query.get("by")), "day")
    span = next((name for name, _ in RANGES if name == visit.query.get("days")), "30")
    report = visit.view("cost.report", by=by, since=_start_of_range(span), project=visit.project)
    groups = report["groups"][::-1] if by in BY_TIME else report["groups"]
    most = max((group["cost_micro_dollars"] or 0 for group in groups), default=0) or 1
    return {
        "rows": [cost_row(by, group, most) for group in groups[:MOST_ROWS]],
        "left_out": max(0, len(groups) - MOST_ROWS),
        "whole": cost_row("", report["total"], most),
        "today": _total_since(visit, _start_of_range("1")),
        "month": _total_since(visit, _start_of_month()),
        "notes": report["notes"],
        "by": by,
        "title": dict(GROUPINGS)[by],
        "span": span,
        "groupings": GROUPINGS,
        "ranges": RANGES,
    }


def cost_row(by: str, group: dict[str, Any], most: int) -> dict[str, Any]:
    *parts, whole = token_amounts(group)
    return {
        "name": _group_name(by, group),
        "id": group["group"],
        "session": group["group"].rpartition("/")[0] if by == "turn" else group["group"],
        "figures": [format_token_count(n) for n in parts],
        "total": format_token_count(whole),
        "cost": format_money(group),
        "reported": reported_money(group),
        "models": ", ".join(group["models"]),
        "sessions": group["sessions"],
        "calls": group["calls"],
        "share": round((group["cost_micro_dollars"] or 0) / most * 100, 1),
    }


def _group_name(by: str, group: dict[str, Any]) -> str:
    if by == "block":
        start, end = (datetime.fromtimestamp(group[name] / 1000) for name in ("start", "end"))
        return f"{start:%Y-%m-%d %H:%M}–{end:%H:%M}{', open' if group['open'] else ''}"
    if by == "turn" and group["group"]:
        return f"turn {group['group'].rpartition('/')[2]}"
    return group["group"][:12] if by == "commit" and group["group"] else group["group"] or UNTOLD


def _total_since(visit: Visit, since: int) -> dict[str, Any]:
    return cost_row("", visit.view("cost.report", by="model", since=since, project=visit.project)["total"], 1)


def _start_of_range(span: str) -> int:
    """Midnight of this machine so many days ago, today included; 0 for everything."""
    if span == "all":
        return 0
    midnight = datetime.fromtimestamp(time.time()).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((midnight - timedelta(days=int(span) - 1)).timestamp() * 1000)


def _start_of_month() -> int:
    first = datetime.fromtimestamp(time.time()).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return int(first.timestamp() * 1000)


SCREEN = Screen(name="cost", title="Cost", path="/cost", page=cost_page, key="c", live="model.")
