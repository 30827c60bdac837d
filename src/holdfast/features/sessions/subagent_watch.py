"""Which subagent a hook ran in, where the agent does not say it (Kimi Code).

A session that waits for a subagent does nothing else meanwhile: what ends a turn then ends the subagent's, and what begins is the
subagent's as long as there is only one. Of several at once, and of one in the background, nobody can tell.
"""

from dataclasses import dataclass, field

from holdfast.core.event import Event
from holdfast.core.kinds import TOOL_ENDS, HookPayload, ToolPayload

# Sessions that are watched at the same time; the oldest is forgotten.
MOST_SESSIONS = 200
# After these nothing that came before is under way any more.
BEGINS_ANEW = frozenset(("prompt.submitted", "session.started", "session.ended", "turn.interrupted"))


@dataclass
class _Waiting:
    calls: set[str] = field(default_factory=set)
    """Calls of the session itself that wait for a subagent."""
    lanes: list[str] = field(default_factory=list)
    """Subagents that began and did not end; two may have the same name."""
    lane_of: dict[str, str] = field(default_factory=dict)
    """By the calls that were found to be a subagent's."""

    @property
    def only_lane(self) -> str:
        return self.lanes[0] if len(self.calls) == 1 and len(set(self.lanes)) == 1 else ""


class SubagentWatch:
    """Fed with the hooks of all sessions as they come. What it finds is written into the event, so a replay sees the same."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], _Waiting] = {}

    def place(self, event: Event) -> None:
        data, key = event.data, (event.agent, event.session)
        if event.kind in BEGINS_ANEW:
            self._waiting.pop(key, None)
        elif isinstance(data, ToolPayload) and data.lane_untold:
            self._place_call(event, data)
        elif key in self._waiting and isinstance(data, HookPayload):
            self._follow(event.kind, data, self._waiting[key])

    def _place_call(self, event: Event, data: ToolPayload) -> None:
        key = (event.agent, event.session)
        waiting = self._waiting.get(key)
        if waiting and event.kind == "tool.started" and waiting.only_lane:
            waiting.lane_of[data.call] = waiting.only_lane
        elif event.kind == "tool.started" and data.action == "agent":
            waiting = waiting or self._watched(key)
            waiting.calls.add(data.call)
        if waiting is None:
            return
        data.lane = data.lane_type = waiting.lane_of.get(data.call, "")
        if event.kind in TOOL_ENDS:
            waiting.lane_of.pop(data.call, None)
            waiting.calls.discard(data.call)
            if not waiting.calls:
                del self._waiting[key]  # A subagent that goes on is in the background.

    def _follow(self, kind: str, data: HookPayload, waiting: _Waiting) -> None:
        if kind == "subagent.started":
            waiting.lanes.append(data.lane)
        elif kind == "subagent.ended" and data.lane in waiting.lanes:
            waiting.lanes.remove(data.lane)
        elif data.lane_untold and waiting.lanes:
            data.lane = data.lane_type = waiting.lanes[0]

    def _watched(self, key: tuple[str, str]) -> _Waiting:
        while len(self._waiting) >= MOST_SESSIONS:
            del self._waiting[next(iter(self._waiting))]
        return self._waiting.setdefault(key, _Waiting())
