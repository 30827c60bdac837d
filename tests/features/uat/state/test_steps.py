"""Which step a call belongs to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.kinds.uat_events import PlannedStep
from holdfast.features.uat.drivers import recognise_tool_use
from holdfast.features.uat.state.step_match import Called, matches_step, text_fits

NAMES = {
    "mcp__playwright__browser_navigate": True,
    "mcp__plugin_playwright_playwright__browser_click": True,
    "mcp__playwright__playwright_navigate": True,
    "browser_snapshot": True,
    "mcp_playwright_browser_type": True,
    "playwright_get_visible_text": True,
    "puppeteer_click": True,
    "Bash": False,
    "Read": False,
    "mcp__github__create_issue": False,
    "browser": False,
    "": False,
}


@pytest.mark.parametrize(("tool", "is_one"), NAMES.items())
def test_browser_tools_of_all_kinds_are_known(tool: str, is_one: bool) -> None:
    assert recognise_tool_use(tool, {}).is_known is is_one


@pytest.mark.parametrize(
    ("step", "tool", "arguments", "fits"),
    [
        ({"action": "navigate"}, "mcp__playwright__browser_navigate", {}, True),
        ({"action": "navigate"}, "mcp__playwright__playwright_navigate", {}, True),
        ({"action": "Navigate"}, "browser_navigate", {}, True),
        ({"action": "navigate"}, "WebFetch", {}, False),
        ({"action": "fill"}, "mcp__playwright__browser_fill_form", {}, True),
        ({"action": "fill"}, "mcp__playwright__browser_type", {}, True),
        ({"action": "fill"}, "mcp__playwright__browser_click", {}, False),
        ({"action": "click"}, "mcp__playwright__browser_click", {}, True),
        ({"action": "verify"}, "mcp__playwright__browser_snapshot", {}, True),
        ({"action": "verify"}, "mcp__playwright__browser_evaluate", {}, True),
        ({"action": "screenshot"}, "mcp__playwright__browser_take_screenshot", {}, True),
        ({"action": "hover"}, "mcp__playwright__browser_hover", {}, True),
        ({"action": "anything", "tool": "mcp__db__*"}, "mcp__db__query", {}, True),
        ({"action": "anything", "tool": "read|write"}, "mcp__fs__write", {}, True),
        ({"action": "click", "arguments": {"element": "Sign*"}}, "browser_click", {"element": "Sign in"}, True),
        ({"action": "click", "arguments": {"element": "Sign*"}}, "browser_click", {"element": "Cancel"}, False),
        ({"action": "click", "arguments": {"element": "Sign*"}}, "browser_click", {}, False),
        ({"action": "navigate", "arguments": {"url": "/login"}}, "browser_navigate", {"url": "http://x/login"}, True),
        (
            {"action": "navigate", "arguments": {"url": "/login"}},
            "browser_navigate",
            {"url": "http://x/app/login"},
            True,
        ),
        ({"action": "navigate", "arguments": {"url": "/login"}}, "browser_navigate", {"url": "http://x/logout"}, False),
        ({"action": "type", "arguments": {"submit": True}}, "browser_type", {"submit": True}, True),
        ({"action": "type", "arguments": {"submit": True}}, "browser_type", {"submit": 1}, False),
        (
            {"action": "fill", "arguments": {"fields": [{"name": "user*"}]}},
            "browser_fill_form",
            {"fields": [{"name": "username", "value": "x"}, {"name": "p"}]},
            True,
        ),
        (
            {"action": "fill", "arguments": {"fields": "*user*"}},
            "browser_fill_form",
            {"fields": [{"name": "user"}]},
            True,
        ),
    ],
)
def test_steps_and_calls(step: dict, tool: str, arguments: dict, fits: bool) -> None:
    assert (
        matches_step(
            PlannedStep(**step), Called(tool, "mcp", arguments, recognise_tool_use(tool, arguments)), "http://x/app"
        )
        is fits
    )


def test_shell_steps_fit_every_agents_shell() -> None:
    assert matches_step(
        PlannedStep("shell", arguments={"command": "make *"}),
        Called("run_shell_command", "shell", {"command": "make it"}),
    )
    assert not matches_step(PlannedStep("shell"), Called("mcp__x__shell", "mcp", {}))


@given(st.text(max_size=60), st.text(max_size=200))
def test_any_glob_and_any_text(glob: str, text: str) -> None:
    text_fits(glob, text)
    assert text_fits("*", text)


def test_a_hostile_glob_is_quick() -> None:
    import time

    began = time.process_time()
    text_fits("*a" * 200 + "b", "a" * 4000)
    assert time.process_time() - began < 1
