"""`holdfast undo`, `holdfast rescue` and `holdfast diff`: get work back."""

import os
import sys
from typing import Annotated, Any

import typer

from holdfast import client
from holdfast.core.errors import CommandRefused
from holdfast.core.text import strip_controls
from holdfast.doors.cli import answered, render
from holdfast.doors.cli.options import Json

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
Folder = Annotated[str, typer.Option("--dir", help="The worktree, if you are not in it, or if it is gone.")]
ACTS = {"restore": "restored", "create": "brought back", "delete": "removed", "mode": "mode restored"}
MOST_ROWS = 20


def register(root: typer.Typer) -> None:
    root.command()(undo)
    root.command()(rescue)
    root.command()(diff)


def undo(
    paths: Annotated[list[str] | None, typer.Argument(help="Only these files or folders.")] = None,
    call: Annotated[str, typer.Option("--call", help="A tool call: its id or an event's number.")] = "",
    turn: Annotated[bool, typer.Option("--turn", help="The latest turn.")] = False,
    session: Annotated[str, typer.Option("--session", help="Everything that a session changed.")] = "",
    to: Annotated[str, typer.Option("--to", help="Back to a moment: 10:45, 2h, or an event's number.")] = "",
    show: Annotated[bool, typer.Option("--list", help="List what changed files here, and stop.")] = False,
    folder: Folder = "",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Take back what the last call changed in files, also by a shell command. Shows the difference first and asks.

    Nothing is lost by it: `holdfast undo` again takes the undo back.
    """
    args: dict[str, Any] = {"call": call, "turn": turn, "session": _whole_id(session), "to": to, **_place(folder)}
    args["paths"] = [os.path.abspath(path) for path in paths or ()]
    if show:
        _show_steps(answered.view(json, "workspace.steps", **_place(folder)))
        return
    _plan_and_do(json, yes, "workspace.plan", "workspace.undo", args)


def rescue(
    what: Annotated[str, typer.Argument(help="A file, folder or id from the list; without it, the list.")] = "",
    to: Annotated[str, typer.Option("--to", help="Write it here instead, relative to the worktree.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Also versions that a later edit replaced.")] = False,
    folder: Folder = "",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """List content that existed here and is nowhere now, or bring it back."""
    if what:
        args = {"what": what, "path": os.path.abspath(what), "to": to, **_place(folder)}
        _plan_and_do(json, yes, "workspace.rescue", "workspace.rescue", args)
        return
    lost = answered.view(json, "workspace.lost", all=every, **_place(folder))
    for one in lost:
        size = render.counted(one["lines"], "line") if one["lines"] else f"{one['size']:,} bytes"
        how = "removed" if one["gone"] else "replaced"
        path = _on_a_line(one["path"])
        render.say(f"{one['short']}  {render.day_and_clock(one['at'])}  {size:>12}  {how} by {_who(one['by'])}  {path}")
    if lost:
        render.hint("Bring one back with: holdfast rescue FILE or ID")
    else:
        render.out.print("Nothing is lost here that Holdfast knows of.")


def diff(
    first: Annotated[str, typer.Argument(help="A time (10:45, 2h) or an event's number.")],
    second: Annotated[str, typer.Argument(help="Another one; without it: now.")] = "",
    folder: Folder = "",
    json: Json = False,
) -> None:
    """Show how the files here changed between two moments."""
    answer = answered.view(json, "workspace.diff", first=first, second=second, **_place(folder))
    for file in answer["files"]:
        _print_diff(file["diff"])
    if not answer["files"]:
        render.out.print("Nothing changed that Holdfast knows of.")


def _plan_and_do(json: bool, yes: bool, view: str, command: str, args: dict[str, Any]) -> None:
    plan = client.ask_view(view, **args)
    doable = [one for one in plan["files"] if one["act"] != "missing"]
    if not yes:
        if json:
            render.finish_as_json(json, plan)
        _show_plan(plan)
        if not doable:
            raise CommandRefused("there is nothing to restore")
        if not sys.stdin.isatty():
            raise CommandRefused("nothing was changed, because nobody can be asked here", fix="Add --yes to do it.")
        typer.confirm("Do this?", abort=True)
    answer = answered.command(json, command, expect=plan["id"], **args)
    for one in doable[:MOST_ROWS]:
        render.say(f"{ACTS[one['act']]}: {_on_a_line(one['path'])}")
    _say_more(len(doable))
    _warn_of_missing(answer)
    render.hint("Take this back with: holdfast undo")


def _show_plan(plan: dict[str, Any]) -> None:
    for file in plan["files"][:MOST_ROWS]:
        _print_diff(file["diff"])
    render.say(strip_controls(f"Undo {plan['what']} in {plan['root']}:"))
    for file in plan["files"][:MOST_ROWS]:
        later = f", changed again by {', '.join(map(_who, file['later']))}" if file["later"] else ""
        later += (" (stays)" if file["merged"] else " (taken back too: it cannot be told apart)") if later else ""
        counts = f" (+{file['added']} -{file['removed']})" if file["added"] or file["removed"] else ""
        render.say(f"  {file['act']:<8} {_on_a_line(file['path'])}{counts}{later}")
    _say_more(len(plan["files"]))
    _warn_of_missing(plan)


def _on_a_line(path: str) -> str:
    return strip_controls(path.replace("\n", "\\n"))


def _say_more(files: int) -> None:
    if files > MOST_ROWS:
        render.out.print(f"  … and {render.counted(files - MOST_ROWS, 'more file')}")


def _warn_of_missing(plan: dict[str, Any]) -> None:
    if missing := [one["path"] for one in plan["files"] if one["act"] == "missing"]:
        render.warn(f"The earlier content of {', '.join(missing[:10])} is not kept; it stays as it is.")


def _print_diff(text: str) -> None:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in text.splitlines():
        render.say(strip_controls(line), colours.get(line[:1], ""))


def _show_steps(steps: list[dict[str, Any]]) -> None:
    for step in steps:
        more = f" and {len(step['files']) - 3} more" if len(step["files"]) > 3 else ""
        files = ", ".join(map(_on_a_line, step["files"][:3])) + more
        who = "undo" if step["by"] == "undo" else f"{step['tool']} {_who(step['session'])}".strip()
        lost = f" ({render.counted(step['lost'], 'line')} lost)" if step["lost"] else ""
        line = f"{step['seq']:>6}  {render.day_and_clock(step['at'])}  {who}: {files}{lost}"
        render.say(line)
    if not steps:
        render.out.print("Nothing changed here that Holdfast knows of.")


def _who(session: str) -> str:
    from holdfast.core.ids import session_alias

    return "a person" if not session else "an unknown call" if session == "?" else session_alias(session)


def _whole_id(session: str) -> str:
    return str(client.ask_view("sessions.find", id=session)["id"]) if session else ""


def _place(folder: str) -> dict[str, str]:
    return {"dir": os.path.abspath(folder or os.getcwd())}
