"""The same promises for every agent: in beside everything else, out to the byte, refused where that cannot be held."""

import json
import shlex
from pathlib import Path

import pytest

from holdfast.agents import AGENTS
from holdfast.core.errors import InstallRefused
from holdfast.setup.install import hooks, locations
from holdfast.setup.install import hooks as install
from tests.setup.install.test_hooks import FILES, World, enter

OTHERS = {name: agent for name, agent in AGENTS.items() if agent.setup and name != "claude-code"}
EVERY = pytest.mark.parametrize("agent", OTHERS.values(), ids=OTHERS.keys())
IN_JSON = {name: agent for name, agent in OTHERS.items() if agent.setup.layout != "text"}
JSON = pytest.mark.parametrize("agent", IN_JSON.values(), ids=IN_JSON.keys())


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch):
    return enter(monkeypatch, World(tmp_path))


def file_of(agent, world, level="project") -> Path:
    return locations.settings_file(agent, level, world.project)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in folder.rglob("*")}


@EVERY
@pytest.mark.parametrize("level", ["user", "project"])
def test_from_nothing_to_nothing(agent, level, world):
    before = tree(world.project)
    plan = install.install_hooks(agent, level, world.project)
    assert plan.created
    assert plan.path.is_relative_to(world.home if level == "user" else world.project)
    assert install.verify_installation(agent, level, world.project) == []
    assert not install.install_hooks(agent, level, world.project).changes
    install.remove_hooks(agent, level, world.project)
    assert not plan.path.exists()
    assert tree(world.project) == before


@JSON
@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_in_twice_and_out_again(agent, text, world):
    if agent.setup.layout == "list" and '"hooks": [' in text:
        pytest.skip("a list of Claude's groups is no list of this agent's entries")
    file = file_of(agent, world)
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode())
    install.install_hooks(agent, "project", world.project)
    written = file.read_bytes()
    found = install.installed_hooks(agent, "project", world.project)
    assert [item.event for item in found] and all(item.current and not item.missing for item in found)
    assert {item.event for item in found} == {h.event for h in agent.hooks if h.register}
    assert hooks.layout_of(agent).foreign(written.decode()) == hooks.layout_of(agent).foreign(text)
    assert not install.install_hooks(agent, "project", world.project).changes
    install.remove_hooks(agent, "project", world.project)
    assert file.read_bytes() == text.encode()


@JSON
def test_what_another_wrote_meanwhile_stays(agent, world):
    file = file_of(agent, world)
    file.parent.mkdir(parents=True)
    file.write_text('{\n  "mine": 1\n}\n')
    install.install_hooks(agent, "project", world.project)
    file.write_text(file.read_text().replace('"mine": 1', '"mine": 2'))
    install.remove_hooks(agent, "project", world.project)
    assert file.read_text() == '{\n  "mine": 2\n}\n'


@JSON
@pytest.mark.parametrize("text", ["{", "[1]", '{"hooks": []}'])
def test_a_broken_file_is_refused_and_left(agent, text, world):
    file = file_of(agent, world)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(InstallRefused):
        install.install_hooks(agent, "project", world.project)
    assert file.read_text() == text


@JSON
def test_the_command_is_ours_and_never_names_a_version(agent, world):
    install.install_hooks(agent, "project", world.project)
    for item in install.installed_hooks(agent, "project", world.project):
        line = item.entry.get("command") or item.entry["bash"]
        words = shlex.split(line.removeprefix("exec "))
        hook = agent.hook(item.event)
        assert words == [str(world.client), hook.mode, agent.name, hook.event]


def entry_of(name, event, world):
    install.install_hooks(OTHERS[name], "project", world.project)
    found = install.installed_hooks(OTHERS[name], "project", world.project)
    return next(item.entry for item in found if item.event == event)


def test_timeouts_are_in_each_agents_unit(world):
    assert entry_of("gemini", "BeforeTool", world)["timeout"] == 15_000
    assert entry_of("qwen", "PreToolUse", world)["timeout"] == 15
    assert entry_of("codex", "PreToolUse", world)["timeout"] == 15
    assert entry_of("codex", "SessionEnd", world)["timeout"] == 3
    assert entry_of("copilot", "preToolUse", world)["timeoutSec"] == 15
    assert entry_of("cursor", "preToolUse", world)["timeout"] == 15


def test_gemini_is_asked_for_wanted_compressions_only(world):
    install.install_hooks(OTHERS["gemini"], "project", world.project)
    told = json.loads(file_of(OTHERS["gemini"], world).read_text())["hooks"]["PreCompress"]
    assert told[0]["matcher"] == "manual"


@pytest.mark.parametrize("name", ["copilot", "cursor"])
def test_a_new_file_has_its_version(name, world):
    install.install_hooks(OTHERS[name], "project", world.project)
    assert json.loads(file_of(OTHERS[name], world).read_text())["version"] == 1


def test_entries_of_others_in_a_list_stay(world):
    agent = OTHERS["cursor"]
    file = file_of(agent, world)
    file.parent.mkdir(parents=True)
    text = '{\n  "version": 1,\n  "hooks": {\n    "preToolUse": [{"command": "./check.sh"}]\n  }\n}\n'
    file.write_text(text)
    install.install_hooks(agent, "project", world.project)
    told = json.loads(file.read_text())["hooks"]["preToolUse"]
    assert told[0] == {"command": "./check.sh"} and len(told) == 2
    file.write_text(file.read_text() + "\n")
    install.remove_hooks(agent, "project", world.project)
    assert file.read_text() == text + "\n"


def test_somebody_elses_plugin_of_our_name_is_left_alone(world):
    agent = OTHERS["opencode"]
    file = file_of(agent, world)
    file.parent.mkdir(parents=True)
    file.write_text("export const Mine = async () => ({})\n")
    with pytest.raises(InstallRefused):
        install.install_hooks(agent, "project", world.project)
    assert not install.plan_removal(agent, "project", world.project).changes


def test_a_plugin_of_ours_that_somebody_changed_is_not_thrown_away(world):
    agent = OTHERS["opencode"]
    file = install.install_hooks(agent, "project", world.project).path
    file.write_text(file.read_text() + "// mine\n")
    for work in (install.install_hooks, install.remove_hooks):
        with pytest.raises(InstallRefused, match="changed"):
            work(agent, "project", world.project)


def test_a_plugin_names_a_client_that_is_gone(world):
    agent = OTHERS["opencode"]
    install.install_hooks(agent, "project", world.project)
    world.client.unlink()
    assert any(str(world.client) in problem for problem in install.verify_installation(agent, "project", world.project))
