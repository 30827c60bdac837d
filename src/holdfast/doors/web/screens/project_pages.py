"""The pages about a project: its state, tasks, gates, memories, cost and health."""

import difflib
import time
from collections import defaultdict
from datetime import date, datetime, timedelta
from typing import Any

from holdfast.analysis.usage.report import UNTOLD, format_money, format_token_count, reported_money, token_amounts
from holdfast.core.errors import CommandRefused, HoldfastError
from holdfast.core.ports import Ref
from holdfast.doors.state_words import change_sentences, state_sentences
from holdfast.doors.web.charts import stacked_bars
from holdfast.doors.web.health import collect_health
from holdfast.doors.web.screen import Screen, Visit

# Project state: the project's document, now and at any recorded moment.


def state_page(visit: Visit) -> dict[str, Any]:
    projects = visit.view("project.list")["projects"]
    root = visit.project or (projects[0]["root"] if projects else "")
    moments = visit.view("project.moments", project=root)["moments"] if root else []
    if not moments:
        return {"projects": projects, "root": root, "moments": [], "found": None}
    last = len(moments) - 1
    step = min(visit.number("step", last), last)
    current, earlier = (
        _state_at_step(visit, root, moments, step) if "step" in visit.query else (_current_state(visit, root), None)
    )
    before, before_document = (earlier["text"], earlier["document"]) if earlier else ("", {})
    return {
        "projects": projects,
        "root": root,
        "moments": moments,
        "step": step,
        "chosen": moments[step],
        "is_now": step == last,
        "compared": bool(before),
        "found": current,
        "sentences": state_sentences(current["document"], current["open"]),
        "changes": _changes_since_yesterday(visit, root) if step == last else [],
        "parts": _document_parts(current["document"]),
        "changed": _changed_parts(current["document"], before_document),
        "lines": _document_lines(before, current["text"]),
    }


def _changes_since_yesterday(visit: Visit, root: str) -> list[str]:
    try:
        return change_sentences(visit.view("project.diff", project=root, a="1d", b="now")["differences"])
    except HoldfastError:
        return []  # Nothing was known of it a day ago.


def _current_state(visit: Visit, root: str) -> dict[str, Any]:
    value: dict[str, Any] = visit.view("project.state", project=root)
    return value


