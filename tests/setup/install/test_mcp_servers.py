"""Our MCP server in the files where Claude Code looks for one: in without harm, out to the byte."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agents import AGENTS
from holdfast.core.errors import InstallRefused
from holdfast.setup.install import hooks as install
from holdfast.setup.install import hooks_text, mcp_servers
from holdfast.setup.install.locations import Records
from tests.kit import World
from tests.setup.install.test_hooks import FILES

CLAUDE = mcp_servers.tools_of(AGENTS["claude-code"])
assert CLAUDE


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOLDFAST_STATE", "XDG_STATE_HOME", "HOLDFAST_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for folder in ("home", "project", "bin"):
        (tmp_path / folder).mkdir()
    program = tmp_path / "bin" / "holdfast"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(hooks_text, "_script_folders", lambda: [tmp_path / "bin"])
    return tmp_path / "project"


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_in_twice_and_out_again(project: Path, text: str) -> None:
    file = project / ".mcp.json"
    file.write_bytes(text.encode())
    install.install_hooks(CLAUDE, "project", project)
    after = file.read_bytes()
    assert mcp_servers.Servers().find_entries(after.decode())
    assert not install.install_hooks(CLAUDE, "project", project).changes
    assert install.verify_installation(CLAUDE, "project", project) == []
    install.remove_hooks(CLAUDE, "project", project)
    assert file.read_bytes() == text.encode()


def test_a_file_of_our_making_goes_with_us(project: Path) -> None:
    install.install_hooks(CLAUDE, "project", project)
    told = json.loads((project / ".mcp.json").read_text())
    assert told == {"mcpServers": {"holdfast": {"command": str(project.parent / "bin/holdfast"), "args": ["mcp"]}}}
    install.remove_hooks(CLAUDE, "project", project)
    assert list(project.iterdir()) == []


def test_what_others_added_meanwhile_stays(project: Path) -> None:
    install.install_hooks(CLAUDE, "project", project)
    file = project / ".mcp.json"
    told = json.loads(file.read_text())
    told["mcpServers"]["other"] = {"command": "x"}
    file.write_text(json.dumps(told, indent=4))
    install.remove_hooks(CLAUDE, "project", project)
    assert json.loads(file.read_text()) == {"mcpServers": {"other": {"command": "x"}}}


def test_an_entry_somebody_wrote_himself_stays_his(project: Path) -> None:
    file, text = project / ".mcp.json", '{"mcpServers": {"holdfast": {"command": "uvx", "args": ["holdfast", "mcp"]}}}'
    file.write_text(text)
    assert not install.install_hooks(CLAUDE, "project", project).changes
    assert not install.remove_hooks(CLAUDE, "project", project).changes
    assert file.read_text() == text


def test_an_entry_of_ours_that_moved_is_brought_up_to_date(project: Path) -> None:
    file = project / ".mcp.json"
    file.write_text('{"mcpServers": {"holdfast": {"command": "/old/bin/holdfast", "args": ["mcp"]}, "b": {}}}')
    assert install.verify_installation(CLAUDE, "project", project) != []
    install.install_hooks(CLAUDE, "project", project)
    assert install.verify_installation(CLAUDE, "project", project) == []
    assert json.loads(file.read_text())["mcpServers"]["b"] == {}


@pytest.mark.parametrize("text", ["[]", '{"mcpServers": []}', "{", '{"mcpServers": {}, "mcpServers": {}}', '{"a" 1}'])
def test_what_cannot_be_understood_is_refused(project: Path, text: str) -> None:
    (project / ".mcp.json").write_text(text)
    with pytest.raises(InstallRefused):
        install.install_hooks(CLAUDE, "project", project)
    assert (project / ".mcp.json").read_text() == text


LIVE = {
    "numStartups": 7, "primaryApiKey": "sk-ant-secret-of-the-user", "projects": {"/x": {"mcpServers": {}}},
    "tipsHistory": {"a": 1},
}  # fmt: skip


@pytest.mark.parametrize("servers", [None, {}, {"other": {"command": "x"}}])
def test_the_users_own_file_is_edited_and_no_copy_is_kept(project: Path, servers: dict | None) -> None:
    """~/.claude.json holds the user's keys, and Claude Code rewrites it all the time."""
    file = Path.home() / ".claude.json"
    before = json.dumps(LIVE | ({"mcpServers": servers} if servers is not None else {}), indent=2)
    file.write_text(before)
    file.chmod(0o600)
    plan = install.install_hooks(CLAUDE, "user", project)
    assert "holdfast" in json.loads(file.read_text())["mcpServers"]
    assert file.stat().st_mode & 0o777 == 0o600
    kept = [path.read_text() for path in Records(plan.state).folder.iterdir()]
    assert kept and not any("sk-ant-secret" in text for text in kept)
    changed = json.loads(file.read_text()) | {"numStartups": 8}
    install.remove_hooks(CLAUDE, "user", project)
    assert file.read_text() == before
    file.write_text(json.dumps(changed, indent=2))
    install.remove_hooks(CLAUDE, "user", project)
    assert json.loads(file.read_text())["numStartups"] == 8
    assert "holdfast" not in json.loads(file.read_text()).get("mcpServers", {})


