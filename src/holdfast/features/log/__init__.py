"""The log itself as a room: looking at events, checking that none is missing, leaving a note."""

from holdfast.core.feature import Feature
from holdfast.features.log.commands import add_note
from holdfast.features.log.views import event, events, verify

FEATURE = Feature(
    name="log",
    views={"events": events, "event": event, "verify": verify},
    commands={"note": add_note},
)
