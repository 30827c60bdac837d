"""Which scenarios a project has: read from disk here, so that the hook path needs no disk to recognise one."""

from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ids import delivery_key
from holdfast.core.ports import Ref
from holdfast.features.uat.files import Places, root_of
from holdfast.features.uat.scenario import Mistake, listed
from holdfast.features.uat.scenario_plan import read_plan
from holdfast.features.uat.settings import CATALOGUE, DEFAULTS, LARGEST_CATALOGUE

MOST_MISTAKES = 20


def scan(call: JobCall) -> list[Event]:
    project = str(call.job.payload["project"])
    settings = call.settings(project) or DEFAULTS
    root = root_of(project, settings.root)
    return scanned(call, project, root) if root else []


def scanned(call: JobCall, project: str, root: str) -> list[Event]:
    plans, mistakes = catalogue(Places(Path(root), project).scenarios)
    data = {"scenarios": plans, "problems": [str(m) for m in mistakes[:MOST_MISTAKES]]}
    known = call.reader.state(Ref(CATALOGUE, project)) or {"scenarios": {}, "problems": []}
    if all(known.get(name) == value for name, value in data.items()):
        return []
    return [Event(key=delivery_key(call.now), kind="uat.scenarios", at=call.now, project=project, data=data)]


def catalogue(folder: Path) -> tuple[dict[str, Any], list[Mistake]]:
    """Name → plan. Two files with one name, or more than fits, are mistakes too."""
    plans: dict[str, Any] = {}
    mistakes: list[Mistake] = []
    left = LARGEST_CATALOGUE
    for path in listed(folder):
        read, found = read_plan(path)
        mistakes += found
        if read is None:
            continue
        plan = {**read, "file": path.name}
        name = str(plan["name"])
        left -= len(msgspec.json.encode(plan))
        if name in plans:
            mistakes.append(Mistake(str(path), 1, f"name: {name} is already the name of {plans[name]['file']}"))
        elif left < 0:
            mistakes.append(Mistake(str(path), 0, "left out: the scenarios of this project are too large together"))
        else:
            plans[name] = plan
    return plans, mistakes
