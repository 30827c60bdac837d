"""The project: what is true of it, and what needs doing, derived and never typed by hand."""

from holdfast.core.feature import Feature
from holdfast.features.project import events, policy
from holdfast.features.project.commands import COMMANDS
from holdfast.features.project.files import files
from holdfast.features.project.jobs import JOBS, SCHEDULE
from holdfast.features.project.settings import ProjectSettings
from holdfast.features.project.state import DOCUMENTS
from holdfast.features.project.views import VIEWS

FEATURE = Feature(
    name="project",
    version=3,
    subscribed_kinds=policy.SUBSCRIBED_KINDS,
    documents=DOCUMENTS,
    keys=events.keys,
    reduce=events.reduce,
    stream=events.stream,
    decide=policy.decide,
    can_decide=policy.can_decide,
    derive=policy.derive,
    enqueue=policy.enqueue,
    commands=COMMANDS,
    views=VIEWS,
    jobs=JOBS,
    schedule=SCHEDULE,
    files=files,
    settings=ProjectSettings,
)
