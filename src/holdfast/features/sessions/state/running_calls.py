"""What runs now and what the user is asked, each in its lane."""

from collections.abc import Iterable

from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.features.sessions.state.documents import (
    MAX_ASKS,
    MAX_REMEMBERED_CALLS,
    MAX_RUNNING,
    Ask,
    RunningCall,
    Session,
    one_line,
)  # fmt: skip


def about_call(event: Event) -> str:
    """What a tool call is about: its command, its first file, its skill."""
    data = event.data
    if not isinstance(data, ToolPayload):
        return one_line(data.get("message"))
    return one_line(data.command or (data.paths[0] if data.paths else "") or data.skill or data.get("message"))


def start_call(session: Session, event: Event, call: str) -> None:
    entry = RunningCall(tool=event.tool, about=about_call(event), at=event.at, lane=event.data.lane)
    running = {**session.running, call: entry}
    session.running = running if len(running) <= MAX_RUNNING else dict(list(running.items())[-MAX_RUNNING:])


def end_call(session: Session, event: Event) -> None:
    """A call that ended is remembered for a while: its start may come later, and its end again."""
    call = event.data.call
    if call:
        remember_call(session, call)
    remove_calls(session, [call] if call else _calls_without_id(session, event)[:1])
    remove_answered(session, event)


def remember_call(session: Session, call: str) -> None:
    session.done = [*session.done, call][-MAX_REMEMBERED_CALLS:]


def _calls_without_id(session: Session, event: Event) -> list[str]:
    """Running calls of the same tool in the same lane that have no id: those with the same input first, the oldest of
    them first."""
    about, lane = about_call(event), event.data.lane
    same = [(c, r) for c, r in session.running.items() if c[:1] == "#" and (r.tool, r.lane) == (event.tool, lane)]
    return [c for c, r in same if r.about == about] + [c for c, r in same if r.about != about]


def remove_calls(session: Session, calls: Iterable[str]) -> None:
    gone = set(calls)
    if gone & session.running.keys():
        session.running = {call: entry for call, entry in session.running.items() if call not in gone}


def clear_running(session: Session, lane: str | None = None) -> None:
    """Nothing runs and nothing is asked any more: in the given lane, or at all."""
    if session.running:
        session.running = {c: r for c, r in session.running.items() if lane is not None and r.lane != lane}
    if session.asks:
        session.asks = [a for a in session.asks if lane is not None and a.lane != lane]


def add_ask(session: Session, event: Event, what: str) -> None:
    if session.is_active:
        ask = Ask(
            what=what, tool=event.tool, about=about_call(event), lane=event.data.lane, at=event.at,
            shell=what == "permission" and event.get("action") == "shell",
        )  # fmt: skip
        session.asks = [*(a for a in session.asks if not _is_about(a, event)), ask][-MAX_ASKS:]


def remove_answered(session: Session, event: Event) -> None:
    """A notification names no tool, so any end in its lane answers it."""
    if session.asks:
        lane = event.data.lane
        session.asks = [a for a in session.asks if not _is_about(a, event) and (a.tool or a.lane != lane)]


def _is_about(ask: Ask, event: Event) -> bool:
    return (ask.tool, ask.about, ask.lane) == (event.tool, about_call(event), event.data.lane)
