"""Gates: requirements that are checked, not believed."""

from functools import partial

from holdfast.core.authority import ANYONE, person
from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_function, lazy_table
from holdfast.features.gates.events import SESSION, SUBSCRIBED_KINDS, live_keys
from holdfast.features.gates.files import files
from holdfast.features.gates.jobs import LOOK, MEASURE, look_for_skills, measure_branch
from holdfast.features.gates.observations import OBSERVED, content_parts, observe_event
from holdfast.features.gates.policy import DECISIONS, can_decide, decide, derive, enqueue
from holdfast.features.gates.settings import GateSettings
from holdfast.features.gates.state import DOCUMENTS, reduce

COMMANDS = {
    "satisfy": person(
        "satisfying what agents may not", lazy_function(__name__, "commands", "act_of_satisfying"), delegable=True
    ),
    "approve": person("approving", lazy_function(__name__, "commands", "act_of_approving"), delegable=True),
    "clear": ANYONE,
    "pause": person("pausing the gates", delegable=True),
    "resume": ANYONE,
    "prune": ANYONE,
    "accept": person("accepting looser rules", delegable=True),
    "keep": ANYONE,
}
HOLD = "hold"
"""Asked by git's own hooks."""
VIEWS = ("attention", "status", "list", "presets", "verify", "explain", "replay", "places", "codes", "refused")

_table = partial(lazy_table, __name__)
"""Loaded on first use, so that the first hook does not wait."""

FEATURE = Feature(
    name="gates",
    version=10,
    documents=DOCUMENTS,
    subscribed_kinds=SUBSCRIBED_KINDS,
    keys=live_keys,
    reduce=reduce,
    stream=lambda ref: {"session": ref.key} if ref.kind == SESSION else {},
    decide=decide,
    decides_on=frozenset(DECISIONS),
    refuses=lambda _settings: True,
    can_decide=can_decide,
    derive=derive,
    enqueue=enqueue,
    enrich=observe_event,
    enriches=OBSERVED,
    content_parts=content_parts,
    commands={**_table("commands", "COMMANDS", COMMANDS), HOLD: lazy_function(__name__, "git_holds", "hold")},
    authority={**COMMANDS, HOLD: ANYONE},
    surroundings=lazy_function(__name__, "commands", "surroundings"),
    after_restore=lazy_function(__name__, "restores", "after_restore"),
    views=_table("views", "VIEWS", VIEWS),
    jobs={MEASURE: measure_branch, LOOK: look_for_skills},
    quick=frozenset((MEASURE,)),
    files=files,
    settings=GateSettings,
    settings_names=("requirements",),
    settings_files={
        "user": ".claude/requirements.yaml",
        "project": ".claude/requirements.yaml",
        "local": ".claude/requirements.local.yaml",
    },
)
