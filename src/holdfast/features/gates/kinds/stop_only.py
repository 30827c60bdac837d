"""Kind `stop_only`: a task that is checked only when the turn ends."""

from typing import TYPE_CHECKING

from holdfast.features.gates.kinds.blocking import Blocking

if TYPE_CHECKING:
    from holdfast.features.gates.settings import Requirement


class StopOnly(Blocking):
    name = "stop_only"
    summary = "A task that is checked when the turn ends, not at each tool call."
    always_at_stop = True

    def checked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        return False, True


KIND = StopOnly()
