"""Memory (seed 004): what was decided, fixed, tried and learned is found again, and told when it fits."""

from functools import partial

from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_function
from holdfast.features.memory import policy
from holdfast.features.memory.settings import MemorySettings
from holdfast.features.memory.state import reducer as state

_lazy = partial(lazy_function, __name__)
"""The index needs numpy, the model http: they are loaded when somebody asks, not when the daemon starts."""

FEATURE = Feature(
    name="memory",
    version=7,
    subscribed_kinds=state.SUBSCRIBED_KINDS,
    documents=state.DOCUMENTS,
    keys=state.keys,
    reduce=state.reduce,
    facets=state.facets,
    decide=policy.decide,
    decides_on=frozenset(policy.MOMENTS),
    can_decide=policy.can_decide,
    derive=policy.derive,
    derives_from=state.DERIVED_FROM,
    commands={
        **{name: _lazy("commands", name) for name in ("add", "pin", "promote", "keep", "drop", "forget")},
        "handoff": _lazy("commands", "hand_over"),
    },
    views={name: _lazy("views", name) for name in ("search", "around", "show", "listed", "injected", "meter")},
    enqueue=policy.enqueue,
    enqueues_for=state.ENQUEUED_FOR,
    jobs={
        policy.FIND_FILES: _lazy("jobs", "find_files"),
        policy.BATCH: _lazy("jobs", "batch"),
        policy.ASK: _lazy("jobs", "ask_model"),
        policy.KEEP_INDEX: _lazy("jobs", "keep_index"),
        policy.LOAD_LANGUAGE: _lazy("jobs", "load_language"),
    },
    schedule={
        policy.BATCH: policy.BATCH_EVERY_S,
        policy.KEEP_INDEX: policy.KEEP_EVERY_S,
        policy.LOAD_LANGUAGE: policy.LOAD_EVERY_S,
    },
    settings=MemorySettings,
)
