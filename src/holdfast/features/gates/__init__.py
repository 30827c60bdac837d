"""Gates (seed 002): requirements that are checked, not believed."""

from collections.abc import Iterable

from holdfast.core.event import Event
from holdfast.core.feature import Feature, State
from holdfast.core.job import Job
from holdfast.features.gates import measure, skills
from holdfast.features.gates.commands import COMMANDS
from holdfast.features.gates.decide import can_decide, decide
from holdfast.features.gates.derive import derive
from holdfast.features.gates.documents import files
from holdfast.features.gates.kinds import SUBSCRIBED_KINDS
from holdfast.features.gates.model import GateSettings
from holdfast.features.gates.observations import OBSERVED, content_parts, observe
from holdfast.features.gates.reduce import reduce
from holdfast.features.gates.refs import SESSION, keys
from holdfast.features.gates.views import VIEWS


def enqueue(state: State, event: Event, settings: GateSettings | None) -> Iterable[Job]:
    if not settings or not settings.rules:
        return ()
    return (*measure.wanted(state, event, settings), *skills.wanted(state, event, settings))


FEATURE = Feature(
    name="gates",
    version=2,
    subscribed_kinds=SUBSCRIBED_KINDS,
    keys=keys,
    reduce=reduce,
    stream=lambda ref: {"session": ref.key} if ref.kind == SESSION else {},
    decide=decide,
    can_decide=can_decide,
    derive=derive,
    enqueue=enqueue,
    enrich=observe,
    enriches=OBSERVED,
    content_parts=content_parts,
    commands=COMMANDS,
    views=VIEWS,
    jobs={measure.KIND: measure.measure, skills.KIND: skills.look},
    files=files,
    settings=GateSettings,
    settings_names=("requirements",),
    settings_files={
        "user": ".claude/requirements.yaml",
        "project": ".claude/requirements.yaml",
        "local": ".claude/requirements.local.yaml",
    },
)
