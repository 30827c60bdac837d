"""Memory (seed 004): what was decided, fixed, tried and learned is found again, and told when it fits."""

from functools import partial

from holdfast.core.feature import Feature
from holdfast.core.later import later
from holdfast.features.memory import commands
from holdfast.features.memory.asking import views as asking_views
from holdfast.features.memory.asking.when import ASK, BATCH, LOOK_EVERY_S, enqueue
from holdfast.features.memory.decide import decide, may_answer
from holdfast.features.memory.find.keeping import EVERY_S, KEEP, keep
from holdfast.features.memory.model import KINDS, MemorySettings
from holdfast.features.memory.observe import follow
from holdfast.features.memory.reduce import LISTENS, facets, keys, reduce

_later = partial(later, __name__)
"""The index needs numpy, the model http: they are loaded when somebody asks, not when the daemon starts."""

FEATURE = Feature(
    name="memory",
    version=5,
    kinds=KINDS,
    listens=LISTENS,
    keys=keys,
    reduce=reduce,
    facets=facets,
    decide=decide,
    may_answer=may_answer,
    follow=follow,
    commands={
        "add": commands.add,
        "pin": commands.pin,
        "promote": commands.promote,
        "keep": commands.keep,
        "drop": commands.drop,
        "forget": commands.forget,
        "handoff": commands.hand_over,
    },
    views={
        **{name: _later("views", name) for name in ("search", "around", "show", "listed", "injected")},
        "meter": asking_views.shown,
    },
    enqueue=enqueue,
    jobs={BATCH: _later("asking.jobs", "batch"), ASK: _later("asking.jobs", "ask"), KEEP: keep},
    schedule={BATCH: LOOK_EVERY_S, KEEP: EVERY_S},
    settings=MemorySettings,
)
