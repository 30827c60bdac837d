"""The pages about sessions: live ones, all of them, one of them, one event, a day's activity."""

import bisect
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any

import msgspec

from holdfast.analysis.usage.report import format_known_cost
from holdfast.core.errors import CommandRefused, HoldfastError
from holdfast.core.times import DAY, HOUR
from holdfast.doors.web import overview_shapes, session_rows
from holdfast.doors.web.cached import Cached
from holdfast.doors.web.changes import list_changes
from holdfast.doors.web.charts import stacked_bars
from holdfast.doors.web.screen import Screen, Visit

# Now: every live session of every project, those that wait for you first.

ENDED_SHOWN = 10


def now_page(visit: Visit) -> dict[str, Any]:
    who = visit.view("sessions.who")
    rows = who["sessions"]
    # Twice as many as shown, because some of the latest still run.
    latest = visit.view("sessions.list", all=True, limit=ENDED_SHOWN * 2)["sessions"]
    return {
        **_by_attention(rows),
        "ended": [row for row in latest if row["state"] == "ended"][:ENDED_SHOWN],
        "projects": len({row["project"] for row in rows}),
        "today": visit.view("sessions.activity", days=1, detailed=1)["today"],
        "now": who["now"],
        "unrecorded": visit.view("sessions.unrecorded"),
        "losses": visit.view("workspace.losses"),
    }


