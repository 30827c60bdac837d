"""Session: everything that happened in it as a tree of turns, calls and subagents; each call whole; any moment of it."""

from itertools import groupby
from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.web import session_rows
from holdfast.web.screen import Screen, Visit

FILTERS = (
    ("", "Everything"), ("prompts", "Conversation"), ("tools", "Tools"), ("failures", "Failures"),
    ("checks", "Checks and gates"), ("decisions", "Denied and injected"), ("subagents", "Subagents"),
)  # fmt: skip
FIRST_ROWS = 120
MOST_CHECKS = 8
CONVERSATION = "prompts"


def session_page(visit: Visit) -> dict[str, Any]:
    shown = visit.view("sessions.show", id=visit.path["id"], turns=1, brief=True)
    only = visit.query.get("only", "")
    # The tree is drawn by a script from then on; what it does not draw is shown anew with the page.
    drawn_by_script = bool(visit.query.get("live")) and not visit.query.get("q") and only != CONVERSATION
    loaded: dict[str, Any] = {"rows": [], "older": 0}
    if not drawn_by_script:
        loaded = load_rows(visit, shown["id"], FIRST_ROWS)
    return {
        "session": shown,
        "overview": session_rows.overview_shapes(visit.view("sessions.overview", id=shown["id"])),
        **loaded,
        "turns": group_turns(loaded["rows"]),
        "flat": session_rows.list_flat(loaded["rows"]) if visit.query.get("q") else [],
        "talk": only == CONVERSATION,
        **row_format(visit),
        "checks": latest_checks(visit, shown),
        "filters": FILTERS,
        "now": shown["now"],
    }


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
    """The latest run of each check, with verdict and reason. The content is not looked at: the page is shown often."""
    answer = visit.view("checks.list", of=shown["project"], whose=shown["id"], session=shown["id"], look=False)
    value: list[dict[str, Any]] = answer["runs"][:MOST_CHECKS]
    return value


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
    """A range of the rows, for the tree that scrolls: the same rows as on the page."""
    loaded = load_rows(visit, visit.query.get("id", ""), visit.number("limit", 200))
    arrange = session_rows.list_flat if visit.query.get("only") else session_rows.build_tree
    rows = arrange(loaded["rows"], fold_idle=visit.query.get("idle", "") != "real")
    return {**row_format(visit), "rows": rows}


def moment_page(visit: Visit) -> dict[str, Any]:
    """The session as it was right after one of its events, folded from the log."""
    seq = visit.query.get("seq", "")
    if seq and not seq.isdecimal():
        raise CommandRefused(f"there is no event {seq[:40]!r}")
    moment = visit.view(
        "sessions.moment", id=visit.path["id"], seq=visit.number("seq"), start=visit.number("start"),
        offset=visit.number("offset"), only=visit.query.get("only", ""),
    )  # fmt: skip
    return {"moment": moment, "only": visit.query.get("only", ""), "changed": frozenset(moment["changed"])}


SCREEN = Screen(
    name="session", title="Session", path="/session/{id:path}", page=session_page, live="*", script="session.js"
)
ROWS = Screen(name="rows", title="Rows", path="/rows", page=rows_page, live="*")
MOMENT = Screen(name="moment", title="Moment", path="/moment/{id:path}", page=moment_page)
