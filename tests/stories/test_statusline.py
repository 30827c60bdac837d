"""`install --statusline`: the native client prints what the daemon knows of a session, and tells nothing."""

import json
import shlex
import subprocess
from pathlib import Path

from tests.kit import World, wait_until
from tests.stories.test_cost import tokens, turn


def settings(world: World) -> Path:
    return world.home / ".claude" / "settings.json"


def printed(world: World, **told: object) -> str:
    command = json.loads(settings(world).read_text())["statusLine"]["command"]
    asked = subprocess.run(
        shlex.split(command), input=json.dumps(told), capture_output=True, text=True, env=world.env, check=True
    )
    return asked.stdout


def test_the_status_line_of_a_session(world: World) -> None:
    world.start()
    world.session("s-1").start()
    turn(world, 1)
    wait_until(lambda: tokens(world) == 1050, "the first call is counted")
    world.cli("install", "--agent", "claude-code", "--statusline", "--no-mcp")
    before = len(world.hooks_seen())
    line = printed(world, session_id="s-1", context_window={"used_percentage": 43.4}, cost={"total_cost_usd": 9})
    assert line == "$0.00375 · 1.1k tokens · context 43%\n"
    assert printed(world, session_id="nobody", context_window={"used_percentage": "x"}) == "1 other session waits\n"
    assert world.cli("statusline", "s-1").strip() == line.replace(" · context 43%", "").strip()
    assert len(world.hooks_seen()) == before, "it is no event"
    world.cli("uninstall", "--agent", "claude-code")
    assert not settings(world).exists()


def test_one_that_is_there_is_left_alone(world: World) -> None:
    own = '{"statusLine": {"type": "command", "command": "mine"}}\n'
    settings(world).parent.mkdir(exist_ok=True)
    settings(world).write_text(own)
    said = world.cli("install", "--agent", "claude-code", "--statusline", "--no-mcp")
    assert "another status line was left alone" in " ".join(said.split())
    assert json.loads(settings(world).read_text())["statusLine"]["command"] == "mine"
    world.cli("uninstall", "--agent", "claude-code")
    assert settings(world).read_text() == own
