"""Codex's rollouts as the events that its hooks would have been."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import normalise, payload_reader
from holdfast.agents.codex.attribution import typed_words
from holdfast.agents.codex.hooks import PATCHED, TABLES
from holdfast.agents.codex.transcript import (
    RESULTS,
    Line,
    Payload,
    command_end,
    decode,
    exit_code,
    find_files,
    result_text,
    running_process,
)
from holdfast.agents.codex.usage import READER, statement_of
from holdfast.agents.source import LONGEST_LINE, group_by_session, key_of, merge_by_time, numbered_lines, session_name
from holdfast.analysis.transcripts import Found, Importer, ImportLocation, Skipped, Transcripts
from holdfast.analysis.usage.events import usage_event
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.analysis.usage.reader import PARSE_ERRORS, Position, record_of
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name

NAME = "codex"
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
REFUSED = "Command blocked by PreToolUse hook:"
NAMES_IN_HOOKS = dict.fromkeys(("exec_command", "shell", "shell_command", "local_shell"), "Bash")
"""A rollout names tools as the model does; hooks name them as Claude Code does, and so do sessions."""
ENDS = {"task_complete": "turn.ended", "turn_aborted": "turn.interrupted"}


def find_rollouts(location: ImportLocation) -> Iterable[Path]:
    """A subagent's rollout is read with that of its session; alone only where that is not beside it."""
    folders = {path.parent for path in find_files(location.home)}
    return [path for folder in sorted(folders) for path in _rollouts_in(folder)]


def read_rollout(path: Path, _place: ImportLocation) -> Iterator[Found]:
    return merge_by_time(map(_read_file, (path, *_rollouts_in(path.parent).get(path, ()))))


def _rollouts_in(folder: Path) -> Mapping[Path, list[Path]]:
    """Of one day: Codex writes a subagent's beside that of its session."""
    return group_by_session(folder, folder.stat().st_mtime_ns, "rollout-*.jsonl", _ids_of)


def _ids_of(path: Path) -> tuple[str, str]:
    """Ids of the session and of the rollout itself, from the first line."""
    try:
        with path.open("rb") as file:
            payload = decode(file.readline(LONGEST_LINE)).payload or Payload()
    except (OSError, *PARSE_ERRORS):
        return "", ""
    own = session_name(payload.id)
    return session_name(payload.whole_session), own


def _read_file(path: Path) -> Iterator[Found]:
    rollout = _Rollout(path)
    for number, line in numbered_lines(path):
        try:
            record = decode(line)
        except PARSE_ERRORS as error:
            yield Skipped(f"{path}:{number}", f"not a record: {str(error)[:120]}")
            continue
        events: list[Found] = [*rollout.read_entry(record, number), *rollout.spent(record)]
        yield from events or [Skipped(str(path), rollout.name_of(record), expected=True)]
    yield from rollout.close()


