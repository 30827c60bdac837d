"""The log itself: listing events, searching them, checking for gaps, adding notes."""

from holdfast.core.authority import ANYONE
from holdfast.core.feature import Feature
from holdfast.features.log.commands import add_note
from holdfast.features.log.views import list_events, search_history, show_event, verify_log

FEATURE = Feature(
    name="log",
    views={"events": list_events, "event": show_event, "verify": verify_log, "history": search_history},
    commands={"note": add_note},
    authority={"note": ANYONE},
)
