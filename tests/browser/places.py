"""Every screen with an address of the demo's day that shows it full. A screen without one here fails the tests."""

from functools import cache

from holdfast.doors.web.screens import SCREENS
from tests.browser.harness import Demo

NAMES = tuple(screen.name for screen in SCREENS)
NOT_PAGES = frozenset(("rows",))
"""Ranges of a page, asked for by a script."""
SHOWN = tuple(name for name in NAMES if name not in NOT_PAGES)


@cache
def _ids(demo: Demo) -> tuple[str, str, str, int]:
    sessions = demo.json("sessions", "list", "--all")["sessions"]
    session = next(one["id"] for one in sessions if one["title"].startswith("The receipt"))
    runs = [one["id"] for one in demo.json("uat", "list")["runs"]]
    denied = next(e["seq"] for e in demo.json("events", "list", "--kind", "decision.made", "--limit", "500")["events"]
                  if e["data"]["verdict"] == "deny")  # fmt: skip
    return session, runs[0], runs[1], denied


def _asking(demo: Demo) -> str:
    return next(
        one["id"] for one in demo.json("who")["sessions"] if one["needs"] and one["needs"]["what"] == "permission"
    )


def address(name: str, demo: Demo) -> str:
    session, run, before, denied = _ids(demo)
    shop = demo.project("harbor-shop")
    return {
        "now": "/", "sessions": "/sessions", "gates": "/gates", "tasks": "/tasks", "uat": "/uat", "memory": "/memory",
        "activity": "/activity", "cost": "/cost",
        "health": "/health", "session": f"/session/{session}", "moment": f"/moment/{session}",
        "answer": f"/answer/{_asking(demo)}", "event": f"/event/{denied}", "why": f"/gates/why/{denied}",
        "state": f"/state?project={shop}&step=2", "run": f"/uat/{run}?with={before}", "search": f"/search?q=vat&project={shop}",
    }[name]  # fmt: skip
