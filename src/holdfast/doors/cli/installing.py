"""`install` and `uninstall`: adds hooks to the agents' settings and removes them exactly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.syntax import Syntax

from holdfast import client
from holdfast.agents import AGENTS
from holdfast.core.agent import Agent
from holdfast.core.errors import CommandRefused, InstallRefused
from holdfast.doors.cli import render
from holdfast.doors.cli.options import AgentName, AtProject, AtUser, DryRun, Json, WithMcp, WithStatusline
from holdfast.paths import default_state_dir
from holdfast.setup.install import git_hooks, hooks, permission_rules
from holdfast.setup.install.locations import install_levels, is_present, partial_of
from holdfast.setup.install.mcp_servers import StatusLine, status_line_of, tools_of
from holdfast.stores.footprint import Footprint, TakenOut


def register(app: typer.Typer) -> None:
    app.command()(install)
    app.command()(uninstall)


def install(
    agent: AgentName = "", project: AtProject = False, user: AtUser = False, mcp: WithMcp = True,
    statusline: WithStatusline = False, dry_run: DryRun = False, json: Json = False,
) -> None:  # fmt: skip
    """Add hooks to the agents' settings. Everything else in the files stays as it is."""
    level = _chosen_level(project, user)
    agents, root = with_tools(chosen_agents(agent), level, mcp, statusline), Path(client.current_project())
    plans = [hooks.plan_install(one, level, root) for one in agents]
    if not dry_run:  # Planned again: hooks and MCP server may go into one file.
        plans = [hooks.install_hooks(one, level, root) for one in agents]
    render.finish_as_json(json, [_plan_fields(plan, dry_run) for plan in plans])
    for plan in plans:
        _show_plan(plan, dry_run, put_in=True)


def uninstall(
    agent: AgentName = "", project: AtProject = False, user: AtUser = False, dry_run: DryRun = False, json: Json = False
) -> None:
    """Remove the hooks. Each file is restored exactly."""
    if not dry_run:
        client.authorise("uninstall")
    if not (project or dry_run):
        permission_rules.remove_all(default_state_dir())
    levels = [_chosen_level(project, user)] if project or user else ["project", "user"]
    taken_out = [_taken_out(one, level, dry_run) for one, level in _removal_targets(agent, levels)]
    plans = [plan for plan in taken_out if plan.changes]
    whole = not (agent or project or user or dry_run)
    files = Footprint(default_state_dir()).take_out() if whole else TakenOut()
    for folder in git_hooks.listed_folders(default_state_dir()) if whole else ():
        git_hooks.take_out(Path(folder), default_state_dir())
    render.finish_as_json(json, [_plan_fields(plan, dry_run) for plan in plans])
    for plan in plans:
        _show_plan(plan, dry_run, put_in=False)
    if not plans:
        render.out.print("Holdfast's hooks aren't installed.")
    _show_files(files)
    if whole:
        _show_what_stays()


def _show_what_stays() -> None:
    if client.running_pid() > 0:
        render.hint("The daemon still runs, without work: holdfast daemon stop")
    render.hint("What was recorded stays until you erase it: holdfast data erase --everything")


def _removal_targets(agent: str, levels: list[str]) -> Iterator[tuple[Agent, str]]:
    """In reverse order of the installation, so that each finds its file as it left it."""
    named = chosen_agents(agent) if agent else list(AGENTS.values())
    for level in levels:
        for one in reversed(with_tools(named, level)):
            if level in install_levels(one):
                yield one, level


def _show_files(files: TakenOut) -> None:
    """Files written outside the state folder; the record itself stays until `holdfast data erase --everything`."""
    if files.removed:
        render.out.print(
            f"Taken out: {render.counted(len(files.removed), 'file or entry', 'files and entries')} that Holdfast wrote."
        )
    for path in files.restored:
        render.out.print(f"{render.clean_line(path, 200)}: as it was before Holdfast.")
    for path in files.left_behind:
        render.out.print(f"{render.clean_line(path, 200)}: left, because it was changed since Holdfast wrote it.")


