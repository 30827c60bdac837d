"""docs/agents.md and the plugin say what the adapters say."""

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest

from holdfast.agents import AGENTS
from holdfast.agents.page import agents_table, files_table, told_table
from holdfast.setup.imports import IMPORTERS

ROOT = Path(__file__).parents[2]


def tool():
    spec = importlib.util.spec_from_file_location("plugin_tool", ROOT / "tools" / "plugin.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_page_has_the_tables_of_today():
    text = (ROOT / "docs" / "agents.md").read_text()
    assert agents_table() in text
    assert files_table() in text
    assert told_table() in text
    assert [name for name in IMPORTERS if f"| `{name}` |" not in text] == []


def test_every_agent_is_in_the_table():
    head = agents_table().splitlines()[0]
    assert all(agent.title in head for agent in AGENTS.values() if agent.setup)


def test_the_plugin_is_of_today():
    stale = [str(file) for file, text in tool().FILES.items() if file.read_text() != text()]
    assert stale == [], "run: python tools/plugin.py"


def test_its_parts_fit_together():
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text())
    (plugin,) = market["plugins"]
    folder = ROOT / plugin["source"]
    assert json.loads((folder / ".claude-plugin" / "plugin.json").read_text())["name"] == plugin["name"]
    skills = sorted(folder.glob("skills/*/SKILL.md"))
    assert len(skills) == 3
    for skill in skills:
        head = skill.read_text().split("---")[1]
        assert f"name: {skill.parent.name}" in head and "description: " in head


@pytest.mark.parametrize("mode", ["ask", "start", "tell"])
def test_without_holdfast_the_plugin_reads_its_input_and_says_nothing(mode):
    line = tool().LINE.format(mode=mode, event="Stop", missing="")
    done = subprocess.run(["sh", "-c", line], input=b"x" * 200_000, capture_output=True, env={"PATH": "/usr/bin:/bin"})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
