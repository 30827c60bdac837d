"""The log itself: listing events, searching them, checking for gaps, adding notes; and Holdfast's own health."""

from holdfast.core.authority import ANYONE
from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_function
from holdfast.features.log import health
from holdfast.features.log.commands import add_note
from holdfast.features.log.views import list_events, search_history, show_event, verify_log

FEATURE = Feature(
    name="log",
    version=2,
    documents=(health.HEALTH,),
    subscribed_kinds=health.KINDS | {health.SESSION_START},
    keys=health.keys,
    reduce=health.reduce,
    decide=health.decide,
    decides_on=frozenset((health.SESSION_START,)),
    views={
        "events": list_events,
        "event": show_event,
        "verify": verify_log,
        "history": search_history,
        "figures": lazy_function(__name__, "figures", "recent_figures"),
    },
    commands={"note": add_note},
    authority={"note": ANYONE},
)
