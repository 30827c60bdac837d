"""Codex's rollouts as the events that its hooks would have been."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import normalise, payload_reader
from holdfast.agents.codex.attribution import typed_words
from holdfast.agents.codex.hooks import PATCHED, TABLES
from holdfast.agents.codex.transcript import (
    GOES_ON,
    RESULTS,
    Line,
    Payload,
    command_end,
    decode,
    exit_code,
    find_files,
    program_output,
    result_text,
    running_process,
    script_call,
    shown_result,
)
from holdfast.agents.codex.usage import READER, statement_of
from holdfast.agents.history import History, UsageSide, read_lines, whole_output
from holdfast.agents.source import LONGEST_LINE, group_by_session, merge_by_time, session_name
from holdfast.analysis.transcripts import Follower, Found, Importer, ImportLocation, Skipped, Transcripts
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.analysis.usage.reader import PARSE_ERRORS, Position
from holdfast.core.event import Event
from holdfast.paths import open_regular

NAME = "codex"
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
REFUSED = "Command blocked by PreToolUse hook:"
NAMES_IN_HOOKS = dict.fromkeys(("exec_command", "shell", "shell_command", "local_shell"), "Bash")
"""A rollout names tools as the model does; hooks name them as Claude Code does, and so do sessions."""
THREAD_NAME = "thread_name_updated"
ENDS = {"task_complete": "turn.ended", "turn_aborted": "turn.interrupted"}


def find_rollouts(location: ImportLocation) -> Iterable[Path]:
    """A subagent's rollout is read with that of its session; alone only where that is gone."""
    folders = {path.parent for path in find_files(location.home)}
    return [path for folder in sorted(folders) for path in _rollouts_in(folder)]


def read_rollout(path: Path, _place: ImportLocation) -> Iterator[Found]:
    return merge_by_time(map(_read_file, (path, *_rollouts_in(path.parent).get(path, ()))))


def _rollouts_in(folder: Path) -> Mapping[Path, list[Path]]:
    """Of one day: Codex writes a subagent's rollout to the folder of its session's."""
    return group_by_session(folder, folder.stat().st_mtime_ns, "rollout-*.jsonl", _ids_of)


