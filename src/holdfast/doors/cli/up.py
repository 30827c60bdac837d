"""`holdfast up`: says what it changes, installs the hooks, reads what is there, and shows what is missing."""

import contextlib
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
from holdfast.core.errors import CommandRefused, HoldfastError, InstallRefused
from holdfast.core.times import format_bytes, format_duration
from holdfast.doors.cli import installing, render
from holdfast.doors.cli.first_look import recent_days, show_recent_days
from holdfast.doors.cli.importing import files_to_import, import_recent
from holdfast.doors.cli.options import AtProject, Json, WithMcp
from holdfast.setup.doctor.agent_checks import short_path
from holdfast.setup.doctor.checks import missing_git
from holdfast.setup.doctor.readiness import Readiness, look_at_agents, next_commands, temporary_environment
from holdfast.setup.install import hooks
from holdfast.setup.install.locations import is_present

# For the estimate only.
IMPORTED_BYTES_PER_S = 4_000_000
HISTORY_S = 45.0
"""For earlier sessions, the newest first: what is left is read later."""
PARTS = {"mcp": "MCP server", "statusline": "status line"}
MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}


def up(
    project: AtProject = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; also read earlier sessions.")] = False,
    mcp: WithMcp = True,
    statusline: Annotated[
        bool, typer.Option("--statusline/--no-statusline", help="Also a status line, where the agent has none.")
    ] = True,
    history: Annotated[
        bool | None, typer.Option("--history/--no-history", help="Read earlier sessions. Default: ask.")
    ] = None,
    self_test: Annotated[
        bool, typer.Option("--self-test/--no-self-test", help="Run each agent's installed hook line once.")
    ] = True,
    json: Json = False,
) -> None:
    """Start Holdfast, add its hooks to the agents found here, and show your last 30 days."""
    installation = Installation("project" if project else "user", mcp=mcp, statusline=statusline)
    if not json:
        installation.show()
    if installation.changes and _is_asked(yes, json) and not typer.confirm("Go on?", default=True):
        render.out.print("Nothing was changed.")
        raise typer.Exit(1)
    pid = _start_current_daemon()
    refused = installation.install()
    found = _importable_history()
    if _wants_history(found, history, yes, json):
        _read_history(quiet=json)
        found = _importable_history()
    agents_here = look_at_agents(self_test=self_test)
    todo = next_commands(agents_here)
    agents = [{**msgspec.to_builtins(one), "ready": one.ready} for one in agents_here]
    answer = {"pid": pid, "state": str(client.state_paths().state), "agents": agents, "next": todo, "history": found}
    figures = recent_days()
    render.finish_as_json(json, {**answer, "refused": refused, "files": installation.rows(), "days": figures})
    render.out.print(f"The daemon is running (pid {pid}); its state is in {short_path(client.state_paths().state)}.")
    # A step shown with its agent is not repeated here.
    shown = {f"{one.title}: {step.text}" for one in agents_here for step in one.steps}
    for problem in refused:
        if not any(problem.startswith(text) for text in shown):
            render.say(f"✗ {render.clean_line(problem, 400)}", "red")
    show_agents(agents_here)
    if problem := missing_git():
        render.warn(problem)
    _show_next(agents_here, todo, found, figures)
    if figures:
        render.out.print()
        show_recent_days(figures)
    if refused:
        raise typer.Exit(1)


def _is_asked(yes: bool, json: bool) -> bool:
    """Scripts are not asked: they said what they want by calling this."""
    return not (yes or json) and sys.stdin.isatty() and sys.stdout.isatty()


def _wants_history(found: dict[str, Any], history: bool | None, yes: bool, json: bool) -> bool:
    if not found["files"] or history is not None:
        return bool(found["files"] and history)
    if not _is_asked(yes, json):
        return yes
    files = render.counted(found["files"], "file")
    about = f"{files}, {format_bytes(found['bytes'])}, about {format_duration(min(found['ms'], int(HISTORY_S) * 1000))}"
    return typer.confirm(f"Read your earlier sessions ({about})? The files are only read.", default=True)


