"""The project (seed 001): what is true of it, and what needs doing, derived and never typed by hand."""

from collections.abc import Mapping

from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_function
from holdfast.core.ports import Ref
from holdfast.features.project import activity, elsewhere, leases
from holdfast.features.project.commands import COMMANDS
from holdfast.features.project.derive import SOON, can_decide, decide, derive, enqueue
from holdfast.features.project.files import files
from holdfast.features.project.model import ACTIVITY, HABITS, KINDS, PROJECT
from holdfast.features.project.reduce import keys, reduce
from holdfast.features.project.settings import ProjectSettings
from holdfast.features.project.views import VIEWS

TOOLS = frozenset(("tool.started", "tool.finished", "tool.failed", "tool.exit_read", "check.finished", "git.acted"))
SUBSCRIBED_KINDS = frozenset(
    (*KINDS, *TOOLS, *SOON, *activity.TOUCHES, *activity.SPENDS, *elsewhere.HEARD, *leases.TABLE)
)
WATCH_S, CHECK_S = 15.0, 60.0
COLLECTORS = f"{__name__}.collectors"


def stream(ref: Ref) -> Mapping[str, str]:
    """Everything a project's documents come from names the project. A key that was shortened names none."""
    plain = ref.kind in (PROJECT, ACTIVITY, HABITS) and ref.key.startswith("/") and "#" not in ref.key
    return {"project": ref.key} if plain else {}


FEATURE = Feature(
    name="project",
    version=2,
    kinds=KINDS,
    subscribed_kinds=SUBSCRIBED_KINDS,
    keys=keys,
    reduce=reduce,
    stream=stream,
    decide=decide,
    can_decide=can_decide,
    derive=derive,
    enqueue=enqueue,
    commands=COMMANDS,
    views=VIEWS,
    jobs={
        "project.refresh": lazy_function(COLLECTORS, "refresh", "refresh"),
        "project.trees": lazy_function(COLLECTORS, "trees", "look"),
        "project.scan": lazy_function(COLLECTORS, "scan", "scan"),
        "project.checks": lazy_function(COLLECTORS, "checks", "run_checks"),
        "project.notion": lazy_function(COLLECTORS, "notion", "push"),
        "project.watch": lazy_function(COLLECTORS, "watch", "watch"),
    },
    schedule={"project.watch": WATCH_S, "project.checks": CHECK_S, "project.notion": CHECK_S},
    files=files,
    settings=ProjectSettings,
)
