"""The command line behind a tool call: as it is for a shell, by name and input for an MCP tool."""

import re
import shlex
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import msgspec

from holdfast.analysis.shell.nested_commands import as_powershell
from holdfast.analysis.shell.program_code import shell_of_code
from holdfast.analysis.shell.recipes import EDITOR_TASK
from holdfast.core.data_files import load_data
from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.core.lazy import lazy_pattern

_CAMEL = lazy_pattern(r"(?<=[a-z])(?=[A-Z])")
_TASK_TYPE = lazy_pattern(r"^(?:shell|process|npm|workspace): ")
LONGEST_VERB = 80


class Tools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`tools.toml`, which says what the fields mean."""

    writes: str
    reads: str
    runs: str
    browsers: str
    runs_task: str
    task_names: str
    path_key: str
    content_key: str
    text_key: str
    code_key: str
    command_keys: str
    verb_keys: str
    programs: dict[str, str]
    actions: dict[str, str]


@cache
def tools() -> Tools:
    return load_data(__file__, "tools", Tools)


@cache
def action_of_tool() -> dict[str, str]:
    return {tool: action for action, names in tools().actions.items() for tool in names.split()}


def command_of(event: Event) -> str:
    """Shell text; empty where the call is no command."""
    data = event.data
    if not isinstance(data, ToolPayload):
        return ""
    if data.action == "shell" or data.command:
        return as_powershell(data.command) if event.tool == "PowerShell" and data.command else data.command
    command = _input_command(data.input) or _editor_task(event.tool, data.input)
    if command or not _runs_text(event.tool):
        return command
    return "\n".join(_texts_to_run(data.input))


def plain_name(name: str) -> str:
    """`runCommand` and `run-command` are `run_command`."""
    return _CAMEL.sub("_", name.rpartition("__")[2]).lower().replace("-", "_")


@lru_cache(1_000)
def has_word(name: str, words: str) -> bool:
    """`name` is plain; a word may be two of them, as in `send_text`."""
    return any(f"_{word}_" in f"_{name}_" for word in words.split())


def _first_value(tool_input: dict[str, Any], keys: str) -> Any:
    return next((tool_input[key] for key in keys.split() if tool_input.get(key)), "")


def _input_command(tool_input: dict[str, Any]) -> str:
    command = _joined(_first_value(tool_input, tools().command_keys))
    arguments = tool_input.get("args") or tool_input.get("arguments")
    return f"{command} {_joined(arguments)}" if command and isinstance(arguments, list) else command


def _joined(value: Any) -> str:
    """The words of a list are quoted, so that a word with a blank stays one word."""
    if isinstance(value, list):
        return shlex.join(str(word) for word in value)
    return value if isinstance(value, str) else ""


def _editor_task(tool: str, tool_input: dict[str, Any]) -> str:
    if not re.search(tools().runs_task, plain_name(tool)):
        return ""
    task = _first_value(tool_input, tools().task_names)
    # A task that is made and run at once comes whole.
    if isinstance(task, dict):
        return _input_command(task)
    return f"{EDITOR_TASK} {shlex.quote(_TASK_TYPE.sub('', task))}" if isinstance(task, str) and task else ""


def _runs_text(tool: str) -> bool:
    return has_word(plain_name(tool), tools().runs) and not re.search(tools().browsers, tool.lower())


def _texts_to_run(tool_input: dict[str, Any]) -> Iterator[str]:
    for key, value in tool_input.items():
        if re.match(tools().text_key, key):
            is_code = isinstance(value, str) and re.search(tools().code_key, key)
            yield from _code_lines(value) if is_code else [_joined(value)]


def _code_lines(code: str) -> list[str]:
    # Notebooks: a line behind `!` is one of the shell.
    lines = (line.strip() for line in code.splitlines())
    return [shell_of_code(code), *(line[1:] for line in lines if line.startswith(("!", "%sx ")))]


def named_acts(event: Event) -> tuple[str, ...]:
    """`mcp__git__git_commit` and `mcp__git__commit` are both `git commit`."""
    data = event.data
    words = plain_name(event.tool).replace("_", " ")
    server = event.tool.rpartition("__")[0]
    program = server.rpartition("__")[2].lower()
    program = tools().programs.get(program, program)
    acts = [words, f"{program} {words}"] if server else [words]
    verb_keys = tools().verb_keys.split() if isinstance(data, ToolPayload) else []
    for verb in (data.input.get(key) for key in verb_keys if isinstance(data, ToolPayload)):
        if isinstance(verb, str) and len(verb) <= LONGEST_VERB:
            acts += [f"{words.partition(' ')[0]} {verb}", f"{program} {verb}"]
    return tuple(acts)