def _ids_of(path: Path) -> tuple[str, str]:
    """Ids of the session and of the rollout itself, from the first line."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            payload = decode(file.readline(LONGEST_LINE)).payload or Payload()
    except (OSError, *PARSE_ERRORS):
        return "", ""
    own = session_name(payload.id)
    return session_name(payload.whole_session), own


def _read_file(path: Path) -> Iterator[Found]:
    rollout = _Rollout(path)

    seen: set[int] = set()

    def take(line: bytes, number: int) -> list[Found]:
        # Records have no ids, but times.
        if (known := hash(line)) in seen:
            return [Skipped(str(path), "a line that is there twice", expected=True)]
        seen.add(known)
        record = decode(line)
        if events := [*rollout.read_entry(record, number)]:
            return list[Found](events)
        if not rollout.session:
            return [Skipped(f"{path}:{number}", "no record before it names the session", expected=number > 1)]
        return [Skipped(str(path), rollout.name_of(record), expected=True)]

    return read_lines(path, take, rollout.close)


class _Rollout(History):
    """A rollout of a session or of a subagent, while its records are read in order."""

    def __init__(self, path: Path) -> None:
        super().__init__(NAME, path, TABLES)
        self.own = ""
        """The id of the rollout itself."""
        self.end = (0, 0)
        """Time and line of the last record."""
        self.running: dict[str, str] = {}
        """Calls whose command runs on after their first result, by the number of the process."""
        self.is_asked = False
        """Whether the turn has a prompt."""
        self.is_copy = False
        """A fork begins with what its parent had so far."""
        self.side = UsageSide(NAME, Position(""))

    def name_of(self, record: Line) -> str:
        inner = record.payload and record.payload.type
        return f"{record.type} {inner}" if inner else record.type or "no type"

    def read_entry(self, record: Line, number: int) -> Iterator[Event]:
        payload, at = record.payload or Payload(), parse_milliseconds(record.timestamp)
        if record.type == "session_meta" and not self.own:
            yield from self._meta(payload, at, number)
        self._note_copy(record.type, payload)
        if self.session and not self.is_copy:
            self.end = at, number
            if read := _READERS.get(record.type):
                yield from read(self, payload, at, number)
        if self.session:
            yield from self.side.event(statement_of(record, self.side.position), self)

    def _meta(self, payload: Payload, at: int, number: int) -> Iterator[Event]:
        """Only the first: a fork repeats what its parent began with, and a session that goes on its own."""
        # A subagent's rollout has an id of its own and names the session it belongs to.
        self.own = session_name(payload.id)
        self.session = session_name(payload.whole_session) or self.own
        if payload.subagent or self.own != self.session:
            # As its hooks name a subagent that has no role.
            kind = payload.subagent if isinstance(payload.subagent, str) else "default"
            self.lane, self.lane_type = self.own, str(payload.agent_role or kind)
        self.project = normalise.one_path(payload.cwd) or ""
        self.branch = str((payload.git and payload.git.branch) or "")
        if self.session:
            self.begun = True
            yield self.event("subagent.started" if self.lane else "session.started", at, str(number), source="import")

    def _note_copy(self, kind: str, payload: Payload) -> None:
        """Ids grow with time: a turn that is older than the rollout is its parent's."""
        if kind == "session_meta" and self.own:
            self.is_copy = session_name(payload.id) != self.own
        elif kind == "turn_context" or payload.type == "task_started":
            self.is_copy = self.is_copy and str(payload.turn_id or self.own) < self.own

    def _context(self, payload: Payload, _at: int, _number: int) -> Iterator[Event]:
        self.model, self.turn = str(payload.model or self.model), str(payload.turn_id or self.turn)
        yield from ()

    def _compacted(self, payload: Payload, at: int, number: int) -> Iterator[Event]:
        # One that a person asks for has a turn of its own.
        yield self.compacted(at, str(number), str(payload.message or ""), "auto" if self.is_asked else "")

    def _message(self, payload: Payload, at: int, number: int) -> Iterator[Event]:
        kind, item = payload.type or "", normalise.mapping_or_empty(payload.item)
        if kind == "task_started":
            self.turn, self.is_asked = str(payload.turn_id or self.turn), False
        elif kind == "user_message" or item.get("type") == "UserMessage":
            yield self._prompt(str(payload.message or normalise.output_text(item.get("content"))), at, number)
        elif kind == THREAD_NAME:
            yield from self.titled(str(payload.thread_name or ""))
        elif kind in ENDS:
            message = normalise.cap_text(str(payload.last_agent_message or ""), normalise.MESSAGE)
            ended = "subagent.ended" if self.lane else ENDS[kind]
            yield self.event(ended, at, str(number), **({"message": message} if message else {}))

    def _prompt(self, prompt: str, at: int, number: int) -> Event:
        self.is_asked = True
        words = typed_words(prompt)
        synthetic: dict[str, Any] = {} if words or not prompt else {"synthetic": True}
        text = normalise.cap_text(words or prompt, normalise.PROMPT)
        return self.event("prompt.submitted", at, str(number), prompt=text, **synthetic)

    def _item(self, payload: Payload, at: int, number: int) -> Iterator[Event]:
        call = payload.call_id
        if not isinstance(call, str):
            return
        if payload.type in CALLS:
            name, payload.input = script_call(payload.name or "shell", payload.input)
            name = str(name)
            name = NAMES_IN_HOOKS.get(name, name)
            data = self._tool(name, payload)
            self.calls[call] = (name, data)
            if name != GOES_ON:
                yield self.event("tool.started", at, str(number), tool=name, call=call, **data)
        elif payload.type in RESULTS:
            yield from self._result(payload, call, at, number)

    def _result(self, payload: Payload, call: str, at: int, number: int) -> Iterator[Event]:
        name, data = self.calls.get(call, ("", {"action": "other"}))
        process = running_process(payload.output)
        if process and data.get("command"):
            self.running[process] = call  # Its end is in the result of another call.
            return
        self.calls.pop(call, None)
        if name == GOES_ON:
            yield from self._went_on(payload, data, at, number)
            return
        if refusal := _refusal_reason(payload.output):
            yield self.event("permission.denied", at, str(number), tool=name, call=call, reason=refusal, **data)
            return
        yield self._finished((call, name, data), payload, at, str(number))

    def _went_on(self, payload: Payload, data: dict[str, Any], at: int, number: int) -> Iterator[Event]:
        """The end of the command that was asked about; as in hooks, asking is no call of its own."""
        process = str(normalise.mapping_or_empty(data.get("input")).get("session_id", ""))
        if running_process(payload.output):
            return
        began = self.running.pop(process, "")
        if began in self.calls:
            yield self._finished((began, *self.calls.pop(began)), payload, at, f"{number}/{began}")

    def _finished(self, made: tuple[str, str, dict[str, Any]], payload: Payload, at: int, ident: str) -> Event:
        call, name, data = made
        end = command_end(Line(timestamp=at, payload=payload))
        code = end.code if end else None
        output = result_text(payload.output)
        if data.get("action") == "shell":
            # What Codex says of it comes before; its hooks have only the program's words.
            output = program_output(payload.output)
            if shown := shown_result(output):
                output = shown[1]
        data = {**data, "ok": not code} | ({} if code is None else {"exit_code": code})
        payload_reader.add_output(data, output)
        ended = self.event("tool.finished", at, ident, tool=name, call=call, **data)
        return msgspec.structs.replace(ended, body=whole_output(data, output))

    def _tool(self, name: str, payload: Payload) -> dict[str, Any]:
        arguments = _call_arguments(payload)
        data: dict[str, Any] = {"cwd": self.project}
        payload_reader.add_tool(TABLES, data, {"tool_name": name, "tool_input": arguments})
        if name == "apply_patch":
            named = [path.strip() for path in PATCHED.findall(str(arguments.get("command", "")))]
            data["paths"] = normalise.paths_in({"paths": named}, self.project)
        del data["cwd"]
        return data

    def close(self) -> Iterator[Event]:
        if self.session and not self.lane and self.end[0]:
            yield self.event("session.ended", self.end[0], str(self.end[1]), reason="import")


_READERS = {
    "turn_context": _Rollout._context,
    "event_msg": _Rollout._message,
    "response_item": _Rollout._item,
    "compacted": _Rollout._compacted,
}


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


def follow_rollout(path: str) -> Follower:
    """No hook reports the name of a thread."""
    rollout = _Rollout(Path(path))

    def take(line: bytes) -> Iterator[Event]:
        record = decode(line)
        if record.type == "session_meta" or (record.payload and record.payload.type == THREAD_NAME):
            yield from (one for one in rollout.read_entry(record, 0) if one.kind == "session.titled")

    return take


TRANSCRIPTS = Transcripts(
    importer=Importer(NAME, "Codex rollouts", find_rollouts, read_rollout, whole_sessions=True),
    usage=(READER,),
    exit_code=exit_code,
    follow=follow_rollout,
)
