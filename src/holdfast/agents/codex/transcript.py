"""Codex's rollouts: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.agents.normalise import mapping_or_empty, output_text
from holdfast.analysis.usage.model import Usage, parse_milliseconds, usage_of_prompt


class Tokens(msgspec.Struct):
    input_tokens: Any = None
    cached_input_tokens: Any = None
    cache_write_input_tokens: Any = None
    output_tokens: Any = None
    reasoning_output_tokens: Any = None

    def usage(self) -> Usage:
        cached, written = self.cached_input_tokens, self.cache_write_input_tokens
        return usage_of_prompt(self.input_tokens, self.output_tokens, cached, written, self.reasoning_output_tokens)


class Counts(msgspec.Struct):
    total_token_usage: Tokens | None = None
    last_token_usage: Tokens | None = None


class Git(msgspec.Struct):
    branch: str | None = None


class Payload(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    session_id: str | None = None
    forked_from_id: str | None = None
    turn_id: str | None = None
    response_id: str | None = None
    call_id: str | None = None
    cwd: str | None = None
    git: Git | None = None
    agent_role: str | None = None
    model: str | None = None
    usage: Tokens | None = None
    info: Counts | None = None
    item: Any = None
    completed_at_ms: Any = None
    exit_code: Any = None
    message: Any = None
    last_agent_message: Any = None
    thread_name: Any = None
    name: Any = None
    arguments: Any = None
    input: Any = None
    action: Any = None
    output: Any = None
    source: Any = None

    @property
    def subagent(self) -> Any:
        """How this rollout's thread came to be, where Codex began it: `review`, or what spawned it."""
        return mapping_or_empty(self.source).get("subagent")

    @property
    def whole_session(self) -> str | None:
        """The session that a subagent's rollout belongs to, else its own: a review names none. Before 0.140 only its
        parent is named."""
        spawn = mapping_or_empty(mapping_or_empty(self.subagent).get("thread_spawn"))
        return self.session_id or spawn.get("parent_thread_id") or self.id


class Line(msgspec.Struct):
    type: str = ""
    timestamp: Any = None
    payload: Payload | None = None


decode = msgspec.json.Decoder(Line).decode


def find_files(home: Path) -> Iterable[Path]:
    return sorted((home / ".codex").rglob("rollout-*.jsonl"))


_SCRIPT_CALL = re.compile(r"\btools\.(\w+)\(")
_SCRIPT_TEXT = re.compile(r'(?:\bcmd"?:|\bpatch =|\bapply_patch\()\s*("(?:[^"\\]|\\.)*")')


def script_call(name: Any, script: Any) -> tuple[Any, Any]:
    """In script mode the model writes JavaScript. A script with one call is that call, as its hooks report it."""
    called = _SCRIPT_CALL.findall(script) if name == "exec" and isinstance(script, str) else []
    if len(called) != 1:
        return name, script
    text = _SCRIPT_TEXT.search(script)
    try:
        return called[0], {"command": msgspec.json.decode(text[1])} if text else script
    except (msgspec.DecodeError, UnicodeEncodeError):
        return called[0], script


class _Shown(msgspec.Struct):
    chunk_id: str
    exit_code: int
    output: str


def shown_result(text: str) -> tuple[int, str] | None:
    """Code and output of a call whose whole result a script printed as JSON."""
    try:
        shown = msgspec.json.decode(text, type=_Shown) if text.lstrip().startswith('{"chunk_id":') else None
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    return (shown.exit_code, shown.output) if shown else None


RESULTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
LONGEST_HEAD = 400
_ENDED = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})$", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d{1,10})$", re.MULTILINE)


class CommandEnd(NamedTuple):
    """How a command ended, according to one record."""

    call: str
    code: int
    at: int


def command_end(entry: Line) -> CommandEnd | None:
    """`item_completed` from 0.153.0 on, `exec_command_end` before it, and in every version the result that the model
    gets, unless the command was still running then."""
    payload = entry.payload or Payload()
    item, at = mapping_or_empty(payload.item), parse_milliseconds(entry.timestamp)
    if payload.type == "item_completed" and item.get("type") == "CommandExecution":
        return _end_of(item.get("id"), item.get("exit_code"), payload.completed_at_ms or 0)
    if payload.type == "exec_command_end":
        return _end_of(payload.call_id, payload.exit_code, at)
    return _end_of(payload.call_id, _code_in(payload.output), at) if payload.type in RESULTS else None


def _end_of(call: Any, code: Any, at: Any) -> CommandEnd | None:
    # A 32-bit exit status; anything else is no record of this kind.
    is_status = type(code) is int and -(1 << 31) <= code < 1 << 31
    return CommandEnd(call, code, at) if is_status and isinstance(call, str) and type(at) is int else None


def result_text(output: Any) -> str:
    return output if isinstance(output, str) else output_text(mapping_or_empty(output) or output)


def running_process(output: Any) -> str:
    """The number of the process, for a command that was still running when the model got this result."""
    match = _RUNNING.search(_head(output))
    return match[1] if match else ""


def _code_in(output: Any) -> int | None:
    if match := _ENDED.search(_head(output)):
        return int(match[1])
    # A script may print anything, so what it prints proves no success.
    shown = shown_result(program_output(output))
    return shown[0] or None if shown else None


def program_output(output: Any) -> str:
    text = result_text(output)
    return text.partition("Output:\n")[2] or text


def _head(output: Any) -> str:
    """What Codex says of a command. The program speaks after `Output:`."""
    head, separator, _ = result_text(output)[:LONGEST_HEAD].partition("Output:\n")
    return head if separator else ""


GOES_ON = "write_stdin"
"""Asks about a command that runs, or types into it. Its end is the command's."""


def exit_code(lines: Sequence[bytes], call: str, ended_at: int) -> int | None:
    """The latest end before that time: the model may count its calls from 0 again. The end of a command that ran on is in
    the result of the call that waited for it."""
    # The id as JSON has it, quotation marks included.
    mark, process, after = msgspec.json.encode(call), "", list[bytes]()
    for line in reversed(lines):
        entry = _entry_of(line) if mark in line else None  # Most lines are long, and of other calls.
        end = command_end(entry) if entry else None
        if end and end.call == call and end.at <= ended_at:
            return end.code
        if entry and (process := running_process((entry.payload or Payload()).output)):
            return _later_exit(reversed(after), process, ended_at)
        after.append(line)
    return None


def _later_exit(lines: Iterable[bytes], process: str, ended_at: int) -> int | None:
    waiting: set[str] = set()
    for line in lines:
        entry = _entry_of(line) if GOES_ON.encode() in line or b"_output" in line else None
        payload = (entry and entry.payload) or Payload()
        if payload.name == GOES_ON and typed_into(payload) == process:
            waiting.add(payload.call_id or "")
        end = command_end(entry) if entry and payload.call_id in waiting else None
        if end and end.at <= ended_at:
            return end.code
    return None


def typed_into(payload: Payload) -> str:
    """The number of the process that a `write_stdin` is about."""
    try:
        arguments = msgspec.json.decode(payload.arguments) if isinstance(payload.arguments, str) else payload.arguments
    except (msgspec.DecodeError, UnicodeEncodeError):
        return ""
    return str(mapping_or_empty(arguments).get("session_id", ""))


def _entry_of(line: bytes) -> Line | None:
    try:
        return decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # The first line of a tail may be cut.
