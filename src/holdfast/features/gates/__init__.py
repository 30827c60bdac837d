"""Gates: requirements that are checked, not believed."""

from holdfast.core.feature import Feature
from holdfast.features.gates.commands import COMMANDS
from holdfast.features.gates.events import SESSION, SUBSCRIBED_KINDS, keys
from holdfast.features.gates.files import files
from holdfast.features.gates.jobs import LOOK, MEASURE, look_for_skills, measure
from holdfast.features.gates.observations import OBSERVED, content_parts, observe
from holdfast.features.gates.policy import can_decide, decide, derive, enqueue
from holdfast.features.gates.settings import GateSettings
from holdfast.features.gates.state import DOCUMENTS, reduce
from holdfast.features.gates.views import VIEWS

FEATURE = Feature(
    name="gates",
    version=3,
    documents=DOCUMENTS,
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
    jobs={MEASURE: measure, LOOK: look_for_skills},
    files=files,
    settings=GateSettings,
    settings_names=("requirements",),
    settings_files={
        "user": ".claude/requirements.yaml",
        "project": ".claude/requirements.yaml",
        "local": ".claude/requirements.local.yaml",
    },
)
