"""Code index: the first prompt of a session refreshes it in the background."""

from functools import partial

from holdfast.core.authority import ANYONE
from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_function
from holdfast.features.reindex import commands
from holdfast.features.reindex.files import files
from holdfast.features.reindex.policy import CANCEL, ENQUEUED_FOR, INDEX, SUGGEST, can_decide, decide, derive, enqueue
from holdfast.features.reindex.settings import Settings
from holdfast.features.reindex.state import CHECKOUT, SESSION, SUBSCRIBED_KINDS, facets, keys, reduce

_lazy = partial(lazy_function, __name__)
"""The search library is loaded on the first search, not at the daemon's start."""

VIEWS = ("status", "watch", "runs", "search", "related", "outline", "symbol", "why", "left_out", "flag")

FEATURE = Feature(
    name="reindex",
    version=3,
    subscribed_kinds=SUBSCRIBED_KINDS,
    keys=keys,
    reduce=reduce,
    facets=facets,
    documents=(SESSION, CHECKOUT),
    decide=decide,
    decides_on=frozenset(("tool.finished",)),
    can_decide=can_decide,
    derive=derive,
    enqueue=enqueue,
    enqueues_for=ENQUEUED_FOR,
    commands={"run": commands.request_index_run, "initialize": commands.initialize_flag, "mark": commands.mark_flag},
    authority={"run": ANYONE, "initialize": ANYONE, "mark": ANYONE},
    views={name: _lazy("views", name) for name in VIEWS},
    jobs={INDEX: _lazy("jobs", "index"), CANCEL: _lazy("jobs", "cancel"), SUGGEST: _lazy("jobs", "suggest")},
    files=files,
    settings=Settings,
)
