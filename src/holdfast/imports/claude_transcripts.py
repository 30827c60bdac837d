"""Claude Code's transcripts: `~/.claude/projects/*/SESSION.jsonl`, and those of its subagents."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import normal, payload_reader
from holdfast.agents.claude_code import TABLES
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.imports.source import (
    PARSE_ERRORS,
    Found,
    Importer,
    Place,
    Skipped,
    key_of,
    merge_by_time,
    numbered_lines,
    parse_milliseconds,
    session_name,
)
from holdfast.usage.events import usage_event
from holdfast.usage.reader import Position, record_of
from holdfast.usage.readers import claude_code as usage

NAME = "claude-code"
# Background tasks, and commands that the person ran in Claude Code itself.
NOT_TYPED = ("<task-notification>", "<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>")
"""How messages begin that stand in a transcript as a user's, but that nobody typed."""
SUBAGENTS = "subagents"
OF_INTEREST = ("user", "assistant")


class Message(msgspec.Struct):
    content: Any = None
    model: str | None = None


class Record(msgspec.Struct):
    """Only what is needed: the rest of a line, often most of it, is never built."""

    type: str = ""
    uuid: str = ""
    sessionId: str = ""  # noqa: N815 - their names
    agentId: str | None = None  # noqa: N815
    promptId: str | None = None  # noqa: N815
    timestamp: Any = None
    cwd: str | None = None
    gitBranch: str | None = None  # noqa: N815
    isMeta: bool | None = None  # noqa: N815
    isSidechain: bool | None = None  # noqa: N815
    isCompactSummary: bool | None = None  # noqa: N815
    toolDenialKind: Any = None  # noqa: N815
    """Set where a hook, a rule or a person refused the call whose result this is."""
    message: Message | None = None


decode = msgspec.json.Decoder(Record).decode


def find_transcripts(location: Place) -> Iterable[Path]:
    """A subagent's transcript is read with that of its session; alone only where that is gone."""
    transcripts = sorted((location.home / ".claude" / "projects").rglob("*.jsonl"))
    return [path for path in transcripts if path.parent.name != SUBAGENTS or not _session_file(path).exists()]


def _session_file(subagent: Path) -> Path:
    folder = subagent.parent.parent
    return folder.with_name(folder.name + ".jsonl")


def read_transcript(path: Path, _place: Place) -> Iterator[Found]:
    subagents = sorted((path.with_suffix("") / SUBAGENTS).glob("*.jsonl"))
    return merge_by_time(map(_read_file, (path, *subagents)))


def _read_file(path: Path) -> Iterator[Found]:
    transcript = _Transcript(path)
    for number, line in numbered_lines(path):
        try:
            record = decode(line)
        except PARSE_ERRORS as error:
            yield Skipped(f"{path}:{number}", f"not a record: {str(error)[:120]}")
            continue
        if record.type not in OF_INTEREST:
            yield Skipped(str(path), record.type or "no type", expected=True)
        elif record.message is None or not record.sessionId or not record.uuid:
            yield Skipped(f"{path}:{number}", "a message without session, id or text")
        else:
            yield from transcript.take(record)
            yield from transcript.spent(line)
    yield from transcript.close()


