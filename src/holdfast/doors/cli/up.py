"""`holdfast up`: starts Holdfast, installs the hooks, and shows what is missing."""

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.cells import cell_len
from rich.text import Text

from holdfast import __version__, client
from holdfast.agents import AGENTS
from holdfast.agents.custom import AGENT as PLAIN
from holdfast.core.errors import HoldfastError, InstallRefused
from holdfast.core.times import format_bytes, format_duration
from holdfast.doors.cli import installing, render
from holdfast.doors.cli.options import AtProject, Json
from holdfast.setup.doctor.checks import missing_git
from holdfast.setup.doctor.readiness import Readiness, look_at_agents, next_commands, temporary_environment
from holdfast.setup.install import hooks
from holdfast.setup.install.locations import is_present

# For the estimate only.
IMPORTED_BYTES_PER_S = 4_000_000
MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}


def up(
    project: AtProject = False,
    self_test: Annotated[
        bool, typer.Option("--self-test/--no-self-test", help="Run each agent's installed hook line once.")
    ] = True,
    json: Json = False,
) -> None:
    """Start the daemon, add the hooks to the agents found here, and report what is missing."""
    pid = _start_current_daemon()
    refused = _install_hooks("project" if project else "user")
    agents_here = look_at_agents(self_test=self_test)
    history = _importable_history()
    todo = next_commands(agents_here)
    agents = [{**msgspec.to_builtins(one), "ready": one.ready} for one in agents_here]
    answer = {"pid": pid, "state": str(client.state_paths().state), "agents": agents, "next": todo, "history": history}
    render.finish_as_json(json, {**answer, "refused": refused})
    render.out.print(f"The daemon is running (pid {pid}); its state is in {client.state_paths().state}.")
    # A step shown with its agent is not repeated here.
    shown = {f"{one.title}: {step.text}" for one in agents_here for step in one.steps}
    for problem in refused:
        if not any(problem.startswith(text) for text in shown):
            render.say(f"✗ {render.clean_line(problem, 400)}", "red")
    show_agents(agents_here)
    if problem := missing_git():
        render.warn(problem)
    _show_next(agents_here, todo, history)
    if refused:
        raise typer.Exit(1)


def _start_current_daemon() -> int:
    """Replace an older running daemon, which may not know these commands."""
    pid = client.start_daemon()
    running = client.ask_daemon("status").get("version", "")
    if running == __version__:
        return pid
    render.err.print(f"Replacing the running daemon {running} by {__version__}.")
    client.stop_daemon(f"replaced by {__version__}")
    return client.start_daemon()


def _install_hooks(level: str) -> list[str]:
    """Add hooks wherever possible; return the refusals. One broken file stops no other agent."""
    refused = []
    present = [agent for agent in AGENTS.values() if is_present(agent)]
    for agent in installing.with_tools(present, level):
        try:
            hooks.install_hooks(agent, level, Path(client.current_project()))
        except InstallRefused as refusal:
            refused.append(f"{agent.title}: {refusal.message}")
    return list(dict.fromkeys(refused))


def show_agents(agents_here: list[Readiness]) -> None:
    for one in agents_here:
        render.say(one.title, "bold")
        for step in one.steps:
            mark, style = MARKS[step.done]
            line = Text(f"  {mark} ", style=style) + Text(f"{step.name:<10}", style="dim")
            line.append(render.clean_line(step.text, 300))
            if step.next and not step.done:
                line = with_next(line, f"→ {render.clean_line(step.next, 200)}")
            render.out.print(line)


def with_next(line: Text, command: str) -> Text:
    """Next to it if the terminal has room, else below: a command broken in two is hard to read."""
    fits = not render.out.is_terminal or line.cell_len + 2 + cell_len(command) <= render.out.width
    return line.append("  " if fits else "\n" + " " * 14).append(command, style="cyan")


def _show_next(agents_here: list[Readiness], todo: list[str], history: dict[str, Any]) -> None:
    if not agents_here:
        titles = ", ".join(agent.title for agent in AGENTS.values() if agent is not PLAIN)
        render.out.print(f"No coding agent was found (known: {titles}). When you have one: holdfast up")
        todo = ["holdfast demo          (a recorded day, in a throw-away folder)", *todo]
    if reason := temporary_environment():
        render.warn(f"{reason}: the hooks stop working when that is emptied.")
    if history["files"]:
        files = render.counted(history["files"], "file")
        about = f"{files}, {format_bytes(history['bytes'])}, about {format_duration(history['ms'])}"
        todo = [*todo, f"holdfast data import        (earlier sessions: {about})"]
    render.out.print("Next:")
    for number, command in enumerate([*todo, "holdfast dashboard     (every session, live)"], start=1):
        render.out.print(f"  {number}. {command}")
    render.hint("To take everything out again: holdfast uninstall")
    # Only at an interactive terminal.
    if history["files"] and sys.stdin.isatty() and sys.stdout.isatty():
        _offer_import()


def _offer_import() -> None:
    from holdfast.doors.cli.importing import import_history

    if typer.confirm("Import the earlier sessions now?", default=False):
        import_history()


def _importable_history() -> dict[str, Any]:
    """What `holdfast data import` would read, and the estimated time on a small machine."""
    from holdfast.doors.cli.importing import files_to_import

    try:
        sizes = [file.stat().st_size for file in files_to_import()]
    except (OSError, HoldfastError):
        sizes = []
    total = sum(sizes)
    return {"files": len(sizes), "bytes": total, "ms": max(1000, total * 1000 // IMPORTED_BYTES_PER_S)}
