"""`holdfast doctor` on the hooks of every agent: one line each, with what mends it."""

import json
from pathlib import Path

import pytest

from tests.kit import World


@pytest.fixture
def world(tmp_path: Path):
    made = World(tmp_path)
    yield made
    made.close()


def findings(world: World, word: str = "") -> list[str]:
    told = world.json("doctor", code=None)["findings"]
    return [f"{f['problem']} → {f['fix']}" for f in told if word in f["problem"]]


def program(world: World, name: str, version: str) -> dict[str, str]:
    file = world.root / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\necho '{name} {version} (build 9.9)'\n")
    file.chmod(0o755)
    return {"PATH": f"{file.parent}:{world.env['PATH']}"}


def test_an_agent_without_hooks_is_named_with_the_command(world):
    (world.home / ".qwen").mkdir()
    assert findings(world, "Qwen") == [
        "Qwen Code is installed, but Holdfast's hooks are not → holdfast install --agent qwen"
    ]
    world.cli("install", "--agent", "qwen")
    assert findings(world, "Qwen") == []


def test_install_finds_the_agents_that_are_there(world):
    for folder in (".qwen", ".gemini", ".config/opencode"):
        (world.home / folder).mkdir(parents=True)
    told = world.json("install", PATH=f"{world.env['PATH'].split(':')[0]}:/usr/bin:/bin")
    assert {plan["agent"] for plan in told} == {"qwen", "gemini", "opencode"}
    assert all(plan["written"] for plan in told)
    world.cli("uninstall")
    assert not list(world.home.rglob("*.json")) and not list(world.home.rglob("*.js"))


def test_codex_hooks_that_nobody_reviewed(world):
    world.cli("install", "--agent", "codex")
    said = findings(world, "Codex")
    assert len(said) == 1 and "until they are reviewed → start codex, type /hooks" in said[0]
    file = world.home / ".codex" / "hooks.json"
    state = f'[hooks.state."{file}:pre_tool_use:0:0"]\ntrusted_hash = "sha256:0"\n'
    (world.home / ".codex" / "config.toml").write_text(state)
    assert findings(world, "Codex") == []


def test_a_project_codex_does_not_trust(world):
    world.cli("install", "--agent", "codex", "--project")
    assert "does not trust" in findings(world, "Codex")[0]


def test_an_agent_that_is_too_old(world):
    world.env |= program(world, "gemini", "0.9.0")
    world.cli("install", "--agent", "gemini")
    assert findings(world, "0.9.0") == [
        "Gemini CLI 0.9.0 is older than 0.26.0, the first version with known hooks → update it"
    ]


def test_two_registrations_and_a_dead_command(world):
    for level in ("--user", "--project"):
        world.cli("install", "--agent", "gemini", level)
    assert "holdfast uninstall --agent gemini --project" in findings(world, "twice")[0]
    world.cli("uninstall", "--agent", "gemini", "--project")
    file = world.home / ".gemini" / "settings.json"
    text = file.read_text()
    file.write_text(text.replace("/holdfast-hook", "/gone/holdfast-hook"))
    assert any("is not there" in line for line in findings(world))
    world.cli("doctor", "--fix", code=None)
    assert json.loads(file.read_text()) == json.loads(text)


def test_codexs_step_is_explained(world):
    assert "/hooks" in world.cli("install", "--agent", "codex")
    assert "milliseconds" in world.cli("install", "--agent", "gemini")
