"""Subagents are lanes inside their parent's session (H6): keyed by session + agent id, never sessions of their own."""

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import SubagentEnded
from holdfast.features.sessions.state.documents import MAX_LANES, Lane, Session, one_line

replace = msgspec.structs.replace


def touch_lane(session: Session, event: Event, tools: int = 0) -> None:
    """Something happened in a lane. One whose beginning was missed begins here; one that ended stays ended."""
    lane = event.data.lane
    if not lane:
        return
    known = session.lanes.get(lane)
    if known is None:
        session.lanes_seen += 1
        known = Lane(type=one_line(event.data.lane_type, 40), at=event.at)
    entry = replace(known, tools=known.tools + tools, last=event.at)
    session.lanes = _capped({**session.lanes, lane: entry})


def end_lane(session: Session, event: Event) -> None:
    """Its transcript may be a file of its own."""
    touch_lane(session, event)
    data = event.data
    lane = data.lane or _oldest_open(session, data.lane_type)
    known = session.lanes.get(lane)
    if known is None:
        return
    entry = replace(known, end=known.end or event.at or 1)
    if isinstance(data, SubagentEnded) and data.lane_transcript:
        entry.transcript = data.lane_transcript
    session.lanes = {**session.lanes, lane: entry}


def _oldest_open(session: Session, lane_type: str) -> str:
    """Cursor names only the type of a subagent that ended."""
    return next((name for name, lane in session.lanes.items() if not lane.end and lane.type == lane_type), "")


def end_all_lanes(session: Session, event: Event) -> None:
    if session.any_lane_open:
        session.lanes = {k: v if v.end else replace(v, end=event.at or 1) for k, v in session.lanes.items()}


def _capped(lanes: dict[str, Lane]) -> dict[str, Lane]:
    """Those that ended go first, the oldest of them before the others."""
    while len(lanes) > MAX_LANES:
        victim = next((k for k, v in lanes.items() if v.end), None) or next(iter(lanes))
        lanes = {k: v for k, v in lanes.items() if k != victim}
    return lanes
