"""`holdfast up`: everything a first hour needs, in one command."""

from pathlib import Path

import typer

from holdfast import client
from holdfast.agents import AGENTS
from holdfast.cli import installing, render
from holdfast.cli.options import AtProject
from holdfast.install import hooks
from holdfast.install.locations import is_present


def register(app: typer.Typer) -> None:
    app.command()(up)


def up(project: AtProject = False) -> None:
    """Start the daemon, put the hooks into the agents found here, and say what to do next."""
    pid = client.start_daemon()
    render.out.print(f"The daemon is running (pid {pid}); its state is in {client.paths().state}.")
    found = [agent for agent in AGENTS.values() if is_present(agent)]
    level = "project" if project else "user"
    for agent in installing.with_tools(found, level):
        plan = hooks.install(agent, level, Path(client.project()))
        what = "MCP server" if plan.layout == "mcp" else "hooks"
        render.out.print(
            f"{agent.title}: {what} {'put into' if plan.changes else 'are in' if what == 'hooks' else 'is in'} {plan.path}."
        )
    if not found:
        known = ", ".join(agent.title for agent in AGENTS.values())
        render.out.print(f"No coding agent was found (known: {known}). When you have one: holdfast up")
        return
    render.out.print("Next: use your agent as always. See it live with: holdfast events tail")
    render.out.print("To take everything out again: holdfast uninstall")
