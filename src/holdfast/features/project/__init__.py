"""The project (seed 001): what is true of it, and what needs doing, derived and never typed by hand."""

from collections.abc import Mapping

from holdfast.core.feature import Feature
from holdfast.core.later import later
from holdfast.core.ports import Ref
from holdfast.features.project import activity, elsewhere, leases
from holdfast.features.project.commands import COMMANDS
from holdfast.features.project.files import files
from holdfast.features.project.follow import SOON, decide, enqueue, follow, may_answer
from holdfast.features.project.model import ACTIVITY, HABITS, KINDS, PROJECT
from holdfast.features.project.reduce import keys, reduce
from holdfast.features.project.settings import ProjectSettings
from holdfast.features.project.views import VIEWS

TOOLS = frozenset(("tool.started", "tool.finished", "tool.failed", "tool.exit_read"))
LISTENS = frozenset((*KINDS, *TOOLS, *SOON, *activity.TOUCHES, *activity.SPENDS, *elsewhere.HEARD, *leases.TABLE))
WATCH_S, CHECK_S = 15.0, 60.0
COLLECTORS = f"{__name__}.collectors"


def stream(ref: Ref) -> Mapping[str, str]:
    """Everything a project's documents come from names the project. A key that was shortened names none."""
    plain = ref.kind in (PROJECT, ACTIVITY, HABITS) and ref.key.startswith("/") and "#" not in ref.key
    return {"project": ref.key} if plain else {}


FEATURE = Feature(
    name="project",
    kinds=KINDS,
    listens=LISTENS,
    keys=keys,
    reduce=reduce,
    stream=stream,
    decide=decide,
    may_answer=may_answer,
    follow=follow,
    enqueue=enqueue,
    commands=COMMANDS,
    views=VIEWS,
    jobs={
        "project.refresh": later(COLLECTORS, "refresh", "refresh"),
        "project.trees": later(COLLECTORS, "trees", "look"),
        "project.scan": later(COLLECTORS, "scan", "scan"),
        "project.checks": later(COLLECTORS, "checks", "run_checks"),
        "project.notion": later(COLLECTORS, "notion", "push"),
        "project.watch": later(COLLECTORS, "watch", "watch"),
    },
    schedule={"project.watch": WATCH_S, "project.checks": CHECK_S, "project.notion": CHECK_S},
    files=files,
    settings=ProjectSettings,
)
