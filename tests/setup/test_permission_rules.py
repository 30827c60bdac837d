"""Allow rules go into Claude Code's settings and out again, and nothing else changes."""

import json
from pathlib import Path

import pytest

from holdfast.setup.install.permission_rules import with_rules, without_rules
from tests.kit import World

RULES = ["Bash(git status:*)", "Bash(mise run fmt)"]
FILES = (
    "", "{}", '{\n  "model": "opus"\n}\n', '{"permissions": {"deny": ["Read(.env)"]}}',
    '{\n  // mine\n  "permissions": {\n    "allow": [\n      "Bash(ls:*)" // looks\n    ]\n  }\n}\n',
)  # fmt: skip


@pytest.mark.parametrize("before", FILES)
def test_in_and_out_again(before: str) -> None:
    after, added = with_rules(before, RULES)
    assert added == RULES
    assert with_rules(after, RULES) == (after, [])
    assert "".join(without_rules(after, RULES).split()) == "".join((before or "{}").split())


def test_a_rule_of_the_persons_own_stays() -> None:
    before = json.dumps({"permissions": {"allow": [RULES[0]]}})
    after, added = with_rules(before, RULES)
    assert added == RULES[1:]
    assert json.loads(without_rules(after, added)) == json.loads(before)


def asked_often(world: World, command: str, times: int = 4) -> None:
    common = {"session_id": "s", "transcript_path": "/x.jsonl", "cwd": str(world.project)}
    call = {**common, "tool_name": "Bash", "tool_input": {"command": command}}
    for n in range(times):
        world.hook("PermissionRequest", call)
        world.hook("PostToolUse", {**call, "tool_use_id": f"{command}{n}"})


def test_what_was_always_allowed_is_proposed_written_after_consent_and_uninstalled(tmp_path: Path) -> None:
    world = World(tmp_path)
    settings = world.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  "model": "opus"\n}\n')
    world.cli("install", "--agent", "claude-code", "--user")
    installed = settings.read_text()
    try:
        world.start()
        asked_often(world, "git status --short | head -3")
        asked_often(world, "rm -rf build")
        found = world.json("permission", "suggest")
        assert [rule["rule"] for rule in found["rules"]] == ["Bash(git status:*)", "Bash(head:*)"]
        assert (found["saved"], found["asked"]) == (4, 8)
        world.cli("permission", "suggest", "--write", stdin="n\n")
        assert settings.read_text() == installed
        world.cli("permission", "suggest", "--write", stdin="y\n")
        assert json.loads(settings.read_text())["permissions"] == {"allow": ["Bash(git status:*)", "Bash(head:*)"]}
        world.cli("uninstall")
        assert settings.read_text() == '{\n  "model": "opus"\n}\n'
    finally:
        world.close()
