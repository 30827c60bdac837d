"""`holdfast history`: searches everything that happened."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from holdfast import client
from holdfast.core.ids import session_alias
from holdfast.core.times import now_ms, parse_moment
from holdfast.doors.cli import answered, render
from holdfast.doors.cli.blame import blame
from holdfast.doors.cli.event import event_app
from holdfast.doors.cli.options import Json, OfAgent, OfProject, OfThisProject

BEHIND = 200
"""Unindexed events before a notice is shown: the last few are always a moment late."""


def register(app: typer.Typer) -> None:
    app.command()(history)
    app.command()(blame)
    app.add_typer(event_app, name="event")


def history(
    query: Annotated[list[str] | None, typer.Argument(help='Words, a name, a path; "in quotes" one phrase.')] = None,
    project: OfProject = "",
    here: OfThisProject = False,
    agent: OfAgent = "",
    session: Annotated[str, typer.Option("--session", help="Only of this session: its id, or how it begins.")] = "",
    tool: Annotated[str, typer.Option("--tool", help="Only calls of this tool, e.g. Bash.")] = "",
    file: Annotated[str, typer.Option("--file", help="Only what touched this file: a path or its end.")] = "",
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only this kind of event, e.g. prompt.submitted.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only what failed or was refused.")] = False,
    since: Annotated[str, typer.Option("--since", help="2026-11-01, 10:45, 2h, 3d.")] = "",
    before: Annotated[int, typer.Option("--before", help="Only events before this number: the next page.")] = 0,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 20,
    json: Json = False,
) -> None:  # fmt: skip
    """Search prompts, answers, commands, outputs, files, errors and commits, newest first."""
    filters: dict[str, Any] = {
        "project": _project_filter(project, here), "agent": agent, "session": session, "tool": tool, "file": file,
        "kinds": kind or [], "failed": failed, "since": parse_moment(since, now_ms()) if since else 0, "before": before,
    }  # fmt: skip
    answer = answered.view(json, "log.history", query=" ".join(query or ()), limit=limit, **filters)
    for hit in answer["hits"]:
        _show_hit(hit, answer["words"])
    _show_footer(answer, is_narrowed=any(filters.values()))


def _project_filter(project: str, here: bool) -> str:
    if here:
        return client.current_project()
    return str(Path(project).expanduser().absolute()) if project else ""


def _show_hit(hit: dict[str, Any], words: list[str]) -> None:
    line = Text(f"{hit['seq']:>7}  {render.day_and_clock(hit['at'])}  ", style="dim")
    line.append(
        f"{hit['kind']:<17} ", style="red" if hit["failed"] else render.STYLES.get(hit["kind"].partition(".")[0], "")
    )
    line.append(f"{render.clean_line(session_alias(hit['session'])):<8} ", style="cyan")
    line.append(f"{render.clean_line(Path(hit['project']).name, 24)} {render.clean_line(hit['agent'])} ", style="dim")
    snippet = Text(f"{render.clean_line(hit['tool'])}: " if hit["tool"] else "") + Text(
        render.clean_line(hit["snippet"], 300)
    )
    snippet.highlight_words(words, "bold yellow", case_sensitive=False)
    render.out.print(line + snippet)


def _show_footer(answer: dict[str, Any], is_narrowed: bool) -> None:
    if not answer["hits"] and is_narrowed:
        render.out.print("No results with these filters. Without them, every session on record is searched.")
    elif not answer["hits"]:
        render.out.print("No results in any session on record.")
    elif answer["partly"]:
        render.err.print(Text("No event has all of these words; those with the most of them come first.", style="dim"))
    elif answer["next"]:
        render.err.print(Text(f"older: the same with --before {answer['next']}", style="dim"))
    if answer["head"] - answer["indexed"] > BEHIND:
        render.err.print(
            Text(
                f"Still being indexed: {answer['indexed']:,} of {answer['head']:,} events can be found so far.",
                style="yellow",
            )
        )
