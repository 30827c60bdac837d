"""`holdfast up`: everything a first hour needs, in one command."""

from pathlib import Path

import typer

from holdfast import install as hooks
from holdfast.agents import AGENTS
from holdfast.cli import client, installing, render
from holdfast.cli.options import AtProject


def register(app: typer.Typer) -> None:
    app.command()(up)


def up(project: AtProject = False) -> None:
    """Start the daemon, put the hooks into the agents found here, and say what to do next."""
    pid = client.start_daemon()
    render.out.print(f"The daemon is running (pid {pid}); its state is in {client.paths().state}.")
    found = [agent for agent in AGENTS.values() if installing.present(agent)]
    level = "project" if project else "user"
    for agent in found:
        plan = hooks.install(agent, level, Path(client.project()))
        render.out.print(f"{agent.title}: hooks {'put into' if plan.changes else 'are in'} {plan.path}.")
    if not found:
        known = ", ".join(agent.title for agent in AGENTS.values())
        render.out.print(f"No coding agent was found (known: {known}). When you have one: holdfast up")
        return
    render.out.print("Next: use your agent as always. See it live with: holdfast events tail")
    render.out.print("To take everything out again: holdfast uninstall")
