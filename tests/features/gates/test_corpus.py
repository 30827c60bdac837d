"""Labelled ways round a requirement that a call itself shows, and honest ways beside them, in a real repository.

Each call is only asked for here; `score_cheats.py` of the corpus plays them all against the installed program.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents import AGENTS
from holdfast.analysis.shell.command_effects import read_acts
from holdfast.core.decision import Delivery
from holdfast.core.git_context import locate
from holdfast.features.gates.observations import observe_event
from holdfast.features.gates.rules.triggers import matches_command
from holdfast.features.gates.settings import GateSettings
from holdfast.features.gates.views import Simulation
from holdfast.paths import default_state_dir

CORPUS = Path(__file__).parents[2] / "corpus"
GATES: dict[str, dict[str, Any]] = {
    "tests-before-commit": {"tested_commit": {"scope": "single_use", "command_pattern": r"git\s+commit", "manual": False}},
    "protected-branch": {"protected_branch": {"type": "guard", "guard_type": "protected_branch"}},
    "protected-paths": {"infra_approved": {"scope": "single_use", "paths": ["infra/**", ".github/**"], "manual": False}},
    "approval": {"deploy_approved": {"scope": "single_use", "command_pattern": r"make\s+deploy|kubectl\s+apply", "manual": False}},
    "plan": {"commit_plan": {}},
}  # fmt: skip
SHOWN = frozenset(
    "approval-spelling commit-spelling branch-edit paths-tool exempt subagent approval-cli settings-tool "
    "honest-words honest-branch honest-paths honest-plan".split()
)
FILES = {"src/app.py": "value = 0\n", "infra/prod.tf": "size = 1\n", "docs/a.md": "# a\n", ".gitignore": "*.txt\n",
         "ship.sh": "#!/bin/sh\nset -e\ngit add -A\ngit commit -m ship\n", "rel": "#!/usr/bin/env bash\nexec make deploy\n",
         "package.json": '{"scripts": {"ship": "make deploy", "pub": "npm run ship", "ci": "git commit -am x"}}',
         "Makefile": "test:\n\tsh tests/check.sh\n\ndeploy:\n\techo deployed > deployed.txt\n"}  # fmt: skip
ALIASES = (
    ("config", "alias.save", "commit -am wip"), ("config", "alias.chain", "save"),
    ("config", "alias.sv", '!f() { git add -A; git commit -m "$1"; }; f'),
)  # fmt: skip
COMMANDS = [json.loads(line) for line in (CORPUS / "gate_commands.jsonl").read_text().splitlines()]
ATTACKS = [json.loads(line) for line in (CORPUS / "gate_attacks.jsonl").read_text().splitlines()]
"""Written after the rules, without looking at the labelled corpus: other spellings, tools, links, aliases, our own files."""
WAYS = [json.loads(line) for line in (CORPUS / "gate_cheats.jsonl").read_text().splitlines()]
BLIND = [json.loads(line) for line in (CORPUS / "gate_ways.jsonl").read_text().splitlines()]
"""754 ways, labelled before their first run against real daemons and hooks. `at_once` is what the call itself shows: true is
refused before it runs, false is honest; those without it show afterwards, or in what the whole story came to."""
SAMPLE = [
    way for way in WAYS
    if way["group"] in SHOWN and way["expect"] in ("refused", "allowed") and way.get("goal", "") is None
    and all("tool_name" in step for step in way["steps"])
]  # fmt: skip


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repo")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for words in (("init", "-q", "-b", "main"), ("checkout", "-q", "-b", "feature/test"), *ALIASES):
        subprocess.run(["git", *words], cwd=root, check=True)
    (root / "link.tf").symlink_to("infra/prod.tf")
    (root / "cfg").symlink_to("infra")
    return root


@pytest.mark.parametrize("one", COMMANDS, ids=lambda one: f"{one['command'][:50]!r}")
def test_a_command_is_what_it_does_not_what_it_mentions(one: dict[str, Any]) -> None:
    acts = read_acts(one["command"], "/project")
    assert matches_command(re.compile(one["pattern"]), acts, one["command"]) is one["is_it"]


@pytest.mark.parametrize("way", SAMPLE, ids=lambda way: way["id"])
def test_labelled_ways_end_as_labelled(way: dict[str, Any], repository: Path) -> None:
    branch = "main" if way["gate"] == "protected-branch" else "feature/test"
    (repository / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    refused = any(is_refused(way["gate"], step, repository) for step in way["steps"])
    assert refused is (way["expect"] == "refused"), way["why"]


@pytest.mark.parametrize("gate", sorted({one["gate"] for one in ATTACKS}))
def test_other_spellings_and_tools_are_seen_and_honest_calls_pass(gate: str, repository: Path) -> None:
    branch = "main" if gate == "protected-branch" else "feature/test"
    (repository / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    for one in (one for one in ATTACKS if one["gate"] == gate):
        step = one.get("step") or {"tool_name": "Bash", "tool_input": {"command": one["command"]}}
        assert is_refused(gate, step, repository) is one["refused"], one


@pytest.mark.parametrize("group", sorted({one["group"] for one in BLIND if "at_once" in one}))
def test_ways_of_the_blind_set_show_before_they_run(group: str, repository: Path) -> None:
    ended = {}
    for one in (one for one in BLIND if one["group"] == group and "at_once" in one):
        branch = "main" if one["gate"] == "protected-branch" else "feature/test"
        (repository / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
        if any(is_refused(one["gate"], step, repository) for step in one["steps"]) is not one["at_once"]:
            ended[one["id"]] = one["steps"]
    assert ended == {}


def is_refused(gate: str, step: dict[str, Any], repository: Path) -> bool:
    """As the first call of a session: read by the agent's adapter, looked at, decided."""
    body = json.loads(
        json.dumps(step)
        .replace("${REPO}", str(repository))
        .replace("${HOME_DIR}", str(Path.home()))
        .replace("${STATE}", str(default_state_dir()))
        .replace("${SESSION}", "s-1")
    )
    body = {key: value for key, value in body.items() if key in ("tool_name", "tool_input")}
    given = {"session_id": "s-1", "cwd": str(repository), "hook_event_name": "PreToolUse", "tool_use_id": "t1", **body}
    delivery = Delivery(key="k1", agent="claude-code", event="PreToolUse", at=1, cwd=str(repository))
    event = AGENTS["claude-code"].read(delivery, given)
    around = locate(str(repository))
    event.data.branch, event.data.repo = around["branch"], around["repo"]
    settings = GateSettings.of({"requirements": GATES[gate]})
    observe_event(event, settings)
    decision = Simulation(settings).apply_event(event)
    return decision is not None and decision.verdict == "deny"
