"""What can be wrong between an agent and our hooks: not in, dead, in twice, not trusted, an agent too old for them."""

import contextlib
import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from holdfast import client
from holdfast.agents import AGENTS
from holdfast.core.agent import Agent
from holdfast.core.errors import InstallRefused
from holdfast.doctor.finding import Finding
from holdfast.install import hooks
from holdfast.install.locations import is_present, levels, settings_file
from holdfast.install.mcp_servers import tools_of

VERSION = re.compile(r"\b(\d+)\.(\d+)\.(\d+)\b")
PLUGIN = "holdfast@"


def check() -> Iterator[Finding]:
    project = Path(client.project())
    for agent in AGENTS.values():
        try:
            installed_at = [level for level in levels(agent) if hooks.installed(agent, level, project)]
        except InstallRefused as refusal:
            yield Finding(refusal.message, refusal.fix or "mend that file")
            continue
        for level in installed_at:
            yield from _at(agent, level, project)
        yield from _doubles(agent, project)
        yield from _tools(agent, project)
        if installed_at:
            yield from _too_old(agent)
        elif is_present(agent) and not (agent.name == "claude-code" and plugin_is_on(project)):
            yield Finding(f"{agent.title} is here, but has no hooks of ours", f"holdfast install --agent {agent.name}")


def _at(agent: Agent, level: str, project: Path) -> Iterator[Finding]:
    for problem in hooks.verify(agent, level, project):
        again = partial(hooks.install, agent, level, project)
        yield Finding(problem, f"holdfast install --agent {agent.name} --{level}", again)
    problem, mend = trust_problem(agent, level, project)
    if problem:
        yield Finding(problem, mend)


def trust_problem(agent: Agent, level: str, project: Path) -> tuple[str, str]:
    """Why the agent does not run hooks that are in its settings, and what changes that."""
    if agent.name != "codex":
        return "", ""
    problem = _untrusted(settings_file(agent, level, project), level, project)
    return problem, "start codex, type /hooks, and trust Holdfast's" if problem else ""


def _tools(agent: Agent, project: Path) -> Iterator[Finding]:
    """Our MCP server, where it is named: a program that moved is one the agent cannot start."""
    tools = tools_of(agent)
    if tools is None:
        return
    for level in levels(tools):
        with contextlib.suppress(InstallRefused):
            for problem in hooks.verify(tools, level, project) if hooks.installed(tools, level, project) else ():
                again = partial(hooks.install, tools, level, project)
                yield Finding(f"MCP: {problem}", f"holdfast install --agent {agent.name} --{level}", again)


def _doubles(agent: Agent, project: Path) -> Iterator[Finding]:
    for double in hooks.doubles(agent, project)[:1]:
        where = " and ".join(str(path) for path in double.paths)
        mend = f"holdfast uninstall --agent {agent.name} --project"
        yield Finding(f"{agent.title} runs our hooks twice: {where} (each event is kept once)", mend)
    if agent.name == "claude-code" and plugin_is_on(project):
        there = [level for level in levels(agent) if hooks.installed(agent, level, project)]
        if there:
            mend = f"holdfast uninstall --agent claude-code --{there[0]}"
            yield Finding("Claude Code runs our hooks twice: by its settings and by the plugin", mend)


def plugin_is_on(project: Path) -> bool:
    files = [Path.home() / ".claude/settings.json", project / ".claude/settings.json"]
    tables = [_table(_json(file), "enabledPlugins") for file in files]
    return any(on for table in tables for name, on in table.items() if name.startswith(PLUGIN))


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _untrusted(file: Path, level: str, project: Path) -> str:
    """Codex remembers in its own settings which hooks its user has reviewed, and runs no others."""
    try:
        told = tomllib.loads((Path.home() / ".codex" / "config.toml").read_text())
    except (OSError, ValueError):
        told = {}
    trusted = _table(_table(told, "projects"), str(project)).get("trust_level") == "trusted"
    if level == "project" and not trusted:
        return f"Codex does not trust {project}, so it runs no hooks of {file}"
    reviewed = _table(_table(told, "hooks"), "state")
    if not any(str(file) in name and _table(reviewed, name).get("trusted_hash") for name in reviewed):
        return f"Codex skips the hooks in {file} until they are reviewed"
    return ""


def _table(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _too_old(agent: Agent) -> Iterator[Finding]:
    from holdfast.doctor.readiness import version_of

    if not agent.setup or not agent.setup.oldest or not (program := shutil.which(agent.setup.program)):
        return
    version = version_of(program)
    if version and version < agent.setup.oldest:
        needed, there = (".".join(map(str, v)) for v in (agent.setup.oldest, version))
        yield Finding(f"{agent.title} {there} is older than {needed}, the first whose hooks we know", "update it")
