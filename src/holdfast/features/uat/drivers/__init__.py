"""Browser and device drivers: what each of their tools means. A driver is a row in a table; settings may add tools."""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.core.lazy import lazy_pattern
from holdfast.features.uat.drivers.shell import (
    HIDDEN,
    SHELL_DRIVERS,
    hide_typed_words,
    meanings,
    parse_browser_commands,
)

MEANINGS = (
    *("navigate", "back", "click", "fill", "press", "select", "upload", "hover", "drag", "scroll", "screenshot"),
    *("snapshot", "evaluate", "wait", "console", "network", "open", "close", "tab", "other"),
)
"""What a tool of a driver can do. `other`: it belongs to the browser, but is no step by itself."""

TYPES_VALUES = ("fill", "press", "select")


class Driver(msgspec.Struct, frozen=True):
    name: str
    servers: tuple[str, ...]
    """Globs over the name of the MCP server; one that fits makes its unlisted tools `other`."""
    tools: Mapping[str, str]
    """Tool name without the server → meaning."""
    prefix: str = ""
    """Tools with this prefix belong to the driver whatever the server is called."""


_PLAYWRIGHT = meanings(
    navigate="browser_navigate playwright_navigate",
    back="browser_navigate_back browser_navigate_forward browser_go_back playwright_go_back playwright_go_forward",
    click="browser_click browser_mouse_click_xy browser_handle_dialog playwright_click playwright_iframe_click",
    fill="browser_type browser_fill_form playwright_fill playwright_iframe_fill",
    press="browser_press_key playwright_press_key",
    select="browser_select_option playwright_select",
    upload="browser_file_upload browser_drop playwright_upload_file",
    hover="browser_hover playwright_hover",
    drag="browser_drag playwright_drag browser_mouse_drag_xy",
    screenshot="browser_take_screenshot browser_screenshot playwright_screenshot",
    snapshot="browser_snapshot browser_find playwright_get_visible_text playwright_get_visible_html browser_verify_"
    "text_visible browser_verify_element_visible browser_verify_list_visible browser_verify_value playwright_assert_"
    "response playwright_expect_response",
    evaluate="browser_evaluate browser_run_code browser_run_code_unsafe playwright_evaluate",
    wait="browser_wait_for",
    console="browser_console_messages playwright_console_logs",
    network="browser_network_requests browser_network_request",
    open="browser_install",
    close="browser_close playwright_close",
    tab="browser_tabs",
)
_DEVTOOLS = meanings(
    navigate="navigate_page new_page navigate",
    back="navigate_page_history",
    click="click click_at handle_dialog",
    fill="fill fill_form type_text",
    press="press_key",
    upload="upload_file",
    hover="hover",
    drag="drag",
    screenshot="take_screenshot screenshot",
    snapshot="take_snapshot",
    evaluate="evaluate_script evaluate",
    wait="wait_for",
    console="list_console_messages get_console_message",
    network="list_network_requests get_network_request",
    close="close_page",
    tab="list_pages select_page",
)
_CLAUDE_IN_CHROME = meanings(
    navigate="navigate",
    fill="form_input",
    upload="upload_image file_upload",
    snapshot="read_page get_page_text find",
    evaluate="javascript_tool",
    console="read_console_messages",
    network="read_network_requests",
    tab="tabs_context_mcp tabs_create_mcp tabs_close_mcp tabs_context tabs_create",
)
_SELENIUM = meanings(
    navigate="navigate open_url go_to_url get",
    back="go_back back",
    click="click_element click double_click right_click",
    fill="send_keys input_text type_text set_value",
    press="press_key",
    select="select_option",
    upload="upload_file",
    hover="hover",
    drag="drag_and_drop",
    screenshot="take_screenshot screenshot get_screenshot",
    snapshot="find_element get_element_text get_page_source get_text find_elements",
    evaluate="execute_script",
    wait="wait_for_element",
    open="start_browser start_session",
    close="close_session close_browser quit",
)
_MOBILE = meanings(
    navigate="mobile_launch_app mobile_open_url launch_app appium_launch_app appium_activate_app open_link "
    "appium_deep_link",
    back="back mobile_press_back",
    click="mobile_click_on_screen_at_coordinates mobile_double_tap_on_screen mobile_long_press_on_screen_at_coordinates "
    "tap_on appium_click appium_tap appium_double_tap appium_long_press",
    fill="mobile_type_keys input_text appium_set_value appium_send_keys",
    press="mobile_press_button press_key appium_press_key",
    scroll="mobile_swipe_on_screen swipe scroll appium_scroll appium_swipe",
    screenshot="mobile_take_screenshot mobile_save_screenshot take_screenshot appium_screenshot",
    snapshot="mobile_list_elements_on_screen inspect_view_hierarchy appium_find_element appium_get_page_source "
    "appium_get_text query_docs",
    open="start_device create_session appium_create_session mobile_use_device select_device",
    close="stop_app mobile_terminate_app appium_terminate_app delete_session appium_delete_session",
)
_PUPPETEER = meanings(
    navigate="puppeteer_navigate",
    click="puppeteer_click",
    fill="puppeteer_fill puppeteer_type",
    select="puppeteer_select",
    hover="puppeteer_hover",
    screenshot="puppeteer_screenshot",
    evaluate="puppeteer_evaluate",
)

