"""Tools of browser and device drivers by what they mean; values typed through them are not kept."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.features.uat.drivers import HIDDEN, hide_typed, is_unknown_driver, recognise_tool_use
from holdfast.features.uat.drivers.shell import hide_typed_words, parse_browser_commands
from tests.features.uat.kit import LOGIN, Lab
from tests.features.uat.pictures import png
from tests.features.uat.policy.test_derive import begin

CALLS: list[tuple[str, dict[str, Any], str, str]] = [
    ("mcp__playwright__browser_navigate", {"url": "http://x"}, "playwright-mcp", "navigate"),
    ("mcp__plugin_playwright_playwright__browser_fill_form", {}, "playwright-mcp", "fill"),
    ("mcp__playwright__browser_navigate_back", {}, "playwright-mcp", "back"),
    ("mcp__chrome-devtools__navigate_page", {"type": "url", "url": "http://x"}, "chrome-devtools-mcp", "navigate"),
    ("mcp__chrome-devtools__navigate_page", {"type": "back"}, "chrome-devtools-mcp", "back"),
    ("mcp__chrome-devtools__take_snapshot", {}, "chrome-devtools-mcp", "snapshot"),
    ("mcp__chrome-devtools__performance_start_trace", {}, "chrome-devtools-mcp", "other"),
    ("mcp__puppeteer__puppeteer_fill", {}, "puppeteer", "fill"),
    ("mcp__claude-in-chrome__computer", {"action": "left_click"}, "claude-in-chrome", "click"),
    ("mcp__claude-in-chrome__computer", {"action": "type", "text": "x"}, "claude-in-chrome", "fill"),
    ("mcp__claude-in-chrome__read_page", {}, "claude-in-chrome", "snapshot"),
    ("mcp__selenium__send_keys", {}, "selenium", "fill"),
    ("mcp__mobile-mcp__mobile_launch_app", {}, "mobile", "navigate"),
    ("mcp__maestro__tap_on", {}, "mobile", "click"),
    ("mcp__appium-mcp__appium_set_value", {}, "mobile", "fill"),
    ("Bash", {"command": "playwright-cli open https://x.example/login"}, "playwright-cli", "navigate"),
    ("Bash", {"command": "npx agent-browser fill @e2 secret"}, "agent-browser", "fill"),
    ("Bash", {"command": "agent-browser --session s1 snapshot -i"}, "agent-browser", "snapshot"),
    ("Bash", {"command": "git commit -m click"}, "", ""),
    ("mcp__github__create_issue", {}, "", ""),
    ("Read", {}, "", ""),
]


@pytest.mark.parametrize(("tool", "arguments", "driver", "meaning"), CALLS)
def test_tools_of_every_driver_are_known(tool: str, arguments: dict[str, Any], driver: str, meaning: str) -> None:
    found = recognise_tool_use(tool, arguments)
    assert (found.driver, found.meaning) == (driver, meaning)
    assert not is_unknown_driver(tool, arguments)


@pytest.mark.parametrize(
    ("command", "meanings"),
    [
        ("agent-browser fill @e1 a && agent-browser fill @e2 b && agent-browser click @e3", "fill fill click"),
        ("agent-browser open x.example && agent-browser wait --load networkidle; agent-browser snapshot -i", "navigate wait snapshot"),
        ('agent-browser batch "open http://x" "click @e1" "screenshot a.png"', "navigate click screenshot"),
        ("""echo '[["open","http://x"],["press","Enter"]]' | agent-browser batch --json""", "navigate press"),
        ("agent-browser find role button click --name Submit", "click"),
        ("agent-browser find nth 2 input fill abc", "fill"),
        ("playwright-cli -s=a goto http://x\nplaywright-cli snapshot > page.yml 2>&1", "navigate snapshot"),
        ("timeout 30s npx -y @playwright/cli@latest screenshot --filename=a.png", "screenshot"),
        ("chrome-devtools take_snapshot", "snapshot"),
        ("maestro test flow.yaml", "other"),
        ("which agent-browser && ls", ""),
        ("git commit -m 'agent-browser click @e1'", ""),
        ("agent-browser 'unclosed", "other"),
    ],
)  # fmt: skip
def test_a_command_line_is_read_command_by_command(command: str, meanings: str) -> None:
    assert " ".join(one.meaning for one in parse_browser_commands(command)) == meanings


@given(st.text(alphabet="agent-browser fil@1'\"&|;\n[]{}", max_size=200))
def test_no_command_line_is_too_odd(command: str) -> None:
    shown, taken = hide_typed_words(command)
    assert shown == command or taken


def test_settings_add_tools() -> None:
    assert recognise_tool_use("mcp__ours__press_it", {}, {"mcp__ours__*": "click"}).meaning == "click"
    assert is_unknown_driver("mcp__stagehand__act", {})
    assert not is_unknown_driver("mcp__stagehand__act", {}, {"mcp__stagehand__act": "click"})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("mcp__playwright__browser_type", {"element": "Password", "text": "s3cret"}),
        ("mcp__playwright__browser_fill_form", {"fields": [{"name": "Password", "value": "s3cret"}]}),
        ("mcp__chrome-devtools__fill_form", {"elements": [{"uid": "1", "value": "s3cret"}]}),
        ("mcp__claude-in-chrome__form_input", {"ref": "r", "value": "s3cret"}),
        ("mcp__selenium__send_keys", {"by": "id", "value": "s3cret", "text": "s3cret"}),
        ("Bash", {"command": "agent-browser fill @e2 's3cret'"}),
        ("Bash", {"command": "agent-browser open http://x && agent-browser find label Password fill s3cret"}),
        ("Bash", {"command": 'agent-browser batch "fill @e2 s3cret"'}),
        ("Bash", {"command": "playwright-cli type s3cret --submit"}),
        ("Bash", {"command": "agent-browser set credentials ada s3cret"}),
        ("Bash", {"command": r"agent-browser fill @e2 s3\cret"}),
    ],
)
def test_typed_values_are_hidden(tool: str, arguments: dict[str, Any]) -> None:
    shown, taken = hide_typed(recognise_tool_use(tool, arguments), arguments)
    assert "s3cret" not in repr(shown)
    assert HIDDEN in repr(shown)
    assert "s3cret" in taken


def test_an_unknown_browser_tool_is_said_once(lab: Lab) -> None:
    begin(lab)
    lab.tool("mcp__stagehand__act", action="click the button")
    lab.tool("mcp__stagehand__act", action="click the button")
    warnings = [w["message"] for w in lab.document["execution"]["warnings"]]
    assert len(warnings) == 1
    assert "uat.drivers" in warnings[0]


SESSIONS: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("driver_sessions.json").read_text())
"""What real drivers answered to a login with a wrong password (`tests/real/test_uat_drivers.py`)."""
LOGIN_WITH_TITLE = LOGIN.replace(
    "health_checks:", "  - {description: The dashboard is shown, step: 4, title: Dashboard}\nhealth_checks:"
)


@pytest.mark.parametrize("driver", SESSIONS)
def test_what_real_drivers_answer_is_understood(lab: Lab, driver: str) -> None:
    lab.scenario(
        LOGIN_WITH_TITLE.replace("https://vrp-system-v4.pages.dev", "http://127.0.0.1:8765").replace("*/auth", "")
    )
    lab.hook("UserPromptSubmit", prompt="Please test the login-flow scenario")
    (lab.project / "done.png").write_bytes(png())
    for told in SESSIONS[driver]:
        replay_call(lab, **told)
    lab.hook("SessionEnd", reason="other")
    lab.work()
    shown = lab.view("show", calls=True)
    assert [step["verdict"] for step in shown["plan"]] == ["passed", "passed", "passed", "failed", "passed"]
    welcome, title = shown["judged"]
    assert "Wrong password" in welcome["actual"]
    assert title["actual"] == "title 'Sign in'"
    assert len(shown["shots"]) == 1
    assert "babbage" not in lab.view("report") + str(shown)


def replay_call(lab: Lab, tool: str, input: dict[str, Any], response: Any, error: str) -> None:
    given = {"tool_name": tool, "tool_input": input, "tool_use_id": f"c{lab.now}"}
    lab.hook("PreToolUse", **given)
    ended = {"error": error} if error else {"tool_response": response, "duration_ms": 20}
    lab.hook("PostToolUseFailure" if error else "PostToolUse", at=lab.now + 20, **given, **ended)


@pytest.mark.parametrize(
    "answer",
    [
        "Unable to navigate in the selected page: net::ERR_CONNECTION_REFUSED at http://x/.\n## Pages\n1: x [selected]",
        "Note: the browser was restarted or reconnected since the last call.\nError: No page found",
        "### Error\nError: net::ERR_UNSAFE_PORT at http://127.0.0.1:1/",
        "✗ Navigation failed: net::ERR_UNSAFE_PORT",
    ],
)
def test_a_driver_that_says_success_and_tells_of_a_failure(lab: Lab, answer: str) -> None:
    lab.scenario()
    lab.hook("UserPromptSubmit", prompt="Please test the login-flow scenario")
    lab.tool(
        "mcp__chrome-devtools__navigate_page", answer, type="url", url="https://vrp-system-v4.pages.dev/auth/login"
    )
    (attempt,) = lab.run["steps"][0]["attempts"]
    assert attempt["status"] == "failed"
    assert attempt["error"]
