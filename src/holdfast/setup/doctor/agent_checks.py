"""Problems between an agent and Holdfast's hooks."""

import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from holdfast import client
from holdfast.agents import AGENTS
from holdfast.core.agent import Agent
from holdfast.core.errors import InstallRefused
from holdfast.setup.doctor.finding import Finding
from holdfast.setup.install import hooks
from holdfast.setup.install.locations import install_levels, is_present, settings_file
from holdfast.setup.install.mcp_servers import tools_of

VERSION = re.compile(r"\b(\d+)\.(\d+)\.(\d+)\b")
# Plugins are named `name@marketplace`.
PLUGIN = "holdfast@"


def check_agents() -> Iterator[Finding]:
    project = Path(client.current_project())
    for agent in AGENTS.values():
        try:
            installed_at = [level for level in install_levels(agent) if hooks.installed_hooks(agent, level, project)]
        except InstallRefused as refusal:
            yield Finding(refusal.problem, refusal.fix or "repair that file")
            continue
        for level in installed_at:
            yield from _check_hooks(agent, level, project)
        yield from _check_double_hooks(agent, project)
        yield from _check_mcp_server(agent, project)
        if installed_at:
            yield from _too_old(agent)
        elif is_present(agent) and not (agent.name == "claude-code" and plugin_is_on(project)):
            yield Finding(
                f"{agent.title} is installed, but Holdfast's hooks are not", f"holdfast install --agent {agent.name}"
            )


def _check_hooks(agent: Agent, level: str, project: Path) -> Iterator[Finding]:
    yield from _incomplete(agent, level, project)
    problem, fix = trust_problem(agent, level, project)
    if problem:
        yield Finding(problem, fix)


def _incomplete(agent: Agent, level: str, project: Path, what: str = "") -> Iterator[Finding]:
    for problem in hooks.verify_installation(agent, level, project):
        again = partial(hooks.install_hooks, agent, level, project)
        yield Finding(f"{what}{problem}", f"holdfast install --agent {agent.name} --{level}", again)


def trust_problem(agent: Agent, level: str, project: Path) -> tuple[str, str]:
    """Why the agent does not run hooks from its settings, and what changes that."""
    if agent.setup is None or agent.setup.hold_up is None:
        return "", ""
    problem = agent.setup.hold_up(settings_file(agent, level, project), level, project)
    return problem, agent.setup.review if problem else ""


def _check_mcp_server(agent: Agent, project: Path) -> Iterator[Finding]:
    """Our registered MCP server: the agent cannot start a program that moved."""
    tools = tools_of(agent)
    if tools is None:
        return
    for level in install_levels(tools):
        with contextlib.suppress(InstallRefused):
            if hooks.installed_hooks(tools, level, project):
                yield from _incomplete(tools, level, project, "MCP: ")


def _check_double_hooks(agent: Agent, project: Path) -> Iterator[Finding]:
    # One finding is enough: the remedy is the same for every event.
    for double in hooks.duplicate_hooks(agent, project)[:1]:
        where = " and ".join(str(path) for path in double.paths)
        fix = f"holdfast uninstall --agent {agent.name} --project"
        yield Finding(f"{agent.title} runs our hooks twice: {where} (each event is kept once)", fix)
    if agent.name == "claude-code" and plugin_is_on(project):
        there = [level for level in install_levels(agent) if hooks.installed_hooks(agent, level, project)]
        if there:
            fix = f"holdfast uninstall --agent claude-code --{there[0]}"
            yield Finding("Claude Code runs our hooks twice: by its settings and by the plugin", fix)


def plugin_is_on(project: Path) -> bool:
    files = [Path.home() / ".claude/settings.json", project / ".claude/settings.json"]
    tables = [_inner_table(_read_json(file), "enabledPlugins") for file in files]
    return any(on for table in tables for name, on in table.items() if name.startswith(PLUGIN))


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def short_path(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _inner_table(value: dict[str, Any], name: str) -> dict[str, Any]:
    table = value.get(name)
    return table if isinstance(table, dict) else {}


def _too_old(agent: Agent) -> Iterator[Finding]:
    # Imported here, because `readiness` imports this module.
    from holdfast.setup.doctor.readiness import version_of

    if not agent.setup or not agent.setup.oldest or not (program := shutil.which(agent.program)):
        return
    version = version_of(program)
    # If the version is unknown, nothing is reported.
    if version and version < agent.setup.oldest:
        needed, there = (".".join(map(str, v)) for v in (agent.setup.oldest, version))
        yield Finding(f"{agent.title} {there} is older than {needed}, the first version with known hooks", "update it")