DRIVERS = (
    # The first row that fits counts.
    Driver("playwright-mcp", ("playwright*", "*-playwright", "browser"), _PLAYWRIGHT, "browser_"),
    Driver("playwright-mcp", ("playwright*",), _PLAYWRIGHT, "playwright_"),
    Driver("chrome-devtools-mcp", ("chrome-devtools*", "chrome_devtools*", "*devtools-mcp"), _DEVTOOLS),
    Driver("puppeteer", ("puppeteer*", "*-puppeteer"), _PUPPETEER, "puppeteer_"),
    Driver("claude-in-chrome", ("claude-in-chrome*", "claude_in_chrome*"), _CLAUDE_IN_CHROME),
    Driver("selenium", ("*selenium*", "*webdriver*"), _SELENIUM),
    Driver("mobile", ("mobile*", "maestro*", "appium*", "*-appium", "*-maestro"), _MOBILE, "mobile_"),
    Driver("mobile", ("appium*",), _MOBILE, "appium_"),
)

# Tools that tell their driver by name alone, for agents that write `mcp_server_tool`.
_PREFIXED = {tool for driver in DRIVERS if driver.prefix for tool in driver.tools if tool.startswith(driver.prefix)}

_COMPUTER = {
    **dict.fromkeys(("left_click", "right_click", "double_click", "triple_click", "click", "tap"), "click"),
    "type": "fill",
    "key": "press",
    "screenshot": "screenshot",
    "zoom": "screenshot",
    "wait": "wait",
    "scroll": "scroll",
    "scroll_to": "scroll",
    "hover": "hover",
    "left_click_drag": "drag",
}
"""Claude in Chrome and other computer-use servers have one tool whose `action` says what is done."""

_LIKE_SERVER = lazy_pattern(
    r"browser|chrom|firefox|safari|webkit|selenium|webdriver|stagehand|cypress|appium|maestro|puppet"
)
_LIKE_TOOL = lazy_pattern(r"(?:^|[_.-])(?:navigate|goto|click|tap|screenshot|fill|type_text|page)(?:$|[_.-])")
_TYPED_KEYS = ("value", "text", "values", "keys", "key", "code", "input", "characters", "string", "option", "options")


class ToolUse(msgspec.Struct, frozen=True):
    """What one call is to a driver."""

    driver: str = ""
    meaning: str = ""
    address: str = ""
    following: tuple["ToolUse", ...] = ()
    """What the same command line does after it."""
    asks: str = ""
    """`title` or `url`: the whole answer is that of the page."""

    @property
    def is_known(self) -> bool:
        return bool(self.meaning)


NOT_A_DRIVER = ToolUse()


def split_tool(tool: str) -> tuple[str, str]:
    """(server, name): `mcp__playwright__browser_click` is (`playwright`, `browser_click`)."""
    server, _, name = tool.rpartition("__")
    name = name.lower()
    if not server:  # `mcp_playwright_browser_click`, as some agents write it
        starts = (n for n in range(len(name[:200])) if n == 0 or name[n - 1] in "_.-")
        name = next((name[n:] for n in starts if name[n:] in _PREFIXED), name)
    return server.removeprefix("mcp__").lower(), name


def recognise_tool_use(tool: str, arguments: Mapping[str, Any], extra: Mapping[str, str] | None = None) -> ToolUse:
    """Which driver a call belongs to, what it does and where it goes."""
    command = arguments.get("command")
    # A tool of an MCP server may have an argument `command` too: only shells have no `__` in the name.
    if isinstance(command, str) and "__" not in tool and command:
        return use_of_command(command)
    # Of an agent's own tools, which are given nothing that matters here, the name tells all.
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
    for driver in DRIVERS:
        if meaning := _of_tool(driver, server, name, arguments):
            return ToolUse(driver.name, meaning, _address_argument(arguments) if meaning == "navigate" else "")
    return NOT_A_DRIVER


def is_unknown_driver(tool: str, arguments: Mapping[str, Any], extra: Mapping[str, str] | None = None) -> bool:
    """Looks like a browser's tool, and is in no table: it is recorded, and its steps cannot be told."""
    if "__" not in tool or recognise_tool_use(tool, arguments, extra).is_known:
        return False
    server, name = split_tool(tool)
    return bool(_LIKE_SERVER.search(server) or (_LIKE_TOOL.search(name) and not server.startswith("plugin_files")))


def _of_tool(driver: Driver, server: str, name: str, arguments: Mapping[str, Any]) -> str:
    prefixed = bool(driver.prefix) and name.startswith(driver.prefix)
    if not prefixed and not (server and any(fnmatch.fnmatchcase(server, glob) for glob in driver.servers)):
        return ""
    if name == "computer":
        return _COMPUTER.get(str(arguments.get("action")), "other")
    meaning = driver.tools.get(name, "other")
    # chrome-devtools-mcp goes back with the same tool that navigates.
    if meaning == "navigate" and str(arguments.get("type") or arguments.get("url")) in ("back", "forward"):
        return "back"
    return meaning


def use_of_command(command: str) -> ToolUse:
    """What a command line does in a browser: its first command, and those after it."""
    uses = [ToolUse(one.driver, one.meaning, one.address, asks=one.asks) for one in parse_browser_commands(command)]
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
    """(the arguments without what was typed, the values that were taken out of them or stand in the answer)."""
    if use.driver in SHELL_DRIVERS:
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
