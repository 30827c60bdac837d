"""Gates: what is asked for where, how each live session stands to it and why, and what was refused lately."""

from typing import Any

from holdfast.core.errors import HoldfastError
from holdfast.web.screen import Screen, Visit

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
    """One column for each session; where none lives, one for the branch."""
    where = {"of": checkout["project"], "repo": checkout["repo"], "branch": checkout["branch"]}
    columns = checkout["sessions"] or [{"id": "", "alias": "", "agent": "", "active": checkout["at"]}]
    seen = [visit.view("gates.status", whose=column["id"], **where) for column in columns]
    names = [one["name"] for one in seen[0]["requirements"]]
    by_name = [{one["name"]: one for one in status["requirements"]} for status in seen]
    return {
        **checkout,
        "columns": [{**column, "refused": status["refused"]} for column, status in zip(columns, seen, strict=True)],
        "rows": [[of[name] for of in by_name if name in of] for name in names],
        "open": sum(not one["ok"] and one["triggered"] for status in seen for one in status["requirements"]),
        "notices": seen[0]["notices"],
        "checks": _branch_checks(visit, checkout),
        "waiting": seen[0]["waiting"],
        "attention": [line for line in seen[0]["attention"] if line not in seen[0]["waiting"]],
    }


def _branch_checks(visit: Visit, checkout: dict[str, Any]) -> list[dict[str, Any]]:
    """What ran on this branch, with verdict and reason: why something counts as proof or does not."""
    runs = visit.view("checks.list", of=checkout["project"], look=False)["runs"]
    return [run for run in runs if run["branch"] == checkout["branch"]][:MOST_CHECKS]


SCREEN = Screen(
    name="gates", title="Gates", path="/gates", page=gates_page, key="g", live="gates. decision. session. uat. check."
)
