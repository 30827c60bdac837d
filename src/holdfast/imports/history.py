"""What a transcript tells, as the events its hooks would have been: shared by the importers of all agents."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.agents import normal, payload_reader
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.core.kinds.agent_events import ModelAnswered
from holdfast.core.text import VOICE, without_contexts
from holdfast.imports.source import PARSE_ERRORS, Found, Skipped, key_of, numbered_lines, session_name
from holdfast.usage.events import usage_event
from holdfast.usage.reader import Position, Statement, record_of

if TYPE_CHECKING:
    from holdfast.features.sessions.state.documents import Session


@dataclass
class History:
    """One session, or one subagent of it, while its records are read in order."""

    agent: str
    path: Path
    tools: payload_reader.Tables
    session: str = ""
    lane: str = ""
    lane_type: str = ""
    project: str = ""
    branch: str = ""
    model: str = ""
    turn: str = ""
    answer: str = ""
    turns: int = 0
    begun: bool = False
    open_turn: bool = False
    closed: bool = False
    last: int = 0
    calls: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)

    def begin(self, at: int) -> Iterator[Event]:
        if not self.begun and self.session:
            self.begun = True
            yield self.event("subagent.started" if self.lane else "session.started", at, "begin", source="import")

    def prompt(self, at: int, ident: str, text: str, *, synthetic: bool = False) -> Iterator[Event]:
        """A prompt opens a turn, and ends the one before it."""
        text = without_contexts(text)
        yield from self.end_turn(at)
        self.turn, self.open_turn, self.closed = ident, True, False
        self.turns += 1
        data: dict[str, Any] = {"prompt": normal.cap_text(text, normal.PROMPT)}
        if synthetic or not text.strip() or text.startswith(VOICE):
            data["synthetic"] = True
        yield self.event("prompt.submitted", at, ident, **data)

    def call(self, at: int, call: str, tool: str, tool_input: Any) -> Iterator[Event]:
        # Only for making paths absolute; `event` adds the field itself.
        data: dict[str, Any] = {"cwd": self.project}
        payload_reader.add_tool(self.tools, data, {self.tools.tool_name: tool, self.tools.tool_input: tool_input})
        del data["cwd"]
        self.calls[call] = (tool, data)
        yield self.event("tool.started", at, call, tool=tool, call=call, **data)

    def result(self, at: int, call: str, output: Any, *, failed: bool = False, code: int | None = None) -> Event:
        tool, call_data = self.calls.pop(call, ("", {"action": "other"}))
        # Only a command has one; of another tool's output nothing is taken for it.
        code = code if call_data.get("action") == "shell" else None
        data = {**call_data, "ok": not failed and not code}
        if code is not None:
            data["exit_code"] = code
        if failed:
            data["error"] = normal.output_text(output)[: normal.ERROR]
        else:
            payload_reader.add_output(data, output)
        return self.event("tool.failed" if failed else "tool.finished", at, call, tool=tool, call=call, **data)

    def denied(self, at: int, call: str, reason: str) -> Event:
        """A hook refused the call: it never ran."""
        tool, _ = self.calls.pop(call, ("", {}))
        return self.event("permission.denied", at, call, tool=tool, call=call, reason=reason[: normal.ERROR])

    def compacted(self, at: int, ident: str, summary: str = "", trigger: str = "") -> Event:
        facts = {"summary": normal.cap_text(summary, normal.PROMPT), "trigger": trigger}
        return self.event("compact.ended", at, ident, **{name: text for name, text in facts.items() if text})

    def end_turn(self, at: int, kind: str = "turn.ended") -> Iterator[Event]:
        if self.open_turn and not self.lane:
            message_data = {"message": normal.cap_text(self.answer, normal.MESSAGE)} if self.answer else {}
            # A turn ends with its last record, not with the prompt that follows it perhaps hours later.
            yield self.event(kind, self.last or at, f"{self.turn}/end", **message_data)
        if not self.lane:
            self.answer = ""
        self.open_turn = False

    def answered(self, at: int, text: str) -> None:
        """The last words of a turn are its answer, and its end is not before them."""
        self.answer = text or self.answer
        self.last = max(self.last, at)

    def close(self) -> Iterator[Event]:
        """A transcript goes on when its session does: then the next import tells the rest."""
        if not self.begun or self.closed:
            return
        self.closed = True
        if self.lane:
            message_data = {"message": normal.cap_text(self.answer, normal.MESSAGE)} if self.answer else {}
            # The time is part of the key: a transcript that has grown gets another end.
            yield self.event("subagent.ended", self.last, f"{self.last}", **message_data)
            return
        yield from self.end_turn(self.last)
        yield self.event("session.ended", self.last, f"{self.last}", reason="import")

    def event(self, kind: str, at: int, ident: str, tool: str = "", **data: Any) -> Event:
        # A record without a time happened with the one before it.
        at = at or self.last
        self.last = max(self.last, at)
        facts = {
            "turn": self.turn, "lane": self.lane, "lane_type": self.lane_type, "branch": self.branch,
            "cwd": self.project, "model": self.model, "transcript": "" if self.lane else str(self.path),
        }  # fmt: skip
        return Event(
            key=key_of(self.agent, self.session, self.lane, kind, ident),
            kind=kind,
            at=at,
            session=session_name(self.session),
            project=normal.one_path(self.project) or "",
            agent=self.agent,
            tool=bounded_name(tool),
            data={**data, **{name: value for name, value in facts.items() if value}, "imported": self.agent},
        )


class UsageSide:
    """The figures of the same file, by the reader that reads them live."""

    def __init__(self, agent: str, position: Position) -> None:
        self.agent, self.position = agent, position

    def event(self, statement: Statement | None, history: History) -> Iterator[Event]:
        record = statement and record_of(self.agent, statement, self.position)
        if record:
            more = {"session": record.session or history.session, "project": record.project or history.project}
            usage_record = msgspec.structs.replace(record, **more, turn=history.turn or record.turn)
            yield usage_event(usage_record, imported=self.agent)


TakeLine = Callable[[bytes, int], Iterable[Event]]


def read_lines(path: Path, take: TakeLine, close: Callable[[], Iterable[Event]]) -> Iterator[Found]:
    """One JSON object per line. A line that is none is named, the rest is read."""
    for number, line in numbered_lines(path):
        try:
            yield from take(line, number)
        except PARSE_ERRORS as error:
            yield Skipped(f"{path}:{number}", f"not a record: {str(error)[:120]}")
    yield from close()


def text_of(parts: Any, key: str = "text") -> str:
    """The text of a message that is text, or a list of parts."""
    if isinstance(parts, str):
        return parts
    texts = [part.get(key) for part in map(normal.mapping_or_empty, parts)] if isinstance(parts, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))


# Which turn each call of a model belongs to, found as a live session would have numbered its turns.

MAX_SESSIONS = 100
"""Sessions of one file that are followed at a time; a database holds many."""


def believable_times(events: Iterable[Event], latest: int) -> Iterator[Event]:
    """Events of one file, in order. One of the future happened with the one before it."""
    last = 0
    for event in events:
        last = event.at if event.at <= latest else last
        yield event if event.at <= latest else msgspec.structs.replace(event, at=last)


def number_turns(events: Iterable[Event]) -> Iterator[Event]:
    """Events of one file, in order. The rules are those of the feature `sessions`, so that both count alike."""
    # Who only looks which files there are, as `holdfast up` does, loads no feature.
    from holdfast.features.sessions.state.reducer import reduce_session

    sessions: OrderedDict[str, Session] = OrderedDict()
    for event in events:
        # Taken out and put in again: the session that was touched last stands at the end.
        previous = sessions.pop(event.session, None)
        session = reduce_session(previous, event)
        if session is not None:
            sessions[event.session] = session
            if len(sessions) > MAX_SESSIONS:
                sessions.popitem(last=False)
        yield _with_turn_number(event, session)


def _with_turn_number(event: Event, session: "Session | None") -> Event:
    data = event.data
    if not isinstance(data, ModelAnswered) or session is None or session.turn is None:
        return event
    return msgspec.structs.replace(event, data=msgspec.structs.replace(data, turn_n=session.turn.n))
