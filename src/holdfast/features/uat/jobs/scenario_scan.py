"""Reads a project's scenarios from disk."""

from pathlib import Path

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ids import delivery_key
from holdfast.core.kinds.uat_events import Plan
from holdfast.features.uat.folders import RunFolders, root_of
from holdfast.features.uat.scenarios.reader import Mistake, scenario_files
from holdfast.features.uat.scenarios.recorder import read_plan
from holdfast.features.uat.settings import DEFAULTS, LARGEST_CATALOGUE
from holdfast.features.uat.state import CATALOGUES, Catalogue

MOST_MISTAKES = 20


def scan_scenarios(call: JobCall) -> list[Event]:
    project = str(call.job.payload["project"])
    settings = call.settings(project) or DEFAULTS
    root = root_of(project, settings.root)
    return catalogue_events(call, project, root) if root else []


def catalogue_events(call: JobCall, project: str, root: str) -> list[Event]:
    plans, mistakes = load_catalogue(RunFolders(Path(root), project).scenarios)
    problems = [str(m) for m in mistakes[:MOST_MISTAKES]]
    current = CATALOGUES.load(call.reader, project) or Catalogue()
    # An unchanged catalogue makes no event.
    if (current.scenarios, current.problems) == (plans, problems):
        return []
    data = {"scenarios": plans, "problems": problems}
    return [Event(key=delivery_key(call.now), kind="uat.scenarios", at=call.now, project=project, data=data)]


def load_catalogue(folder: Path) -> tuple[dict[str, Plan], list[Mistake]]:
    """Name → plan. Two files with one name, or more than fits, are mistakes too."""
    plans: dict[str, Plan] = {}
    mistakes: list[Mistake] = []
    left = LARGEST_CATALOGUE
    for path in scenario_files(folder):
        plan, plan_mistakes = read_plan(path)
        mistakes += plan_mistakes
        if plan is None:
            continue
        plan.file, name = path.name, plan.name
        left -= len(msgspec.json.encode(plan))
        if name in plans:
            mistakes.append(Mistake(str(path), 1, f"name: {name} is already the name of {plans[name].file}"))
        elif left < 0:
            mistakes.append(Mistake(str(path), 0, "left out: the scenarios of this project are too large together"))
        else:
            plans[name] = plan
    return plans, mistakes