@dataclass
class _Rollout:
    path: Path
    own: str = ""
    """The id of the rollout itself."""
    session: str = ""
    lane: str = ""
    lane_type: str = ""
    cwd: str = ""
    branch: str = ""
    model: str = ""
    turn: str = ""
    last: tuple[int, int] = (0, 0)
    calls: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)
    """Calls whose command runs on after their first result, by the number of the process."""
    position: Position = field(default_factory=lambda: Position(""))

    def spent(self, line: Line) -> Iterator[Event]:
        statement = statement_of(line, self.position)
        record = statement and record_of(NAME, statement, self.position)
        if record:
            yield usage_event(msgspec.structs.replace(record, turn=self.turn), imported=NAME)

    def name_of(self, record: Line) -> str:
        inner = record.payload and record.payload.type
        return f"{record.type} {inner}" if inner else record.type or "no type"

    def read_entry(self, record: Line, number: int) -> Iterator[Event]:
        payload, at = record.payload or Payload(), parse_milliseconds(record.timestamp)
        if record.type == "session_meta":
            yield from self._meta(payload, at, number)
        if not self.session:
            return
        self.last = at, number
        if record.type == "turn_context":
            self.model = str(payload.model or self.model)
            self.turn = str(payload.turn_id or self.turn)
        elif record.type == "event_msg":
            yield from self._message_events(payload, at, number)
        elif record.type == "response_item":
            yield from self._item(payload, at, number)
        elif record.type == "compacted":
            summary = normalise.cap_text(str(payload.message or ""), normalise.PROMPT)
            yield self._event("compact.ended", at, number, **({"summary": summary} if summary else {}))

    def _meta(self, payload: Payload, at: int, number: int) -> Iterator[Event]:
        mine, whole = session_name(payload.id), session_name(payload.whole_session)
        # A fork repeats what its parent began with.
        # A session that goes on repeats its own.
        if self.own:
            return
        self.own = mine
        # A subagent's rollout has an id of its own and names the session it belongs to.
        self.session = whole or mine
        self.lane = mine if mine != self.session else ""
        # As its hooks name a subagent that has no role.
        self.lane_type = str(payload.agent_role or "default") if self.lane else ""
        self.cwd = normalise.one_path(payload.cwd) or ""
        self.branch = str(payload.git.branch if payload.git and payload.git.branch else "")
        if self.session:
            yield self._event("subagent.started" if self.lane else "session.started", at, number, source="import")

    def _message_events(self, payload: Payload, at: int, number: int) -> Iterator[Event]:
        kind, item = payload.type, normalise.mapping_or_empty(payload.item)
        if kind == "task_started":
            self.turn = str(payload.turn_id or self.turn)
        elif kind == "user_message" or item.get("type") == "UserMessage":
            prompt = str(payload.message or normalise.output_text(item.get("content")))
            words = typed_words(prompt)
            synthetic: dict[str, Any] = {} if words or not prompt else {"synthetic": True}
            text = normalise.cap_text(words or prompt, normalise.PROMPT)
            yield self._event("prompt.submitted", at, number, prompt=text, **synthetic)
        elif kind and kind in ENDS:
            message = normalise.cap_text(str(payload.last_agent_message or ""), normalise.MESSAGE)
            ended = "subagent.ended" if self.lane else ENDS[kind]
            yield self._event(ended, at, number, **({"message": message} if message else {}))

    def _item(self, payload: Payload, at: int, number: int) -> Iterator[Event]:
        call = payload.call_id
        if not isinstance(call, str):
            return
        if payload.type in CALLS:
            name = str(payload.name or "shell")
            name = NAMES_IN_HOOKS.get(name, name)
            data = self._tool(name, payload)
            self.calls[call] = (name, data)
            yield self._event("tool.started", at, number, tool=name, call=call, **data)
        elif payload.type in RESULTS:
            yield from self._result(payload, call, at, number)

    def _result(self, payload: Payload, call: str, at: int, number: int) -> Iterator[Event]:
        name, data = self.calls.get(call, ("", {"action": "other"}))
        process = running_process(payload.output)
        if process and data.get("command"):
            self.running[process] = call  # Its end is in the result of another call.
            return
        self.calls.pop(call, None)
        if refusal := _refusal_reason(payload.output):
            yield self._event("permission.denied", at, number, tool=name, call=call, reason=refusal, **data)
            return
        end = command_end(Line(timestamp=at, payload=payload))
        code = end.code if end else None
        yield self._event("tool.finished", at, number, tool=name, call=call, **_with_result(data, payload.output, code))
        began = self.running.pop(str(normalise.mapping_or_empty(data.get("input")).get("session_id")), "")
        if began and began in self.calls:
            name, data = self.calls.pop(began)
            result = _with_result(data, payload.output, code)
            yield self._event("tool.finished", at, f"{number}/{began}", tool=name, call=began, **result)

    def _tool(self, name: str, payload: Payload) -> dict[str, Any]:
        arguments = _call_arguments(payload)
        data: dict[str, Any] = {"cwd": self.cwd}
        payload_reader.add_tool(TABLES, data, {"tool_name": name, "tool_input": arguments})
        if name == "apply_patch":
            named = [path.strip() for path in PATCHED.findall(str(arguments.get("command", "")))]
            data["paths"] = normalise.paths_in({"paths": named}, self.cwd)
        del data["cwd"]
        return data

    def close(self) -> Iterator[Event]:
        if self.session and not self.lane and self.last[0]:
            yield self._event("session.ended", *self.last, reason="import")

    def _event(self, kind: str, at: int, number: int | str, tool: str = "", **data: Any) -> Event:
        more = {
            "turn": self.turn, "lane": self.lane, "lane_type": self.lane_type, "branch": self.branch, "cwd": self.cwd,
            "model": self.model, "transcript": "" if self.lane else str(self.path),
        }  # fmt: skip
        return Event(
            key=key_of(NAME, self.session, self.lane, kind, number),
            kind=kind,
            at=at,
            session=self.session,
            project=self.cwd,
            agent=NAME,
            tool=bounded_name(tool),
            data={**data, **{name: value for name, value in more.items() if value}, "imported": NAME},
        )


def _call_arguments(payload: Payload) -> dict[str, Any]:
    arguments = next((one for one in (payload.arguments, payload.input, payload.action) if one is not None), None)
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, UnicodeEncodeError):
            # A custom tool call has its text instead of JSON.
            arguments = {"command": arguments}
    fields = dict(normalise.mapping_or_empty(arguments))
    command = fields.get("cmd", fields.get("command"))
    # The shell itself comes first: `["bash", "-lc", "command"]`.
    if isinstance(command, list):
        command = str(command[-1]) if command else ""
    return {**fields, **({"command": command} if isinstance(command, str) else {})}


def _refusal_reason(output: Any) -> str:
    """The reason why a hook refused the call; empty when none did."""
    if not isinstance(output, str) or not output.startswith(REFUSED):
        return ""
    return output.removeprefix(REFUSED).rpartition(". Command:")[0].strip()[: normalise.ERROR] or "refused by a hook"


def _with_result(data: dict[str, Any], output: Any, code: int | None) -> dict[str, Any]:
    data = {**data, "ok": not code}
    payload_reader.add_output(data, result_text(output))
    return data if code is None else {**data, "exit_code": code}


TRANSCRIPTS = Transcripts(
    importer=Importer(NAME, "Codex rollouts", find_rollouts, read_rollout, whole_sessions=True),
    usage=(READER,),
    exit_code=exit_code,
)
