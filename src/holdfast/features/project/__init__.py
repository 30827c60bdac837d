"""The project: its state and open tasks, derived from the log and the disk."""

from functools import partial

from holdfast.core.authority import ANYONE
from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_table
from holdfast.features.project import events, policy
from holdfast.features.project.files import files
from holdfast.features.project.jobs import JOBS, SCHEDULE
from holdfast.features.project.settings import ProjectSettings
from holdfast.features.project.state import DOCUMENTS

COMMANDS = dict.fromkeys("look add_task finish_task dismiss_task resolve acquire tend keep release".split(), ANYONE)
VIEWS = "state diff tasks task next looking migrate schema origin leases lease_answer list moments".split()

_table = partial(lazy_table, __name__)
"""What people ask for is loaded when they do: the first hook does not wait for that."""

FEATURE = Feature(
    name="project",
    version=6,
    subscribed_kinds=policy.SUBSCRIBED_KINDS,
    documents=DOCUMENTS,
    keys=events.keys,
    reduce=events.reduce,
    stream=events.stream,
    decide=policy.decide,
    decides_on=policy.DECIDED_ON,
    refuses=policy.refuses_edits,
    can_decide=policy.can_decide,
    derive=policy.derive,
    derives_from=policy.DERIVED_FROM,
    enqueue=policy.enqueue,
    enqueues_for=policy.ENQUEUED_FOR,
    commands=_table("commands", "COMMANDS", COMMANDS),
    authority=COMMANDS,
    views=_table("views", "VIEWS", VIEWS),
    jobs=JOBS,
    schedule=SCHEDULE,
    files=files,
    settings=ProjectSettings,
)
