"""`holdfast uat run` with an agent that is a small script: real processes, the real command line."""

import json
import shlex
import stat
from pathlib import Path

import pytest

from holdfast.core.errors import CommandRefused
from holdfast.doors.cli.uat_runner import find_agent, headless_agents, prompt_for
from tests.kit import World, hook_command

SCENARIO = "name: {0}\ntags: [smoke]\nsteps: [{{action: shell, arguments: {{command: 'true'}}}}]\n"
AGENT = """#!/bin/sh
case "$2" in *"good one"*) name="good one"; state=completed;; *) name="bad one"; state=failed;; esac
printf '{"hook_event_name":"SessionStart","session_id":"s-%s","cwd":"%s"}' $$ "$PWD" |
  HOOK ask claude-code SessionStart >/dev/null
holdfast uat start "$name" --session s-$$ >/dev/null && holdfast uat step 1 $state --session s-$$ >/dev/null
holdfast uat end --session s-$$ >/dev/null 2>&1; exit 0
"""


def test_the_prompt_names_the_scenario_and_the_way_to_begin() -> None:
    assert "holdfast uat start 'a b'" in prompt_for({"name": "a b", "file": "x.yaml"})


def test_an_agent_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandRefused, match="is on PATH"):
        find_agent("")
    with pytest.raises(CommandRefused, match="is no agent"):
        find_agent("emacs")
    assert "claude-code" in headless_agents()


def test_a_tag_is_run_and_the_exit_code_is_a_gate(world: World, tmp_path: Path) -> None:
    folder = world.project / "uat" / "scenarios"
    folder.mkdir(parents=True)
    for name in ("good one", "bad one"):
        (folder / f"{name.replace(' ', '-')}.yaml").write_text(SCENARIO.format(name))
    script = tmp_path / "bin" / "claude"
    script.parent.mkdir()
    script.write_text(AGENT.replace("HOOK", shlex.join(hook_command())))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    world.env |= {"PATH": f"{script.parent}:{world.env.get('PATH', '')}"}
    world.start()
    done = world.cli("uat", "run", "smoke", "--yes", "--json", code=1)
    assert {one["scenario"]: one["outcome"] for one in json.loads(done)["data"]} == {
        "good one": "passed",
        "bad one": "failed",
    }
    world.cli("uat", "run", "good one", "--yes", "--json", code=0)