def _taken_out(agent: Agent, level: str, dry_run: bool) -> hooks.Plan:
    plan = hooks.plan_removal(agent, level, Path(client.current_project()))
    # A killed install changed nothing, but left its partial file in the project.
    if not dry_run and (plan.changes or partial_of(plan.path).exists()):
        hooks.apply_plan(plan)
    return plan


def chosen_agents(agent: str) -> list[Agent]:
    if agent and agent not in AGENTS:
        raise CommandRefused(f"there is no agent {agent!r}", fix=f"Known: {', '.join(AGENTS)}.")
    if agent:
        return [AGENTS[agent]]
    present = [a for a in AGENTS.values() if is_present(a)]
    if not present:
        raise CommandRefused("no coding agent was found here", fix=f"Name one: --agent {next(iter(AGENTS))}")
    return present


def with_tools(agents: list[Agent], level: str, mcp: bool = True, statusline: bool = True) -> list[Agent]:
    """Each agent, with its file of MCP servers at this level, and its status line."""
    variants: list[Agent] = []
    for agent in agents:
        others = (tools_of(agent) if mcp else None, status_line_of(agent) if statusline else None)
        variants += [agent, *(one for one in others if one and level in install_levels(one))]
    return variants


def where_installed() -> list[dict[str, Any]]:
    """Where our hooks are now, seen from this folder."""
    rows = []
    for agent in AGENTS.values():
        for level in install_levels(agent):
            try:
                entries = hooks.installed_hooks(agent, level, Path(client.current_project()))
            except InstallRefused:
                continue
            if entries:
                rows.append({"agent": agent.name, "level": level, "path": str(entries[0].path), "hooks": len(entries)})
    return list({row["path"]: row for row in rows}.values())


def _chosen_level(project: bool, user: bool) -> str:
    if project and user:
        raise CommandRefused("--project and --user exclude each other")
    return "project" if project else "user"


def _show_plan(plan: hooks.Plan, dry_run: bool, *, put_in: bool) -> None:
    if dry_run:
        render.out.print(
            Syntax(plan.diff, "diff", background_color="default") if plan.changes else f"{plan.path}: no change"
        )
    elif plan.layout == "mcp":
        how = "is in" if not plan.changes else "put into" if put_in else "taken out of"
        render.out.print(f"{plan.agent}: our MCP server {how} {plan.path}.")
    elif plan.layout == "statusline":
        _show_status_line(plan, put_in)
    elif not plan.changes:
        render.out.print(f"{plan.agent}: the hooks are in {plan.path} already.")
    elif put_in:
        render.out.print(f"{plan.agent}: hooks put into {plan.path}. Sessions that begin now are on record.")
        if (setup := AGENTS[plan.agent].setup) and setup.afterwards:
            render.hint(f"  {setup.afterwards}")
    else:
        render.out.print(f"{plan.agent}: hooks taken out of {plan.path}.")


def _show_status_line(plan: hooks.Plan, put_in: bool) -> None:
    """An existing one is somebody's choice."""
    if plan.changes:
        render.out.print(f"{plan.agent}: our status line {'put into' if put_in else 'taken out of'} {plan.path}.")
    elif put_in:
        setup = AGENTS[plan.agent].setup
        ours = setup and StatusLine(setup.status_line).find_entries((plan.before or b"").decode("utf-8", "replace"))
        how = "our status line is in" if ours else "another status line was left alone in"
        render.out.print(f"{plan.agent}: {how} {plan.path}.")


def _plan_fields(plan: hooks.Plan, dry_run: bool) -> dict[str, Any]:
    return {
        "agent": plan.agent, "level": plan.level, "path": str(plan.path), "changed": plan.changes,
        "written": not dry_run, "diff": plan.diff,
    }  # fmt: skip