def _by_attention(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    parts: dict[str, list[dict[str, Any]]] = {"waiting": [], "working": [], "quiet": []}
    for row in rows:
        parts["waiting" if row["needs"] else "working" if row["state"] == "working" else "quiet"].append(row)
    return parts


NOW_SCREEN = Screen(name="now", title="Now", path="/", page=now_page, key="n", live="*")


# Sessions: all of them, filtered, sorted and paged; each page of the list has its own URL.

PAGE = 100
COLUMNS = (
    ("title", "Session", ""), ("last", "Last", "n"), ("duration", "Duration", "n"), ("turns", "Turns", "n"),
    ("tools", "Tools", "n"), ("failed", "Failed", "n"), ("", "Denied", "n"), ("tokens", "Tokens", "n"), ("cost", "Cost", "n"),
)  # fmt: skip
SESSIONS_RANGES = (("", "Any time"), ("1", "Today"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days"))
CHOSEN = ("project", "agent", "state", "branch", "model", "text", "days", "day", "tokens", "cost", "sort", "reverse")
MICRO = 1_000_000


def sessions_page(visit: Visit) -> dict[str, Any]:
    chosen = {name: visit.query.get(name, "") for name in CHOSEN}
    # Only an order or a limit needs the cost of every session.
    costs = _costs(visit, of=visit.client) if chosen["sort"] == "cost" or chosen["cost"] else {}
    offset = visit.number("offset")
    answer = visit.view("sessions.table", costs=costs, offset=offset, limit=PAGE, **_table_arguments(chosen, visit))
    group = ""
    for row in answer["sessions"]:
        row["group"] = _group_of(row, chosen["sort"], answer["now"])
        row["begins_group"], group = row["group"] != group, row["group"]
        row["cost"] = format_known_cost(row["cost"], row["unpriced"])
    return {
        "told": answer,
        "chosen": chosen,
        "kept": {name: value for name, value in chosen.items() if value},
        "columns": COLUMNS,
        "ranges": SESSIONS_RANGES,
        "filtered": any(chosen[name] for name in CHOSEN if name not in ("sort", "reverse")),
        "before": max(0, offset - PAGE),
        "after": offset + PAGE if offset + PAGE < answer["total"] else 0,
        "first": min(offset + 1, answer["total"]),
        "last": min(offset + PAGE, answer["total"]),
    }


def _group_of(row: dict[str, Any], sort: str, now: int) -> str:
    """By day where the order is that of time, by project where it is theirs."""
    if sort == "project":
        return str(row["project"] or "no project")
    return _day_of(row["at"], now) if sort in ("", "last") else ""


def _day_of(at: int, now: int) -> str:
    day, today = (datetime.fromtimestamp(one / 1000).date() for one in (at, now))
    names = {0: "Today", 1: "Yesterday"}
    return names.get((today - day).days) or f"{day:%A, %d %B %Y}"


def _table_arguments(chosen: dict[str, str], visit: Visit) -> dict[str, Any]:
    named = {name: chosen[name] for name in ("project", "agent", "state", "branch", "model", "text")}
    first, last = _ends_of_day(chosen["day"])
    return {
        **named,
        "since": first or _start_of_days(chosen["days"]),
        "until": last,
        "min_tokens": visit.number("tokens"),
        "min_cost": visit.number("cost") * MICRO,
        "sort": chosen["sort"] or "last",
        "reverse": bool(chosen["reverse"]),
    }


def _ends_of_day(day: str) -> tuple[int, int]:
    """First and last millisecond of a local day (2026-11-03) or month (2026-11); zeros for what is neither."""
    try:
        first = datetime.fromisoformat(day if len(day) > len("2026-11") else f"{day}-01")
    except ValueError:
        return 0, 0
    after = first + timedelta(days=1 if len(day) > len("2026-11") else 31)
    after = after if len(day) > len("2026-11") else after.replace(day=1)
    return int(first.timestamp() * 1000), int(after.timestamp() * 1000) - 1


def _start_of_days(days: str) -> int:
    """Whole days of the local calendar: "today" begins at midnight."""
    if not days.isdecimal() or len(days) > 4 or not int(days):
        return 0
    midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return int(midnight.timestamp() * 1000) - (int(days) - 1) * DAY


def _cost_by_session(visit: Visit) -> dict[str, int]:
    try:
        groups = visit.view("cost.report", by="session")["groups"]
    except HoldfastError:
        return {}
    return {one["group"]: one["cost_micro_dollars"] for one in groups if one["cost_micro_dollars"] is not None}


# Adding up every session takes a while on a long log.
_costs = Cached(_cost_by_session)

SESSIONS_SCREEN = Screen(
    name="sessions", title="Sessions", path="/sessions", page=sessions_page, key="l", live="session. prompt. turn. permission.",
    script="sessions.js",
)  # fmt: skip


# Session: everything that happened in it as a tree of turns, calls and subagents; any moment of it.

FILTERS = (
    ("", "Everything"), ("prompts", "Conversation"), ("tools", "Tools"), ("failures", "Failures"),
    ("checks", "Checks and gates"), ("decisions", "Denied and injected"), ("subagents", "Subagents"),
)  # fmt: skip
FIRST_ROWS = 120
MOST_CHECKS = 8
MOST_MARKS = 500
CONVERSATION = "prompts"


def session_page(visit: Visit) -> dict[str, Any]:
    shown = visit.view("sessions.show", id=visit.path["id"], turns=1, brief=True)
    only = visit.query.get("only", "")
    # The tree is then drawn by a script; the rest refreshes with the page. A search and the conversation are not drawn
    # by the script.
    drawn_by_script = bool(visit.query.get("live")) and not visit.query.get("q") and only != CONVERSATION
    loaded: dict[str, Any] = {"rows": [], "older": 0}
    if not drawn_by_script:
        loaded = load_rows(visit, shown["id"], FIRST_ROWS)
    return {
        "session": shown,
        "overview": overview_shapes.overview_shapes(
            visit.view("sessions.overview", id=shown["id"]), check_marks(visit, shown["id"])
        ),
        **loaded,
        "turns": group_turns(loaded["rows"]),
        "flat": session_rows.list_flat(loaded["rows"]) if visit.query.get("q") else [],
        "talk": only == CONVERSATION,
        **row_format(visit),
        "checks": latest_checks(visit, shown),
        "changing": changing_calls(visit, shown["id"]),
        "filters": FILTERS,
        "now": shown["now"],
    }


def check_marks(visit: Visit, session: str) -> list[dict[str, Any]]:
    """Every run of a check, for the overview."""
    events = visit.view("log.events", session=session, kinds=["check.finished"], limit=MOST_MARKS)["events"]
    return [
        {"seq": one["seq"], "at": one["at"], "verdict": one["data"]["verdict"], "runner": one["data"]["runner"]}
        for one in events
    ]


def load_rows(visit: Visit, session: str, limit: int) -> dict[str, Any]:
    value: dict[str, Any] = visit.view("sessions.rows", id=session, limit=limit, **row_range(visit))
    return value


def group_turns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each turn with its rows as a tree."""
    turns = []
    for n, listed in groupby(rows, key=lambda row: row["turn"]):
        inside = list(listed)
        head = next((row for row in inside if session_rows.is_turn_head(row)), None)
        turns.append({
            "n": n, "first": head["seq"] if head else 0, "at": inside[0]["turn_at"], "prompt": head["text"] if head else "",
            "rows": session_rows.build_tree(inside),
        })  # fmt: skip
    return turns


def latest_checks(visit: Visit, shown: dict[str, Any]) -> list[dict[str, Any]]:
    """The latest run of each check, with verdict and reason. The content is not checked, because the page is shown
    often."""
    answer = visit.view("checks.list", of=shown["project"], whose=shown["id"], session=shown["id"], look=False)
    value: list[dict[str, Any]] = answer["runs"][:MOST_CHECKS]
    return value


def changing_calls(visit: Visit, session: str) -> dict[str, Any]:
    """The latest calls that changed files, newest first, and all that lost uncommitted lines."""
    calls = list(reversed(visit.view("workspace.of_session", session=session).values()))
    lost = [call for call in calls if call["lost"]]
    return {"calls": [call for call in calls if call["files"]][:MOST_CHECKS], "lost": lost[:MOST_CHECKS]}


def row_range(visit: Visit) -> dict[str, Any]:
    return {
        "start": visit.number("start"), "before": visit.number("before"),
        "only": visit.query.get("only", ""), "q": visit.query.get("q", "")[:200],
    }  # fmt: skip


def row_format(visit: Visit) -> dict[str, Any]:
    return {
        "only": visit.query.get("only", ""), "q": visit.query.get("q", "")[:200],
        "label": session_rows.row_label, "look": session_rows.row_style, "says": session_rows.row_text,
        "lane_class": session_rows.lane_class,
    }  # fmt: skip


def rows_page(visit: Visit) -> dict[str, Any]:
    """A range of the rows, for the scrolling tree: the same rows as on the page."""
    loaded = load_rows(visit, visit.query.get("id", ""), visit.number("limit", 200))
    arrange = session_rows.list_flat if visit.query.get("only") else session_rows.build_tree
    rows = arrange(loaded["rows"], fold_idle=visit.query.get("idle", "") != "real")
    return {**row_format(visit), "rows": rows}


def moment_page(visit: Visit) -> dict[str, Any]:
    """The session right after one of its events, folded from the log."""
    seq = visit.query.get("seq", "")
    if seq and not seq.isdecimal():
        raise CommandRefused(f"there is no event {seq[:40]!r}")
    moment = visit.view(
        "sessions.moment", id=visit.path["id"], seq=visit.number("seq"), start=visit.number("start"),
        offset=visit.number("offset"), only=visit.query.get("only", ""),
    )  # fmt: skip
    return {"moment": moment, "only": visit.query.get("only", ""), "changed": frozenset(moment["changed"])}


SESSION_SCREEN = Screen(
    name="session", title="Session", path="/session/{id:path}", page=session_page, live="*", script="session.js"
)
ROWS = Screen(name="rows", title="Rows", path="/rows", page=rows_page, live="*")
MOMENT = Screen(name="moment", title="Moment", path="/moment/{id:path}", page=moment_page)


# One event: the tool's input, its output, what it changed, and why Holdfast answered as it did.

HIDDEN = frozenset(("input", "output", "contexts", "reasons", "notices", "details", "prompt", "message", "error"))
LONG = ("prompt", "message", "error", "summary", "text")
QUIET = frozenset(("pid", "pid_start", "same", "transcript", "repo", "native", "client"))


def event_page(visit: Visit) -> dict[str, Any]:
    event = visit.view("log.event", seq=_event_number(visit.path["seq"]))
    data, payload = event["data"], _decode_payload(event["body"])
    tool_input = payload.get("tool_input") or data.get("input") or {}
    edits = list_changes(tool_input) or list_changes(data.get("input"))
    facts = [(name, _short_text(data[name])) for name in data if data[name] and name not in HIDDEN | QUIET]
    return {
        "event": event,
        "data": data,
        "given": _input_fields(tool_input, bool(edits)),
        "changes": edits,
        "texts": [(name, data[name]) for name in LONG if data.get(name) and isinstance(data[name], str)],
        "facts": facts,
        "raw": _indented(payload) or event["body"],
    }


def _event_number(text: str) -> int:
    if not text.isdecimal() or len(text) > 16:
        raise CommandRefused(f"there is no event {text[:40]!r}")
    return int(text)


def _decode_payload(body: str) -> dict[str, Any]:
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return payload if isinstance(payload, dict) else {}


def _indented(payload: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(payload), indent=2).decode() if payload else ""


def _input_fields(tool_input: Any, edited: bool) -> list[tuple[str, str]]:
    """A tool's input as name and text, without what the diff shows."""
    if not isinstance(tool_input, dict):
        return [("input", _short_text(tool_input))] if tool_input else []
    shown = ("old_string", "new_string", "content", "edits", "old_str", "new_str", "file_text", "patch")
    return [(str(name), _as_text(value)) for name, value in tool_input.items() if not (edited and name in shown)]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()


def _short_text(value: Any) -> str:
    return _as_text(value)[:600]


EVENT_SCREEN = Screen(name="event", title="Event", path="/event/{seq}", page=event_page)


# Activity: a year at a glance, and totals by agent and project.

WEEKS = 53
MEASURES = (("ms", "Time"), ("tokens", "Tokens"), ("tools", "Tool calls"), ("turns", "Turns"))
LEVELS = 4
ACTIVITY_RANGES = (7, 30, 90, 365)


def activity_page(visit: Visit) -> dict[str, Any]:
    measure = next((name for name, _ in MEASURES if name == visit.query.get("by")), "ms")
    span = next((n for n in ACTIVITY_RANGES if str(n) == visit.query.get("days")), 30)
    activity = visit.view("sessions.activity", days=WEEKS * 7, detailed=span)
    if not activity["rows"] and "days" not in visit.query:
        # An imported history may be older: it is shown rather than an empty page.
        span = ACTIVITY_RANGES[-1]
        activity = visit.view("sessions.activity", days=WEEKS * 7, detailed=span)
    return {
        "today": activity["today"],
        "heat": heat_map(activity["days"], measure),
        "projects": sum_rows(activity["rows"], "project", measure),
        "agents": sum_rows(activity["rows"], "agent", measure),
        "chart": _activity_chart(activity["days"][-span:], measure),
        "measure": measure,
        "measures": MEASURES,
        "span": span,
        "ranges": ACTIVITY_RANGES,
    }


def _activity_chart(days: list[dict[str, Any]], measure: str) -> dict[str, Any]:
    unit = HOUR if measure == "ms" else 1
    values = {day["day"]: {"": (day[measure] or 0) / unit} for day in days}
    shown = (lambda hours: f"{hours:,.3g} h") if measure == "ms" else (lambda n: f"{n:,.0f}")
    return stacked_bars(list(values), values, shown)


def heat_map(days: list[dict[str, Any]], measure: str) -> dict[str, Any]:
    """A column per week, a square per day; the darkest is the busiest."""
    first = date.fromisoformat(days[0]["day"])
    ordered = sorted(day[measure] for day in days if day[measure])
    cells = []
    months: list[dict[str, Any]] = []
    for n, day in enumerate(days):
        # The first column begins with Monday, whatever day the year begins with.
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
    # Rounded up: the least busy day still has a colour.
    return -(-rank * LEVELS // len(ordered))


def with_shares(rows: list[dict[str, Any]], measure: str) -> list[dict[str, Any]]:
    """Each with its percentage of the largest."""
    most = max((row[measure] or 0 for row in rows), default=0) or 1
    return [{**row, "share": round((row[measure] or 0) / most * 100, 1)} for row in rows]


def sum_rows(rows: list[dict[str, Any]], by: str, measure: str) -> list[dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for row in rows:
        one = groups.setdefault(row[by], {"name": row[by], "tokens": None})
        for name, value in row.items():
            if isinstance(value, int):
                one[name] = (one.get(name) or 0) + value
    return with_shares(sorted(groups.values(), key=lambda one: -(one[measure] or 0)), measure)


ACTIVITY_SCREEN = Screen(
    name="activity", title="Activity", path="/activity", page=activity_page, key="a", live="turn. model. session."
)
