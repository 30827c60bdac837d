"""Turns a transcript into the events that its hooks would have been: shared by the importers of all agents."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import normalise, payload_reader
from holdfast.agents.definition import Tables
from holdfast.agents.source import key_of, numbered_lines, session_name
from holdfast.analysis.transcripts import Found, Skipped
from holdfast.analysis.usage.events import usage_event
from holdfast.analysis.usage.reader import PARSE_ERRORS, Position, Statement, record_of
from holdfast.core.event import BODY_LIMIT, Event
from holdfast.core.ids import bounded_name
from holdfast.core.text import CUT_MARK, VOICE, without_contexts


@dataclass
class History:
    """One session, or one subagent of it, while its records are read in order."""

    agent: str
    path: Path
    tools: Tables
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
    named: dict[str, str] = field(default_factory=dict)

    def own_name(self, ident: str, *what: object) -> str:
        """An id that names something else already gets a suffix; the same thing keeps its name in every import."""
        mark = key_of(self.agent, *what)[:12]
        return ident if self.named.setdefault(ident, mark) == mark else f"{ident}/{mark}"

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
        data: dict[str, Any] = {"prompt": normalise.cap_text(text, normalise.PROMPT)}
        if synthetic or not text.strip() or text.startswith(VOICE):
            data["synthetic"] = True
        yield self.event("prompt.submitted", at, ident, **data)

    def call(self, at: int, call: str, tool: str, tool_input: Any) -> Iterator[Event]:
        # Only for making paths absolute; `event` adds the field itself.
        definition = self.tools.definition
        data: dict[str, Any] = {"cwd": self.project}
        payload_reader.add_tool(self.tools, data, {definition.tool_name: tool, definition.tool_input: tool_input})
        del data["cwd"]
        self.calls[call] = (tool, data)
        yield self.event("tool.started", at, call, tool=tool, call=call, **data)

    def result(self, at: int, call: str, output: Any, *, failed: bool = False, code: int | None = None) -> Event:
        tool, call_data = self.calls.pop(call, ("", {"action": "other"}))
        # Only commands have an exit code.
        code = code if call_data.get("action") == "shell" else None
        data = {**call_data, "ok": not failed and not code}
        if code is not None:
            data["exit_code"] = code
        if failed:
            data["error"] = normalise.output_text(output)[: normalise.ERROR]
        else:
            payload_reader.add_output(data, output)
        ended = self.event("tool.failed" if failed else "tool.finished", at, call, tool=tool, call=call, **data)
        return msgspec.structs.replace(ended, body=whole_output(data, output))

    def denied(self, at: int, call: str, reason: str) -> Event:
        """A hook refused the call: it never ran."""
        tool, data = self.calls.pop(call, ("", {}))
        return self.event("permission.denied", at, call, tool=tool, call=call, reason=reason[: normalise.ERROR], **data)

    def compacted(self, at: int, ident: str, summary: str = "", trigger: str = "") -> Event:
        facts = {"summary": normalise.cap_text(summary, normalise.PROMPT), "trigger": trigger}
        return self.event("compact.ended", at, ident, **{name: text for name, text in facts.items() if text})

    def titled(self, title: str) -> Iterator[Event]:
        """The agent's own title of the session."""
        if title and self.begun and not self.lane:
            yield self.event(
                "session.titled", self.last, key_of(title), title=normalise.cap_text(title, normalise.NAME)
            )

    def end_turn(self, at: int, kind: str = "turn.ended") -> Iterator[Event]:
        if self.open_turn and not self.lane:
            message_data = {"message": normalise.cap_text(self.answer, normalise.MESSAGE)} if self.answer else {}
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
        """A transcript that goes on is imported further next time."""
        if not self.begun or self.closed:
            return
        self.closed = True
        if self.lane:
            message_data = {"message": normalise.cap_text(self.answer, normalise.MESSAGE)} if self.answer else {}
            # The time is part of the key: a transcript that has grown gets another end.
            yield self.event("subagent.ended", self.last, f"{self.last}", **message_data)
            return
        yield from self.end_turn(self.last)
        yield self.event("session.ended", self.last, f"{self.last}", reason="import")

    def event(self, kind: str, at: int, ident: str, tool: str = "", **data: Any) -> Event:
        # A record without a time has the time of the one before it.
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
            project=normalise.one_path(self.project) or "",
            agent=self.agent,
            tool=bounded_name(tool),
            data={**data, **{name: value for name, value in facts.items() if value}, "imported": self.agent},
        )


class UsageSide:
    """The token use of the same file, by the reader that reads it live."""

    def __init__(self, agent: str, position: Position) -> None:
        self.agent, self.position = agent, position

    def event(self, statement: Statement | None, history: History) -> Iterator[Event]:
        record = statement and record_of(self.agent, statement, self.position)
        if record:
            more = {"session": record.session or history.session, "project": record.project or history.project}
            usage_record = msgspec.structs.replace(record, **more, turn=history.turn or record.turn)
            yield usage_event(usage_record, imported=self.agent)


TakeLine = Callable[[bytes, int], Iterable[Found]]


def read_lines(path: Path, take: TakeLine, close: Callable[[], Iterable[Event]]) -> Iterator[Found]:
    """One JSON object per line. Other lines are reported and skipped."""
    for number, line in numbered_lines(path):
        try:
            yield from take(line, number)
        except PARSE_ERRORS as error:
            yield Skipped(f"{path}:{number}", f"not a record: {str(error)[:120]}")
    yield from close()


def whole_output(data: Mapping[str, Any], response: Any, field: str = "tool_response") -> bytes:
    """What a command printed, as a hook's payload has it, where the event has only a part of it: checks are judged by the
    whole."""
    kept = data.get("output") or data.get("error") or ""
    if data.get("action") != "shell" or CUT_MARK not in kept or not isinstance(response, str | dict):
        return b""
    body = msgspec.json.encode({field: response})
    return body if len(body) <= BODY_LIMIT else b""


def text_of(parts: Any, key: str = "text") -> str:
    """The text of a message that is text, or a list of parts."""
    if isinstance(parts, str):
        return parts
    texts = [part.get(key) for part in map(normalise.mapping_or_empty, parts)] if isinstance(parts, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))
