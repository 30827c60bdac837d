"""Reindex (seed 000): the first prompt of a session refreshes the code index in the background, and nobody waits."""

from holdfast.core.feature import Feature
from holdfast.features.reindex import commands, views
from holdfast.features.reindex.enqueue import CANCEL, INDEX, SUGGEST, enqueue
from holdfast.features.reindex.files import files
from holdfast.features.reindex.follow import follow
from holdfast.features.reindex.jobs import cancel, index
from holdfast.features.reindex.model import KINDS, LISTENS, Settings
from holdfast.features.reindex.offer import decide, suggest
from holdfast.features.reindex.reduce import facets, keys, reduce

FEATURE = Feature(
    name="reindex",
    version=1,
    kinds=KINDS,
    listens=LISTENS,
    keys=keys,
    reduce=reduce,
    facets=facets,
    decide=decide,
    follow=follow,
    enqueue=enqueue,
    commands={"run": commands.run, "initialize": commands.initialize, "mark": commands.mark},
    views={
        "status": views.status,
        "runs": views.runs,
        "search": views.search,
        "why": views.why,
        "left_out": views.left_out,
        "flag": views.flag,
    },
    jobs={INDEX: index, CANCEL: cancel, SUGGEST: suggest},
    files=files,
    settings=Settings,
)
