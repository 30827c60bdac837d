"""One UAT run: its steps, what was asserted, the pictures; and beside another run what changed."""

from typing import Any

from holdfast.web.screen import Screen, Visit


def run_page(visit: Visit) -> dict[str, Any]:
    run = visit.view("uat.show", run=visit.path["run"], of="", calls=True)
    others = visit.view("uat.list", of=run["project"], limit=40)["runs"]
    other = visit.query.get("with", "")
    longest = max([step["duration"] or 0 for step in run["plan"]], default=0)
    return {
        "run": run,
        "others": [o for o in others if o["scenario"] == run["scenario"] and o["id"] != run["id"]][:20],
        "compared": _compare_runs(visit, other, run) if other else None,
        "longest": max(longest, 1),
    }


def _compare_runs(visit: Visit, other: str, run: dict[str, Any]) -> dict[str, Any]:
    """The other one is what was before. Pictures are asked for by their number in their run."""
    comparison = visit.view("uat.compare", run=other, other=run["id"], of=run["project"])
    before = _shot_numbers(visit.view("uat.show", run=comparison["before"]["id"], of=run["project"]))
    after = _shot_numbers(run)
    pairs = [
        {**pair, "before_number": before.get(pair["before"]), "after_number": after.get(pair["after"])}
        for pair in comparison["screenshots"]
    ]
    return {**comparison, "screenshots": pairs}


def _shot_numbers(run: dict[str, Any]) -> dict[str, int]:
    return {shot["path"]: number for number, shot in enumerate(run["shots"])}


SCREEN = Screen(name="run", title="UAT run", path="/uat/{run}", page=run_page, live="uat.")
