"""With a real daemon: its journal is on disk too, and holds nothing that the log would not."""

import json
from typing import Any

import pytest

from holdfast.features.uat.drivers.evidence import redacts
from tests.kit import World, wait_until

TYPED = "tarragon-x-41"
PAGE = f"await page.locator('x').fill('{TYPED}');\n- textbox \"Nickname\" [ref=e5]: {TYPED}"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("mcp__playwright__browser_type", {"element": "Nickname", "text": TYPED}),
        ("mcp__claude-in-chrome__computer", {"action": "type", "text": TYPED}),
        ("mcp__stagehand__act", {"text": TYPED}),
        ("Bash", {"command": f"npx @playwright/cli fill e2 '{TYPED}'"}),
    ],
)
def test_what_was_typed_is_not_in_the_journal_either(world: World, tool: str, given: dict[str, Any]) -> None:
    """No rule of redaction knows a nickname: only UAT knows that it was typed."""
    (world.root / "config").mkdir()
    (world.root / "config" / "settings.yaml").write_text("uat: {drivers: {mcp__stagehand__*: fill}}\n")
    world.start()
    agent = world.session()
    agent.start()
    agent.tool(tool, [{"type": "text", "text": PAGE}], **given)
    agent.before(tool, **given)
    agent.failed(tool, f"no such field for {TYPED}", **given)
    agent.before("mcp__playwright__browser_snapshot")
    agent.after("mcp__playwright__browser_snapshot", response=[{"type": "text", "text": PAGE}])
    wait_until(lambda: len(world.events(kinds=("tool.finished", "tool.failed"))) == 3, "all calls are in the log")
    kept = [path for path in world.paths.state.rglob("*") if path.is_file() and TYPED.encode() in path.read_bytes()]
    assert not kept


COMMAND = "npx @playwright/cli fill e2 'x'"


@pytest.mark.parametrize(
    "payload",
    [
        {"tool_name": "Bash", "tool_input": {"command": COMMAND}, "tool_response": {"stdout": "done"}},
        {"tool_name": "Bash", "tool_response": {"stdout": "done"}, "tool_input": {"command": COMMAND}},
        {"tool_name": "Bash", "tool_input": {"command": f"echo '\"tool_response\"'; {COMMAND}"}, "tool_response": {}},
        {"toolName": "bash", "toolArgs": {"command": COMMAND}, "toolResult": {}},
    ],
)
def test_a_command_of_a_driver_is_seen_wherever_it_stands(payload: dict[str, Any]) -> None:
    assert redacts(json.dumps(payload).encode(), None)


def test_a_driver_named_in_the_output_only_costs_nobody_a_moment() -> None:
    payload = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": COMMAND}}
    assert not redacts(json.dumps(payload).encode(), None)