names = st.text(min_size=1, max_size=8)
values = st.recursive(st.none() | st.integers() | names, lambda v: st.lists(v, max_size=3) | st.dictionaries(names, v))


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(names, values, max_size=4), st.none() | st.dictionaries(names, values, min_size=1, max_size=3),
    st.sampled_from((None, 2, 4, "\t")),
)  # fmt: skip
def test_any_file_in_and_out(rest: dict, servers: dict | None, indent: int | str | None) -> None:
    layout, state = mcp_servers.Servers(), Path("/s")
    before = json.dumps(rest | ({"mcpServers": servers} if servers else {}), indent=indent)
    after = layout.with_ours(before, CLAUDE, state)
    if "holdfast" in (servers or {}):
        return
    assert json.loads(after)["mcpServers"]["holdfast"] == mcp_servers.server_entry(state)
    assert layout.without_ours(after, before) == (before if rest or servers else layout.without_ours(after, before))
    assert layout.foreign(after) == layout.foreign(before)


OTHERS = ("codex", "gemini", "qwen", "copilot", "cursor", "droid", "opencode")


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("level", ["user", "project"])
def test_every_agent_that_takes_servers_gets_ours(project: Path, name: str, level: str) -> None:
    """Beside the hooks, even in the same file, and both go without a trace."""
    agent, tools = AGENTS[name], mcp_servers.tools_of(AGENTS[name])
    assert tools
    install.install_hooks(agent, level, project)
    install.install_hooks(tools, level, project)
    assert (
        install.verify_installation(agent, level, project) == [] == install.verify_installation(tools, level, project)
    )
    assert not install.install_hooks(agent, level, project).changes
    assert not install.install_hooks(tools, level, project).changes
    install.remove_hooks(tools, level, project)
    assert install.verify_installation(agent, level, project) == []
    install.remove_hooks(agent, level, project)
    left = [path for folder in (project, Path.home()) for path in folder.rglob("*") if path.is_file()]
    assert [path for path in left if "state" not in path.parts] == []


@pytest.mark.parametrize(
    "text", ["", "model = 'o3'\n", "model = 'o3'", "[mcp_servers.other]\ncommand = 'x'\n\n[tui]\na = 1\n"]
)
def test_codex_keeps_its_own_settings(project: Path, text: str) -> None:
    tools = mcp_servers.tools_of(AGENTS["codex"])
    assert tools
    file = project / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(text)
    install.install_hooks(tools, "project", project)
    told = tomllib.loads(file.read_text())
    assert told["mcp_servers"]["holdfast"] == mcp_servers.server_entry(install.default_state_dir())
    file.write_text(file.read_text() + "[more]\nb = 2\n")
    install.remove_hooks(tools, "project", project)
    assert tomllib.loads(file.read_text()) == {**tomllib.loads(text), "more": {"b": 2}}


def test_codex_servers_in_one_inline_table_are_left_alone(project: Path) -> None:
    tools = mcp_servers.tools_of(AGENTS["codex"])
    assert tools
    file = project / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text("mcp_servers = { other = { command = 'x' } }\n")
    with pytest.raises(InstallRefused):
        install.install_hooks(tools, "project", project)


def test_by_the_command_line(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.start()
    try:
        assert ".mcp.json" in world.cli("install", "--agent", "claude-code", "--project")
        told = json.loads((world.project / ".mcp.json").read_text())["mcpServers"]["holdfast"]
        assert told["env"] == {"HOLDFAST_STATE": str(world.paths.state)}
        moved = (world.project / ".mcp.json").read_text().replace(told["command"], "/gone/bin/holdfast")
        (world.project / ".mcp.json").write_text(moved)
        assert "MCP: " in world.cli("doctor", code=None)
        assert ".mcp.json" in world.cli("uninstall", "--project")
        assert not (world.project / ".mcp.json").exists()
        world.cli("install", "--agent", "claude-code", "--project", "--no-mcp")
        assert not (world.project / ".mcp.json").exists()
        world.cli("install", "--agent", "claude-code")
        assert "holdfast" in json.loads((world.home / ".claude.json").read_text())["mcpServers"]
        world.cli("uninstall")
        assert not (world.home / ".claude.json").exists()
    finally:
        world.close()