@dataclass
class _Transcript:
    path: Path
    begun: bool = False
    last: Record | None = None
    answer: str = ""
    turn: str = ""
    at: int = 0
    calls: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    position: Position = field(default_factory=lambda: Position(""))

    def spent(self, line: bytes) -> Iterator[Event]:
        """By the reader that reads the same file live."""
        try:
            statement = usage.parse_claude_code_usage(line, self.position) if b'"usage"' in line else None
        except PARSE_ERRORS:
            return
        record = statement and record_of(NAME, statement, self.position)
        if record:
            yield usage_event(msgspec.structs.replace(record, turn=self.turn), imported=NAME)

    def take(self, record: Record) -> Iterator[Event]:
        if not self.begun:
            self.begun = True
            yield self._event(record, "subagent.started" if record.agentId else "session.started", source="import")
        parts = record.message.content if record.message else None
        # A message may be one text or a list of parts.
        if isinstance(parts, str):
            parts = [{"type": "text", "text": parts}]
        if isinstance(parts, list):
            yield from self._user(record, parts) if record.type == "user" else self._assistant(record, parts)
        self.last = record

    def _user(self, record: Record, parts: list[Any]) -> Iterator[Event]:
        results = [p for p in map(normal.mapping_or_empty, parts) if p.get("type") == "tool_result"]
        for n, part in enumerate(results):
            yield self._result(record, part, n)
        # Meta messages are Claude Code's own, and results are no prompt.
        if results or record.isMeta:
            return
        texts = [str(p.get("text")) for p in map(normal.mapping_or_empty, parts) if p.get("type") == "text"]
        if record.isCompactSummary:
            yield self._event(record, "compact.ended", summary=normal.cap_text("\n".join(texts), normal.PROMPT))
        elif texts:
            yield from self._turn_over()
            self.turn = record.promptId or record.uuid
            prompt = normal.cap_text("\n".join(texts), normal.PROMPT)
            data: dict[str, Any] = {"prompt": prompt}
            if prompt.lstrip().startswith(NOT_TYPED):
                data["synthetic"] = True
            yield self._event(record, "prompt.submitted", **data)

    def _assistant(self, record: Record, parts: list[Any]) -> Iterator[Event]:
        for n, part in enumerate(map(normal.mapping_or_empty, parts)):
            if part.get("type") == "text" and isinstance(part.get("text"), str):
                self.answer = part["text"]
            elif part.get("type") == "tool_use" and isinstance(part.get("id"), str):
                name = part.get("name") if isinstance(part.get("name"), str) else ""
                data = self._tool(record, name, part.get("input"))
                self.calls[part["id"]] = (str(name), data)
                yield self._event(record, "tool.started", n, tool=str(name), call=part["id"], **data)

    def _tool(self, record: Record, name: Any, tool_input: Any) -> dict[str, Any]:
        data: dict[str, Any] = {"cwd": record.cwd or ""}
        payload_reader.add_tool(TABLES, data, {"tool_name": name, "tool_input": tool_input})
        del data["cwd"]
        return data

    def _result(self, record: Record, part: Any, n: int) -> Event:
        call = part.get("tool_use_id") if isinstance(part.get("tool_use_id"), str) else ""
        tool, data = self.calls.pop(call, ("", {"action": "other"}))
        if record.toolDenialKind:
            reason = normal.output_text(part.get("content"))[: normal.ERROR]
            return self._event(record, "permission.denied", n, tool=tool, call=call, reason=reason)
        data = {**data, "ok": part.get("is_error") is not True}
        if not data["ok"]:
            data["error"] = normal.output_text(part.get("content"))[: normal.ERROR]
        else:
            payload_reader.add_output(data, part.get("content"))
        return self._event(record, "tool.finished" if data["ok"] else "tool.failed", n, tool=tool, call=call, **data)

    def _turn_over(self) -> Iterator[Event]:
        if self.turn and self.last:
            kind = "subagent.ended" if self.last.agentId else "turn.ended"
            yield self._event(self.last, kind, message=normal.cap_text(self.answer, normal.MESSAGE))
        self.turn, self.answer = "", ""

    def close(self) -> Iterator[Event]:
        """A transcript goes on when its session does: then the next import tells the rest."""
        if self.last:
            yield from self._turn_over()
            if not self.last.agentId:
                yield self._event(self.last, "session.ended", reason="import")

    def _time_of(self, record: Record) -> int:
        """A record without a time that can be read is of the time of the one before it."""
        self.at = parse_milliseconds(record.timestamp) or self.at
        return self.at

    def _event(self, record: Record, kind: str, n: int = 0, tool: str = "", **data: Any) -> Event:
        session = session_name(record.sessionId)
        more = {
            "turn": self.turn, "lane": record.agentId, "branch": record.gitBranch, "cwd": record.cwd,
            "model": record.message.model if record.message else None,
            "transcript": None if record.agentId else str(self.path),
        }  # fmt: skip
        return Event(
            # A line has an id, but may make several events of one kind: `n` tells them apart.
            key=key_of(NAME, session, record.uuid, kind, n),
            kind=kind,
            at=self._time_of(record),
            session=session,
            project=normal.one_path(record.cwd) or "",
            agent=NAME,
            tool=bounded_name(tool),
            data={**data, **{name: value for name, value in more.items() if value}, "imported": NAME},
        )


IMPORTER = Importer(NAME, "Claude Code transcripts", find_transcripts, read_transcript, whole_sessions=True)
