"""What a tool call is to a browser or device driver, and what of it was typed."""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.core.lazy import lazy_pattern
from holdfast.features.uat.drivers.shell import HIDDEN, hide_typed_words, parse_browser_commands
from holdfast.features.uat.drivers.table import (
    NOT_A_DRIVER,
    ServerDriver,
    ToolUse,
    computer_actions,
    drivers,
    prefixed_tools,
    shell_drivers,
)

TYPES_VALUES = ("fill", "press", "select")
_LIKE_SERVER = lazy_pattern(
    r"browser|chrom|firefox|safari|webkit|selenium|webdriver|stagehand|cypress|appium|maestro|puppet"
)
_LIKE_TOOL = lazy_pattern(r"(?:^|[_.-])(?:navigate|goto|click|tap|screenshot|fill|type_text|page)(?:$|[_.-])")
_TYPED_KEYS = ("value", "text", "values", "keys", "key", "code", "input", "characters", "string", "option", "options")


def split_tool(tool: str) -> tuple[str, str]:
    """(server, name): `mcp__playwright__browser_click` is (`playwright`, `browser_click`)."""
    server, _, name = tool.rpartition("__")
    name = name.lower()
    if not server:  # `mcp_playwright_browser_click`, as some agents write it
        starts = (n for n in range(len(name[:200])) if n == 0 or name[n - 1] in "_.-")
        name = next((name[n:] for n in starts if name[n:] in prefixed_tools()), name)
    return server.removeprefix("mcp__").lower(), name


def recognise_tool_use(tool: str, arguments: Mapping[str, Any], extra: Mapping[str, str] | None = None) -> ToolUse:
    """Which driver a call belongs to, what it does and where it goes."""
    command = arguments.get("command")
    # A tool of an MCP server may have an argument `command` too: only shells have no `__` in the name.
    if isinstance(command, str) and "__" not in tool and command:
        return use_of_command(command)
    # Without arguments and settings the name decides.
    if not arguments and not extra:
        return _use_by_name(tool)
    # The person's settings come before the tables.
    for glob, meaning in (extra or {}).items():
        if fnmatch.fnmatchcase(tool.lower(), glob.lower()):
            return ToolUse("settings", meaning, _address_argument(arguments))
    return _use_by_tables(tool, arguments)


@lru_cache(1024)
def _use_by_name(tool: str) -> ToolUse:
    return _use_by_tables(tool, {})


def _use_by_tables(tool: str, arguments: Mapping[str, Any]) -> ToolUse:
    server, name = split_tool(tool)
    for driver in drivers().server:
        if _is_tool_of(driver, server, name):
            meaning = _meaning(driver, name, arguments)
            return ToolUse(driver.name, meaning, _address_argument(arguments) if meaning == "navigate" else "")
    return NOT_A_DRIVER


def is_unknown_driver(tool: str, arguments: Mapping[str, Any], extra: Mapping[str, str] | None = None) -> bool:
    """Whether it looks like a browser's tool and is in no table."""
    if "__" not in tool or recognise_tool_use(tool, arguments, extra).is_known:
        return False
    server, name = split_tool(tool)
    return bool(_LIKE_SERVER.search(server) or (_LIKE_TOOL.search(name) and not server.startswith("plugin_files")))


def _is_tool_of(driver: ServerDriver, server: str, name: str) -> bool:
    if driver.prefixes and name.startswith(driver.prefixes):
        return True
    return bool(server) and any(fnmatch.fnmatchcase(server, glob) for glob in driver.servers)


def _meaning(driver: ServerDriver, name: str, arguments: Mapping[str, Any]) -> str:
    if name == "computer":
        return computer_actions().get(str(arguments.get("action")), "other")
    meaning = driver.tools.get(name, "other")
    # chrome-devtools-mcp goes back with the same tool that navigates.
    if meaning == "navigate" and str(arguments.get("type") or arguments.get("url")) in ("back", "forward"):
        return "back"
    return meaning


def use_of_command(command: str) -> ToolUse:
    """What a command line does in a browser: its first command, and those after it."""
    uses = parse_browser_commands(command)
    return msgspec.structs.replace(uses[0], following=tuple(uses[1:])) if uses else NOT_A_DRIVER


def _address_argument(arguments: Mapping[str, Any]) -> str:
    for name in ("url", "address", "href", "link", "appId", "packageName", "bundleId"):
        if isinstance(arguments.get(name), str):
            return str(arguments[name])
    return ""


# ── values typed into fields ───────────────────────────────────────────────────────────────────────────────────────


_ECHOED = lazy_pattern(
    r"^(?:Filled|Selected|Typed|Entered|Set) [^\n]{0,300}?(?:with:?|text:?|value:?) \"?([^\n]{1,2000}?)\"?\.?$",
    re.MULTILINE,
)
"""Drivers repeat what they typed; the arguments may lack it already, where they looked like a secret."""


def hide_typed(use: ToolUse, arguments: Mapping[str, Any], answer: str = "") -> tuple[dict[str, Any], list[str]]:
    """(the arguments without what was typed, the values taken out of them or found in the answer)."""
    if use.driver in shell_drivers():
        return _hide_in_command(arguments)
    if use.meaning not in TYPES_VALUES:
        return dict(arguments), []
    taken: list[str] = _ECHOED.findall(answer)
    return {name: _hide_typed_value(name, value, taken) for name, value in arguments.items()}, taken


def _hide_typed_value(name: str, value: Any, taken: list[str]) -> Any:
    if name in _TYPED_KEYS:
        _collect_typed_values(value, taken)
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: _hide_typed_value(key, inner, taken) for key, inner in value.items()}
    if isinstance(value, list):
        return [
            _hide_typed_value(name, inner, taken) if isinstance(inner, Mapping | list) else inner for inner in value
        ]
    return value


def _collect_typed_values(value: Any, taken: list[str]) -> None:
    if isinstance(value, str) and value != HIDDEN:
        taken.append(value)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            _collect_typed_values(inner, taken)


def _hide_in_command(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    shown, taken = hide_typed_words(str(arguments.get("command") or ""))
    return {**arguments, "command": shown}, taken