def _state_at_step(
    visit: Visit, root: str, moments: list[dict[str, Any]], step: int
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The document at that moment and the one before, both built from the log."""
    current = visit.view("project.state", project=root, at=str(moments[step]["seq"]))
    if not step:
        return current, None
    try:
        return current, visit.view("project.state", project=root, at=str(moments[step - 1]["seq"]))
    except CommandRefused:
        return current, None  # Nothing was known yet.


TITLES = {
    "TASKS": "Tasks", "WORK_CONTEXT": "Work in progress", "RESOURCE_LOCKS": "Leases",
    "LEARNED_PATTERNS": "Learned patterns", "STATE_HISTORY": "History", "PROJECT_RESOLUTION": "How the project was recognised",
}  # fmt: skip
CURRENT = "CURRENT_STATE"


def _document_parts(document: dict[str, Any]) -> list[tuple[str, Any]]:
    """The document as cards: the current state first."""
    now = [(name.replace("_", " ").capitalize(), part) for name, part in document.get(CURRENT, {}).items()]
    return now + [(title, document[name]) for name, title in TITLES.items() if document.get(name)]


def _changed_parts(document: dict[str, Any], before: dict[str, Any]) -> set[str]:
    if not before:
        return set()
    old = dict(_document_parts(before))
    return {name for name, part in _document_parts(document) if old.get(name) != part}


def _document_lines(before: str, after: str) -> list[dict[str, Any]]:
    """The document line by line, with new lines marked."""
    old, new = before.splitlines(), after.splitlines()
    fresh: set[int] = set()
    if old:
        # Without the heuristic for frequent lines, which matter in a state document.
        for tag, _, _, first, last in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
            fresh.update(range(first, last) if tag != "equal" else ())
    # The time of writing always differs.
    fresh = {n for n in fresh if not new[n].startswith("LAST_UPDATED")}
    return [{"text": line, "fresh": n in fresh, "head": line[:1].isupper()} for n, line in enumerate(new)]


STATE_SCREEN = Screen(
    name="state", title="State", path="/state", page=state_page, key="p", live="project.", script="slider.js"
)


# Tasks: what needs doing in every project, why, and when it is done; leases.

MOST_LOOKS = 5
"""With more projects on one page, each shows what is recorded."""
PRIORITIES = {"P0": "nothing else can continue", "P1": "urgent", "P2": "soon", "P3": "when there is time"}


def tasks_page(visit: Visit) -> dict[str, Any]:
    projects = visit.view("project.list")["projects"]
    roots = [one["root"] for one in projects if not visit.project or one["root"] == visit.project]
    recorded = len(roots) > MOST_LOOKS
    tasks = [task for root in roots for task in _tasks_of(visit, root, recorded)]
    by_priority = defaultdict(list)
    for task in tasks:
        by_priority[task["priority"]].append(task)
    lease_list = visit.view("project.leases")
    return {
        "projects": projects,
        "sections": [(name, words, by_priority[name]) for name, words in PRIORITIES.items()],
        "count": len(tasks),
        "leases": [lease for lease in lease_list["leases"] if lease["holders"] or lease["waiters"]],
        "now": lease_list["now"],
    }


def _tasks_of(visit: Visit, root: str, recorded: bool) -> list[dict[str, Any]]:
    listed = visit.view("project.tasks", project=root, recorded=recorded)
    known = {
        "root": listed["root"],
        "project": listed["project"],
        "as_of": 0 if listed["current"] else listed["looked_at"],
    }
    return [{**task, **known} for task in listed["tasks"]]


TASKS_SCREEN = Screen(
    name="tasks", title="Tasks", path="/tasks", page=tasks_page, key="t", live="project. gates. uat. turn. reindex."
)


# Gates: requirements by project, each live session's state with reasons, and recent refusals.

MOST_PLACES = 12
MOST_CHECKS = 5


def gates_page(visit: Visit) -> dict[str, Any]:
    answer = visit.view("gates.places", project=visit.project)
    boards = [_build_board(visit, checkout) for checkout in answer["places"][:MOST_PLACES]]
    return {
        "places": sorted(boards, key=lambda one: (not one["open"], not one["sessions"], -one["at"])),
        "everywhere": answer["everywhere"],
        "refused": visit.view("gates.refused", project=visit.project, limit=15)["refused"],
        "projects": visit.view("project.list")["projects"],
        "attention": list(dict.fromkeys(line for board in boards for line in board["attention"])),
        "codes": _pending_codes(visit),
        "now": answer["now"],
    }


def _pending_codes(visit: Visit) -> list[dict[str, Any]]:
    try:
        return list(visit.view("gates.codes")["codes"])
    except HoldfastError:
        return []  # No daemon runs: nothing waits for a code.


def _build_board(visit: Visit, checkout: dict[str, Any]) -> dict[str, Any]:
    """One column per session; without live sessions, one for the branch."""
    where = {"of": checkout["project"], "repo": checkout["repo"], "branch": checkout["branch"]}
    columns = checkout["sessions"] or [{"id": "", "alias": "", "agent": "", "active": checkout["at"]}]
    seen = [visit.view("gates.status", whose=column["id"], **where) for column in columns]
    return {
        **checkout,
        "columns": [{**column, "refused": status["refused"]} for column, status in zip(columns, seen, strict=True)],
        "rows": _requirement_rows([status["requirements"] for status in seen]),
        "open": sum(not one["ok"] and one["triggered"] for status in seen for one in status["requirements"]),
        "notices": seen[0]["notices"],
        "checks": _branch_checks(visit, checkout),
        "waiting": seen[0]["waiting"],
        "attention": [line for line in seen[0]["attention"] if line not in seen[0]["waiting"]],
    }


def _requirement_rows(columns: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """A row for each requirement of the first column, with its state in every column."""
    by_name = [{one["name"]: one for one in column} for column in columns]
    return [[named[one["name"]] for named in by_name if one["name"] in named] for one in columns[0]]


def _branch_checks(visit: Visit, checkout: dict[str, Any]) -> list[dict[str, Any]]:
    """Checks on this branch, with verdict and reason: why something counts as proof or not."""
    runs = visit.view("checks.list", of=checkout["project"], look=False)["runs"]
    return [run for run in runs if run["branch"] == checkout["branch"]][:MOST_CHECKS]


GATES_SCREEN = Screen(
    name="gates", title="Gates", path="/gates", page=gates_page, key="g", live="gates. decision. session. uat. check."
)


# Why a call was refused or allowed: the recorded answer, and each rule's view of what was known then.


def why_page(visit: Visit) -> dict[str, Any]:
    seq = visit.path["seq"]
    if not seq.isdecimal() or len(seq) > 15:
        raise CommandRefused(f"{seq[:40]!r} is no number of an event")
    event = visit.reader.event(int(seq))
    explanation = visit.view("gates.explain", of=event.project if event else "", seq=int(seq))
    return {"told": explanation, "event": event, "of_project": event.project if event else ""}


WHY_SCREEN = Screen(name="why", title="Why", path="/gates/why/{seq}", page=why_page)


# Memory: what was decided, fixed and learned, and what of it was injected.

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
    }


MEMORY_SCREEN = Screen(
    name="memory", title="Memory", path="/memory", page=memory_page, key="m", live="memory. decision."
)


# Cost: tokens and money of all agents, by day, project, model and other groups.

GROUPINGS = (
    ("day", "Day"), ("month", "Month"), ("session", "Session"), ("turn", "Turn"), ("project", "Project"),
    ("agent", "Agent"), ("model", "Model"), ("branch", "Branch"), ("commit", "Commit"), ("block", "Five hours"),
)  # fmt: skip
RANGES = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("all", "Everything"))
MOST_ROWS = 200
MOST_DAYS = 120
DAYS_OF_MONTH = 30
"""Of a budget for a month, the share of a day."""
MICRO = 1_000_000
BY_TIME, BY_SESSION = frozenset(("day", "month", "block")), frozenset(("session", "turn"))


def cost_page(visit: Visit) -> dict[str, Any]:
    by = next((name for name, _ in GROUPINGS if name == visit.query.get("by")), "day")
    span = next((name for name, _ in RANGES if name == visit.query.get("days")), "30")
    report = _cost_report(visit, by, span)
    if not report["groups"] and "days" not in visit.query:
        # An imported history may be older: it is shown rather than an empty page.
        span, report = "all", _cost_report(visit, by, "all")
    # Newest first.
    groups = report["groups"][::-1] if by in BY_TIME else report["groups"]
    most = max((group["cost_micro_dollars"] or 0 for group in groups), default=0) or 1
    rows = [cost_row(by, group, most) for group in groups[:MOST_ROWS]]
    return {
        "chart": _cost_chart(visit, by, span, report),
        "rows": [{**row, "title": _title_of(visit, row["session"])} for row in rows] if by in BY_SESSION else rows,
        "left_out": max(0, len(groups) - MOST_ROWS),
        "whole": cost_row("", report["total"], most),
        "today": _total_since(visit, _start_of_range("1")),
        "month": _total_since(visit, _start_of_month()),
        "notes": report["notes"],
        "budget": report["budget"],
        "by": by,
        "title": dict(GROUPINGS)[by],
        "span": span,
        "groupings": GROUPINGS,
        "ranges": RANGES,
    }


def _title_of(visit: Visit, session: str) -> str:
    return str((visit.reader.state(Ref("session", session)) or {}).get("title") or "")


def _cost_report(visit: Visit, by: str, span: str) -> dict[str, Any]:
    value: dict[str, Any] = visit.view(
        "cost.report", by=by, since=_start_of_range(span), project=visit.project, stacks=True
    )
    return value


def _cost_chart(visit: Visit, by: str, span: str, report: dict[str, Any]) -> dict[str, Any] | None:
    """Dollars of each day by model; of each month where the days would be too many."""
    stacks = report["stacks"] if by == "day" else _cost_report(visit, "day", span)["stacks"]
    if not stacks:
        return None
    days = [date.fromisoformat(day) for day in stacks]
    last = max(days) if span == "all" else max(*days, datetime.now().date())
    labels = [f"{min(days) + timedelta(n)}" for n in range((last - min(days)).days + 1)]
    if len(labels) > MOST_DAYS:
        stacks = _by_month(stacks)
        labels = sorted(stacks)
    dollars = {label: {model: cost / MICRO for model, cost in column.items()} for label, column in stacks.items()}
    budget = report["budget"] if len(labels[0]) == len("2026-11") else report["budget"] / DAYS_OF_MONTH
    return stacked_bars(labels, dollars, lambda value: f"${value:,.2f}" if 0 < value < 10 else f"${value:,.0f}", budget)


def _by_month(stacks: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    months: dict[str, dict[str, int]] = {}
    for day, column in stacks.items():
        month = months.setdefault(day[: len("2026-11")], {})
        for model, cost in column.items():
            month[model] = month.get(model, 0) + cost
    return months


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
    """Local midnight so many days ago, including today; 0 for everything."""
    if span == "all":
        return 0
    midnight = datetime.fromtimestamp(time.time()).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((midnight - timedelta(days=int(span) - 1)).timestamp() * 1000)


def _start_of_month() -> int:
    first = datetime.fromtimestamp(time.time()).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return int(first.timestamp() * 1000)


COST_SCREEN = Screen(name="cost", title="Cost", path="/cost", page=cost_page, key="c", live="model.")


# Health of Holdfast itself.


def health_page(visit: Visit) -> dict[str, Any]:
    return collect_health(visit.client)


HEALTH_SCREEN = Screen(
    name="health", title="Health", path="/health", page=health_page, key="h", live="daemon. spool. job. store. state."
)
