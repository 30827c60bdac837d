"""The log itself as a feature: looking at events, searching them, checking that none is missing, leaving a note."""

from holdfast.core.feature import Feature
from holdfast.features.log.commands import add_note
from holdfast.features.log.history import history
from holdfast.features.log.views import event, events, verify

FEATURE = Feature(
    name="log",
    views={"events": events, "event": event, "verify": verify, "history": history},
    commands={"note": add_note},
)
