"""Reindex (seed 000): the first prompt of a session refreshes the code index in the background, and nobody waits."""

from functools import partial

from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_function
from holdfast.features.reindex import commands
from holdfast.features.reindex.derive import derive
from holdfast.features.reindex.enqueue import CANCEL, INDEX, SUGGEST, enqueue
from holdfast.features.reindex.files import files
from holdfast.features.reindex.model import KINDS, SUBSCRIBED_KINDS, Settings
from holdfast.features.reindex.offer import can_decide, decide
from holdfast.features.reindex.reduce import facets, keys, reduce

_lazy = partial(lazy_function, __name__)
"""The search library is loaded when somebody searches, not when the daemon starts."""

FEATURE = Feature(
    name="reindex",
    version=1,
    kinds=KINDS,
    subscribed_kinds=SUBSCRIBED_KINDS,
    keys=keys,
    reduce=reduce,
    facets=facets,
    decide=decide,
    can_decide=can_decide,
    derive=derive,
    enqueue=enqueue,
    commands={"run": commands.run, "initialize": commands.initialize, "mark": commands.mark},
    views={name: _lazy("views", name) for name in ("status", "watch", "runs", "search", "why", "left_out", "flag")},
    jobs={INDEX: _lazy("jobs", "index"), CANCEL: _lazy("jobs", "cancel"), SUGGEST: _lazy("suggest", "suggest")},
    files=files,
    settings=Settings,
)
