"""`holdfast gate hooks`: git's own hooks ask Holdfast before agents commit and push."""

from pathlib import Path

import typer

from holdfast import client
from holdfast.core.errors import CommandRefused
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json
from holdfast.setup.install import git_hooks

app = typer.Typer(help="Let git's own hooks hold what agents commit and push here.")
OFFER = "What no command shows (scripts, aliases, MCP tools) is held by git's own hooks: holdfast gate hooks on"


def offer_git_hooks() -> None:
    """Only offered: each commit then takes some milliseconds more."""
    try:
        if not all(git_hooks.is_ours(git_hooks.hooks_folder(Path.cwd()) / name) for name in git_hooks.NAMES):
            render.hint(OFFER)
    except CommandRefused:
        pass  # No repository, no hooks.


def moved_hooks() -> list[str]:
    """Another tool (husky) may have moved the folder since they were put in."""
    state = client.state_paths().state
    if not git_hooks.listed_folders(state):
        return []
    try:
        missing = git_hooks.missing_in(Path.cwd(), state)
    except CommandRefused:
        return []
    return (
        [f"git no longer asks Holdfast here ({', '.join(missing)} is gone): holdfast gate hooks on"] if missing else []
    )


@app.callback(invoke_without_command=True)
def hooks_status(context: typer.Context) -> None:
    """Show whether git's own hooks ask Holdfast in this repository."""
    if context.invoked_subcommand is not None:
        return
    folder = git_hooks.hooks_folder(Path.cwd())
    present = [name for name in git_hooks.NAMES if git_hooks.is_ours(folder / name)]
    if len(present) == len(git_hooks.NAMES):
        render.out.print(f"git asks Holdfast before agents commit or push: {folder}")
    else:
        render.out.print(f"git does not ask Holdfast here ({folder}).")
        render.hint(OFFER)


@app.command("on")
def hooks_on(json: Json = False) -> None:
    """Hold agents' commits and pushes in this repository by git's own hooks, whatever made them: a script, an alias, an
    editor, an MCP tool, `--no-verify`. A guard against accidents and haste, not a boundary."""
    client.authorise("git-hooks")
    written = git_hooks.put_in(Path.cwd(), client.state_paths().prepare().state)
    render.finish_as_json(json, {"written": [str(path) for path in written]})
    for path in written:
        kept = path.with_name(path.name + git_hooks.KEPT)
        render.out.print(f"{path}" + (f" (calls {kept.name} afterwards)" if kept.exists() else ""))
    render.hint("Out again: holdfast gate hooks off")


@app.command("off")
def hooks_off(json: Json = False) -> None:
    """Take the hooks out of this repository; what was there before is put back."""
    client.authorise("git-hooks")
    removed = git_hooks.take_out(git_hooks.hooks_folder(Path.cwd()), client.state_paths().state)
    render.finish_as_json(json, {"removed": [str(path) for path in removed]})
    for path in removed:
        render.out.print(f"removed {path}")
    if not removed:
        render.out.print("No hook of Holdfast is here.")
