"""Session: everything that happened in it, as a waterfall; what was refused, what was told, each call whole."""

from typing import Any

from holdfast.web import overview, row_labels
from holdfast.web.screen import Screen, Visit

FILTERS = (
    ("", "Everything"), ("prompts", "Prompts"), ("tools", "Tools"), ("failures", "Failures"),
    ("decisions", "Denied and told"), ("subagents", "Subagents"),
)  # fmt: skip
FIRST_ROWS = 120
MOST_CHECKS = 8


def page(visit: Visit) -> dict[str, Any]:
    shown = visit.view("sessions.show", id=visit.path["id"], turns=1, brief=True)
    rows = {"rows": [], "older": 0} if visit.query.get("live") and not visit.query.get("q") else rows_of(visit, shown)
    return {
        "session": shown,
        "overview": overview.shapes(visit.view("sessions.overview", id=shown["id"])),
        **rows,
        **row_words(visit),
        "checks": checks_of(visit, shown),
        "filters": FILTERS,
        "now": shown["now"],
    }


def rows_of(visit: Visit, shown: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = visit.view("sessions.rows", id=shown["id"], limit=FIRST_ROWS, **asked(visit))
    return value


def checks_of(visit: Visit, shown: dict[str, Any]) -> list[dict[str, Any]]:
    """The latest run of each check, with verdict and reason. The content is not looked at: the page is shown often."""
    found = visit.view("checks.list", of=shown["project"], whose=shown["id"], session=shown["id"], look=False)
    value: list[dict[str, Any]] = found["runs"][:MOST_CHECKS]
    return value


def asked(visit: Visit) -> dict[str, Any]:
    return {
        "start": visit.number("start"), "before": visit.number("before"),
        "only": visit.query.get("only", ""), "q": visit.query.get("q", "")[:200],
    }  # fmt: skip


def row_words(visit: Visit) -> dict[str, Any]:
    return {
        "only": visit.query.get("only", ""), "q": visit.query.get("q", "")[:200],
        "label": row_labels.label, "look": row_labels.look, "says": row_labels.says, "bar": row_labels.bar,
        "lane_class": row_labels.lane_class,
    }  # fmt: skip


SCREEN = Screen(name="session", title="Session", path="/session/{id:path}", page=page, live="*", script="session.js")
