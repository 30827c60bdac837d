"""Reindex: the first prompt of a session refreshes the code index in the background, and nobody waits."""

from functools import partial

from holdfast.core.feature import Feature
from holdfast.core.later import later
from holdfast.features.reindex import commands
from holdfast.features.reindex.events import KINDS, LISTENS
from holdfast.features.reindex.files import files
from holdfast.features.reindex.policy import CANCEL, INDEX, SUGGEST, decide, enqueue, follow, may_answer
from holdfast.features.reindex.settings import Settings
from holdfast.features.reindex.state import facets, keys, reduce

_later = partial(later, __name__)
"""The search library is loaded when somebody searches, not when the daemon starts."""

VIEWS = ("status", "watch", "runs", "search", "related", "outline", "symbol", "why", "left_out", "flag")

FEATURE = Feature(
    name="reindex",
    version=1,
    kinds=KINDS,
    listens=LISTENS,
    keys=keys,
    reduce=reduce,
    facets=facets,
    decide=decide,
    may_answer=may_answer,
    follow=follow,
    enqueue=enqueue,
    commands={"run": commands.run, "initialize": commands.initialize, "mark": commands.mark},
    views={
        name: _later("views", name)
        for name in ("status", "watch", "runs", "search", "related", "outline", "symbol", "why", "left_out", "flag")
    },
    jobs={INDEX: _later("jobs", "index"), CANCEL: _later("jobs", "cancel"), SUGGEST: _later("jobs", "suggest")},
    files=files,
    settings=Settings,
)
