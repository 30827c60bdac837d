"""Memory (seed 004): what people asked to keep and what a project taught, injected when relevant."""

from functools import partial

from holdfast.core.authority import ANYONE, person
from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_function
from holdfast.features.memory import policy
from holdfast.features.memory.settings import MemorySettings
from holdfast.features.memory.state import reducer as state

_lazy = partial(lazy_function, __name__)
"""Loaded on demand, because the index needs numpy."""

COMMANDS = {
    "add": ANYONE,
    "pin": person("pinning a memory"),
    "promote": person("vouching for a memory"),
    "keep": person("keeping a candidate"),
    "drop": person("dropping a candidate"),
    "forget": person("forgetting a memory"),
    "handoff": ANYONE,
    "quirk_edit": person("editing a quirk"),
    "quirk_forget": person("forgetting a quirk"),
}
"""Words that an agent adds are its own, never the user's."""

FEATURE = Feature(
    name="memory",
    version=9,
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
    derives_history=True,
    commands={
        **{name: _lazy("commands", name) for name in ("add", "pin", "promote", "keep", "drop", "forget")},
        "handoff": _lazy("commands", "hand_over"),
        "quirk_edit": _lazy("commands", "edit_quirk"),
        "quirk_forget": _lazy("commands", "forget_quirk"),
    },
    authority=COMMANDS,
    views={
        **{
            name: _lazy("views", name)
            for name in ("search", "around", "show", "listed", "injected", "recall", "quirks")
        },
        "fix": _lazy("past_runs", "find_fix"),
        "how": _lazy("past_runs", "how_to"),
    },
    enqueue=policy.enqueue,
    enqueues_for=state.ENQUEUED_FOR,
    jobs={
        policy.FIND_FILES: _lazy("jobs", "find_files"),
        policy.KEEP_INDEX: _lazy("jobs", "keep_index"),
    },
    schedule={policy.KEEP_INDEX: policy.KEEP_EVERY_S},
    settings=MemorySettings,
)
