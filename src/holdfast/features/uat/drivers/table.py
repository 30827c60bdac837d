"""The browser and device drivers of `drivers.toml`."""

from collections.abc import Mapping
from functools import cache

import msgspec

from holdfast.core.data_files import load_data

MEANINGS = (
    *("navigate", "back", "click", "fill", "press", "select", "upload", "hover", "drag", "scroll", "screenshot"),
    *("snapshot", "evaluate", "wait", "console", "network", "open", "close", "tab", "other"),
)
"""What a tool of a driver can do. `other`: it belongs to the browser, but is no step by itself."""


class Driver(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    tools: Mapping[str, str]
    """Tool → meaning. The file has it the other way round: `click = "a b"`."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "tools", by_tool(self.tools))


class ServerDriver(Driver, frozen=True):
    """An MCP server: its tools have one of the prefixes, or a server's name that matches one of the globs."""

    servers: tuple[str, ...]
    prefixes: tuple[str, ...] = ()


class ShellDriver(Driver, frozen=True):
    typed_from: Mapping[str, int]
    """Verb → how many words after it come before those that are typed or secret."""
    packages: tuple[str, ...] = ()
    """Other names of the program, as `npx` takes them."""
    locator: str = ""
    """The verb that first locates an element, then says what to do with it."""
    address_option: bool = False
    """The address may be the value of an option: `--url=http://x`."""

    def is_verb(self, word: str) -> bool:
        return word in self.tools or any(name.partition(" ")[0] == word for name in self.typed_from)


class Drivers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    server: tuple[ServerDriver, ...]
    program: tuple[ShellDriver, ...]
    computer: Mapping[str, str]
    actions: Mapping[str, str]


def by_tool(tools: Mapping[str, str]) -> dict[str, str]:
    return {tool: meaning for meaning, names in tools.items() for tool in names.split()}


@cache
def drivers() -> Drivers:
    return load_data(__file__, "drivers", Drivers)


@cache
def computer_actions() -> dict[str, str]:
    """Computer-use servers have one tool whose `action` says what is done."""
    return by_tool(drivers().computer)


@cache
def meanings_of_action() -> dict[str, list[str]]:
    return {word: meanings.split() for words, meanings in drivers().actions.items() for word in words.split()}


@cache
def prefixed_tools() -> frozenset[str]:
    """Tools whose name alone identifies the driver, for agents that write `mcp_server_tool`."""
    return frozenset(
        tool for row in drivers().server for tool in row.tools if row.prefixes and tool.startswith(row.prefixes)
    )


@cache
def shell_drivers() -> dict[str, ShellDriver]:
    """By each name of the program."""
    return {name: driver for driver in drivers().program for name in (driver.name, *driver.packages)}


class ToolUse(msgspec.Struct, frozen=True):
    """What one call, or one command of a command line, is to a driver."""

    driver: str = ""
    meaning: str = ""
    address: str = ""
    following: tuple["ToolUse", ...] = ()
    """What the same command line does after it."""
    asks: str = ""
    """`title` or `url`: the whole answer is that of the page."""
    typed: tuple[str, ...] = ()
    """The words of a command line that are typed into the page."""

    @property
    def is_known(self) -> bool:
        return bool(self.meaning)


NOT_A_DRIVER = ToolUse()
