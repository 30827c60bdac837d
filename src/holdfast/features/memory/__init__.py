"""Memory (seed 004): what was decided, fixed, tried and learned is found again, and told when it fits."""

from functools import partial

from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_function
from holdfast.features.memory import commands
from holdfast.features.memory.decide import can_decide, decide
from holdfast.features.memory.index.keeping import EVERY_S, KEEP, keep
from holdfast.features.memory.llm import views as llm_views
from holdfast.features.memory.llm.when import ASK, BATCH, LOOK_EVERY_S, enqueue
from holdfast.features.memory.model import KINDS, MemorySettings
from holdfast.features.memory.observe import derive
from holdfast.features.memory.reduce import SUBSCRIBED_KINDS, facets, keys, reduce

_lazy = partial(lazy_function, __name__)
"""The index needs numpy, the model http: they are loaded when somebody asks, not when the daemon starts."""

FEATURE = Feature(
    name="memory",
    version=5,
    kinds=KINDS,
    subscribed_kinds=SUBSCRIBED_KINDS,
    keys=keys,
    reduce=reduce,
    facets=facets,
    decide=decide,
    can_decide=can_decide,
    derive=derive,
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
        **{name: _lazy("views", name) for name in ("search", "around", "show", "listed", "injected")},
        "meter": llm_views.shown,
    },
    enqueue=enqueue,
    jobs={BATCH: _lazy("llm.jobs", "batch"), ASK: _lazy("llm.jobs", "ask"), KEEP: keep},
    schedule={BATCH: LOOK_EVERY_S, KEEP: EVERY_S},
    settings=MemorySettings,
)
