"""Finds the subagent that a hook ran in, where the agent does not name it (Kimi Code, Gemini CLI)."""

# A session that waits for a subagent does nothing else meanwhile: what ends a turn then ends the subagent's, and what
# begins is the subagent's. Of several at once it is known where all have one name, which is all that these agents say
# of a subagent; of several with different names, and of one in the background, it is unknown.

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from holdfast.core.event import Event, derived_event
from holdfast.core.feature import State
from holdfast.core.kinds import TOOL_ENDS, HookPayload, ToolPayload
from holdfast.core.kinds.agent_events import SubagentEnded, SubagentStarted
from holdfast.features.sessions.state.documents import SESSION, Lane

# Sessions that are watched at the same time; the oldest is forgotten.
MOST_SESSIONS = 200
# Agents that report neither the beginning nor the end of a subagent: a call of action `agent` waits for it.
UNTOLD = frozenset(("gemini",))
BESIDE_MS = 300
"""A call that begins so soon after a subagent is the session's own: the subagent has to ask its model first."""
# These end everything that ran before.
BEGINS_ANEW = frozenset(("prompt.submitted", "session.started", "session.ended", "turn.interrupted"))


@dataclass
class _Waiting:
    calls: set[str] = field(default_factory=set)
    """Calls of the session itself that wait for a subagent."""
    lanes: list[str] = field(default_factory=list)
    """Subagents that began and did not end; two may have the same name."""
    lane_of: dict[str, str] = field(default_factory=dict)
    """By the calls that were found to be a subagent's."""
    since: int = 0
    """When the last subagent began, of those without a hook."""

    @property
    def only_lane(self) -> str:
        return self.lanes[0] if len(set(self.lanes)) == 1 else ""


class SubagentWatch:
    """Fed with the hooks of all sessions as they come. What it finds is written into the event, so a replay sees the same."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], _Waiting] = {}

    def assign_lane(self, event: Event) -> None:
        data, key = event.data, (event.agent, event.session)
        if event.kind in BEGINS_ANEW:
            self._waiting.pop(key, None)
        elif isinstance(data, ToolPayload) and data.lane_untold:
            self._place_call(event, data)
        elif key in self._waiting and isinstance(data, HookPayload):
            self._follow(event.kind, data, self._waiting[key])

    def _place_call(self, event: Event, data: ToolPayload) -> None:
        key = (event.agent, event.session)
        waiting, call = self._waiting.get(key), _call_name(event, data)
        if event.kind == "tool.started":
            waiting = self._begin_call(event, waiting, call, spawns=data.action == "agent")
        if waiting is None:
            return
        data.lane = data.lane_type = waiting.lane_of.get(call, "")
        if event.kind in TOOL_ENDS:
            self._end_call(event, waiting, call)
            if not waiting.calls:
                del self._waiting[key]  # A subagent that goes on is in the background.

    def _begin_call(self, event: Event, waiting: _Waiting | None, call: str, *, spawns: bool) -> _Waiting | None:
        if waiting and waiting.only_lane and not self._is_beside(event, waiting, spawns):
            waiting.lane_of[call] = waiting.only_lane
        elif spawns:
            waiting = waiting or self._watched((event.agent, event.session))
            waiting.calls.add(call)
            if event.agent in UNTOLD:
                waiting.lanes.append(subagent_name(event))
                waiting.since = event.at
        return waiting

    @staticmethod
    def _is_beside(event: Event, waiting: _Waiting, spawns: bool) -> bool:
        """Whether the call is the session's own: several subagents begin at about the same time."""
        if event.agent in UNTOLD:
            return spawns or event.at - waiting.since < BESIDE_MS
        return spawns and len(waiting.lanes) < len(waiting.calls)

    @staticmethod
    def _end_call(event: Event, waiting: _Waiting, call: str) -> None:
        waiting.lane_of.pop(call, None)
        if call in waiting.calls and event.agent in UNTOLD and subagent_name(event) in waiting.lanes:
            waiting.lanes.remove(subagent_name(event))
        waiting.calls.discard(call)

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


def _call_name(event: Event, data: ToolPayload) -> str:
    """Without an id, calls that run at the same time are distinguished by their input."""
    return data.call or f"{event.tool} {msgspec.json.encode(data.input, order='sorted').decode()}"


def subagent_name(event: Event) -> str:
    """As Gemini's call names it; an older version has a tool for each."""
    return str((event.data.input or {}).get("agent_name") or event.tool)[:80]


def untold_subagents(state: State, event: Event) -> Iterator[Event]:
    """The beginning and the end of a subagent, where the agent reports neither: with its first call, and with the end of the
    call that started it, where a subagent without calls begins too."""
    data = event.data
    if event.agent not in UNTOLD or not isinstance(data, ToolPayload) or data.imported:
        return
    session = SESSION.get(state, event.session)
    if session is None:
        return
    if data.lane and event.kind == "tool.started":
        lane = session.lanes.get(data.lane)
        # The state has this very call already.
        if _is_closed(lane) or (lane and lane.at == event.at):
            yield _subagent_event(event, SubagentStarted(), data.lane)
    elif not data.lane and data.action == "agent" and event.kind in TOOL_ENDS:
        name = subagent_name(event)
        if _is_closed(session.lanes.get(name)):
            yield _subagent_event(event, SubagentStarted(), name)
        yield _subagent_event(event, SubagentEnded(), name)


def _is_closed(lane: Lane | None) -> bool:
    return lane is None or bool(lane.end)


def _subagent_event(event: Event, payload: SubagentStarted | SubagentEnded, name: str) -> Event:
    data: ToolPayload = event.data
    place = {name: getattr(data, name) for name in ("turn", "branch", "repo", "cwd")}
    told = {"lane": name, "lane_type": name, **place}
    return msgspec.structs.replace(derived_event(event, msgspec.structs.replace(payload, **told)), tool="")
