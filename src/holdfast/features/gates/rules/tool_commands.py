"""The command line that a tool call stands for: of a shell as it is, of a tool of an MCP server by its name and its input."""

import shlex
from collections.abc import Iterator
from typing import Any

from holdfast.analysis.shell.nested_commands import as_powershell
from holdfast.analysis.shell.program_code import shell_of_code
from holdfast.analysis.shell.recipes import EDITOR_TASK
from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.core.lazy import lazy_pattern

_COMMAND_KEYS = ("command", "cmd", "commandLine", "command_line", "shell_command", "shellCommand", "script", "commands")
CAMEL = lazy_pattern(r"(?<=[a-z])(?=[A-Z])")
# Tools that run a text or type it into a terminal, by a word of their name; those of a browser type into pages.
_RUNNING_TOOL = lazy_pattern(
    r"(?:^|_)(?:exec|execute|run|eval|evaluate|spawn|invoke|process|terminal|shell|repl|command|keys|send_text|send_input|type|stdin|python|node|bash)(?:_|$)"
)
_BROWSER = lazy_pattern(r"browser|page|playwright|puppeteer|chrome|element|selenium|devtools")
_TEXT_KEY = lazy_pattern(
    r"(?i)^(?:input|keys?|text|data|lines?|argv|args|arguments|cell|source|expression|statement|snippet|\w*(?:cmd|command|script|code|shell)\w*)$"
)
_CODE_KEY = lazy_pattern(r"(?i)code|source|cell|expression|statement|snippet|script")
# Keys whose value is the verb of what the tool is named after: `git_ops {action: commit}`, `make run {target: deploy}`.
_VERB_KEYS = frozenset(("action", "operation", "verb", "subcommand", "target", "task", "recipe", "goal"))
# Tools that run a task of the editor by its name (`run_task {id: "shell: ship"}`), and where they have that name.
_RUNS_TASK = lazy_pattern(r"(?:^|_)(?:run|execute|start)_(?:\w+_)?tasks?(?:_|$)")
_TASK_NAMES = ("task", "label", "id", "name", "task_name", "taskName", "task_label", "taskLabel", "taskId")
_TASK_TYPE = lazy_pattern(r"^(?:shell|process|npm|workspace): ")
# Servers that are not called as the program that they stand for.
_PROGRAMS = {"kubernetes": "kubectl", "k8s": "kubectl"}
LONGEST_VERB = 80


def command_of(event: Event) -> str:
    """Shell text; empty where the call stands for no command."""
    data = event.data
    if not isinstance(data, ToolPayload):
        return ""
    if data.action == "shell" or data.command:
        return as_powershell(data.command) if event.tool == "PowerShell" and data.command else data.command
    command = _input_command(data.input) or _editor_task(event.tool, data.input)
    if command or not _runs_text(event.tool):
        return command
    return "\n".join(_texts_to_run(data.input))


def _input_command(tool_input: dict[str, Any]) -> str:
    command = _joined(next((tool_input[key] for key in _COMMAND_KEYS if tool_input.get(key)), ""))
    arguments = tool_input.get("args") or tool_input.get("arguments")
    return f"{command} {_joined(arguments)}" if command and isinstance(arguments, list) else command


def _joined(value: Any) -> str:
    """The words of a list are quoted, so that a word with a blank stays one word."""
    if isinstance(value, list):
        return shlex.join(str(word) for word in value)
    return value if isinstance(value, str) else ""


def _editor_task(tool: str, tool_input: dict[str, Any]) -> str:
    if not _RUNS_TASK.search(_plain_name(tool.rpartition("__")[2])):
        return ""
    task = next((tool_input[key] for key in _TASK_NAMES if tool_input.get(key)), "")
    # A task that is made and run at once comes whole.
    if isinstance(task, dict):
        return _input_command(task)
    return f"{EDITOR_TASK} {shlex.quote(_TASK_TYPE.sub('', task))}" if isinstance(task, str) and task else ""


def _runs_text(tool: str) -> bool:
    name = _plain_name(tool.rpartition("__")[2])
    return bool(_RUNNING_TOOL.search(name)) and not _BROWSER.search(tool.lower())


def _texts_to_run(tool_input: dict[str, Any]) -> Iterator[str]:
    for key, value in tool_input.items():
        if _TEXT_KEY.match(key):
            yield from _code_lines(value) if isinstance(value, str) and _CODE_KEY.search(key) else [_joined(value)]


def _code_lines(code: str) -> list[str]:
    # Notebooks: a line behind `!` is one of the shell.
    lines = (line.strip() for line in code.splitlines())
    return [shell_of_code(code), *(line[1:] for line in lines if line.startswith(("!", "%sx ")))]


def named_acts(event: Event) -> tuple[str, ...]:
    """`mcp__git__git_commit` and `mcp__git__commit` are both `git commit`."""
    data = event.data
    server, _, name = event.tool.rpartition("__")
    words = _plain_name(name).replace("_", " ")
    program = server.rpartition("__")[2].lower()
    program = _PROGRAMS.get(program, program)
    acts = [words, f"{program} {words}"] if server else [words]
    verbs = [value for key, value in data.input.items() if key in _VERB_KEYS] if isinstance(data, ToolPayload) else []
    for verb in verbs:
        if isinstance(verb, str) and len(verb) <= LONGEST_VERB:
            acts += [f"{words.partition(' ')[0]} {verb}", f"{program} {verb}"]
    return tuple(acts)


def _plain_name(name: str) -> str:
    """`runCommand` and `run-command` are `run_command`."""
    return CAMEL.sub("_", name).lower().replace("-", "_")