def _read_history(quiet: bool) -> None:
    try:
        total, left = import_recent(HISTORY_S, quiet=quiet)
    except CommandRefused as refusal:  # An agent may not do this.
        render.err.print(render.clean_line(refusal.message, 300))
        return
    if not quiet:
        files = render.counted(total.files, "file")
        render.out.print(f"Read {files} of earlier sessions: {render.counted(total.imported, 'event')}.")
        if left:
            render.out.print(f"{render.counted(left, 'older file')} not read yet. Go on: holdfast data import")


class Installation:
    """The files that `up` changes."""

    def __init__(self, level: str, *, mcp: bool, statusline: bool) -> None:
        self._level = level
        self._root = Path(client.current_project())
        present = [agent for agent in AGENTS.values() if is_present(agent)]
        self._agents = installing.with_tools(present, level, mcp, statusline)
        self._plans: dict[Path, list[hooks.Plan]] = {}
        for agent in self._agents:
            # What is refused is reported when it is installed.
            with contextlib.suppress(InstallRefused):
                plan = hooks.plan_install(agent, level, self._root)
                if plan.changes:
                    self._plans.setdefault(plan.path, []).append(plan)

    @property
    def changes(self) -> bool:
        return bool(self._plans)

    def rows(self) -> list[dict[str, str]]:
        """One per file: what is put into it, and whether it is new."""
        return [
            {"path": str(path), "what": ", ".join(PARTS.get(plan.layout, "hooks") for plan in plans),
             "how": "new file" if plans[0].created else "entries added"}
            for path, plans in self._plans.items()
        ]  # fmt: skip

    def show(self) -> None:
        if not self._plans:
            return
        render.out.print("Holdfast changes these files; `holdfast uninstall` undoes that:")
        for row in self.rows():
            path = short_path(Path(row["path"]))
            render.out.print(f"  {render.clean_line(path, 200):<34}  {row['what']} ({row['how']})")
        state = short_path(client.state_paths().state)
        render.out.print(f"  {render.clean_line(state, 200):<34}  the log and what is made from it")
        render.hint("What sessions add later, and where: holdfast files")

    def install(self) -> list[str]:
        """Return the refusals. One broken file stops no other agent."""
        refused = []
        for agent in self._agents:
            try:
                hooks.install_hooks(agent, self._level, self._root)
            except InstallRefused as refusal:
                refused.append(f"{agent.title}: {refusal.message}")
        return list(dict.fromkeys(refused))


def _start_current_daemon() -> int:
    """Replace an older running daemon, which may not know these commands."""
    pid = client.start_daemon()
    running = client.ask_daemon("status").get("version", "")
    if running == __version__:
        return pid
    render.err.print(f"Replacing the running daemon {running} by {__version__}.")
    client.stop_daemon(f"replaced by {__version__}")
    return client.start_daemon()


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


def _show_next(agents_here: list[Readiness], todo: list[str], history: dict[str, Any], figures: dict[str, Any]) -> None:
    if not agents_here:
        titles = ", ".join(agent.title for agent in AGENTS.values() if agent is not PLAIN)
        render.out.print(f"No coding agent was found (known: {titles}). When you have one: holdfast up")
        todo = ["holdfast demo          (a recorded day, in a throw-away folder)", *todo]
    if reason := temporary_environment():
        render.warn(f"{reason}: the hooks stop working when that is emptied.")
    if history["files"]:
        files = render.counted(history["files"], "file")
        about = f"{files}, {format_bytes(history['bytes'])}, about {format_duration(history['ms'])}"
        todo = [*todo, f"holdfast data import   (earlier sessions: {about})"]
    todo = todo if figures else [*todo, "holdfast dashboard     (every session, live)"]
    if todo:
        render.out.print("Next:")
    for number, command in enumerate(todo, start=1):
        render.out.print(f"  {number}. {command}")
    render.hint("To take everything out again: holdfast uninstall")


def _importable_history() -> dict[str, Any]:
    """What `holdfast data import` would read, and the estimated time on a small machine."""
    try:
        sizes = [file.stat().st_size for file in files_to_import()]
    except (OSError, HoldfastError):
        sizes = []
    total = sum(sizes)
    return {"files": len(sizes), "bytes": total, "ms": max(1000, total * 1000 // IMPORTED_BYTES_PER_S)}
