"""`holdfast recall`, `quirks`, `fix`, `how`: what earlier work here says, on request."""

import sys
from typing import Annotated, Any

import typer
from rich.text import Text

from holdfast import client
from holdfast.core.times import time_ago
from holdfast.doors.cli import answered, render
from holdfast.doors.cli.options import Json

quirks_app = typer.Typer(help="Quirks of this place: errors of its tools, and what was used instead.")
Quirk = Annotated[str, typer.Argument(help="q…, as `holdfast quirks` shows it.")]
LONGEST_ERROR = 100_000
"""Characters of an error text that are sent; both ends count."""


def register(root: typer.Typer) -> None:
    root.command()(recall)
    # An error text may begin with a dash.
    root.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})(fix)
    root.command()(how)
    root.add_typer(quirks_app, name="quirks")


def recall(
    session: Annotated[str, typer.Option("--session", help="Default: this one, or the newest here.")] = "",
    json: Json = False,
) -> None:
    """Show what a compaction may lose: request and limits word for word, exact commands, what runs and fails."""
    answer = answered.view(json, "memory.recall", session=session)
    if not answer["text"]:
        render.out.print("Nothing was recorded in this session yet.")
    for words in answer["text"].split("\n"):
        render.out.print(_clean(words))


def fix(
    text: Annotated[list[str], typer.Argument(help="The error text, or - for standard input.")],
    everywhere: Annotated[bool, typer.Option("--everywhere", help="In all projects, not only this one.")] = False,
    json: Json = False,
) -> None:
    """Find earlier occurrences of an error, and what followed them."""
    words = sys.stdin.read() if text == ["-"] else " ".join(text)
    if len(words) > LONGEST_ERROR:
        words = f"{words[: LONGEST_ERROR // 2]}\n{words[-LONGEST_ERROR // 2 :]}"
    answer = answered.view(json, "memory.fix", text=words, everywhere=everywhere)
    if not answer["found"]:
        render.out.print("This error is not on record here.")
    for one in answer["found"]:
        _show_occurrence(one)


def _show_occurrence(one: dict[str, Any]) -> None:
    head = Text(f"e{one['seq']}  ", style="cyan")
    head.append(f"{time_ago(one['at'])}, session {render.clean_line(one['session'][:8])}  ", style="dim")
    render.out.print(head + _clean(one["command"]))
    render.out.print(Text("  ") + _clean(one["line"]))
    for step in one["followed"]:
        render.out.print(Text("  then ", style="dim") + _clean(step))
    worked = f"worked: {one['worked']}" if one["worked"] else "no similar command worked afterwards"
    render.out.print(Text("  ") + _clean(worked))


def how(kind: Annotated[str, typer.Argument(help="test, lint, types, format or build.")], json: Json = False) -> None:
    """Show the commands that passed as a check here, by folder."""
    answer = answered.view(json, "memory.how", kind=kind)
    if not answer["commands"]:
        render.out.print(f"No {kind} run that passed is known here.")
    for one in answer["commands"]:
        line = _clean(one["command"])
        line.append(f"  in {render.clean_line(one['dir'])}, passed {one['passed']}", style="dim")
        line.append(f", failed {one['failed']}" if one["failed"] else "", style="dim")
        line.append("" if one["whole"] else ", a part of the suite", style="dim")
        line.append(f", last {time_ago(one['at'])}", style="dim")
        render.out.print(line)


@quirks_app.callback(invoke_without_command=True)
def quirks(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Also errors of one session, or without an answer.")] = False,
    json: Json = False,
) -> None:
    """Quirks of this place: errors of its tools, and what was used instead."""
    if context.invoked_subcommand is not None:
        return
    answer = answered.view(json, "memory.quirks", all=every)
    if not answer["quirks"]:
        render.out.print("No quirks are known here yet.")
    for one in answer["quirks"]:
        head = Text(f"{one['id']}  ", style="cyan")
        head.append(f"{render.counted(one['seen_in'], 'session')}, {time_ago(one['at'])}  ", style="dim")
        render.out.print(head + _clean(one["line"]))
        instead = one["instead"] or one["advice"]
        render.out.print(Text("  instead: ", style="dim") + _clean(instead or "nothing known"))


@quirks_app.command()
def edit(
    id: Quirk,
    text: Annotated[list[str], typer.Argument(help="What to use instead, in your words.")],
    json: Json = False,
) -> None:
    """Write the line that agents receive when it gets in the way."""
    doc = client.run_command("memory.quirk_edit", id=id, text=" ".join(text))
    render.finish_as_json(json, doc)
    render.out.print(f"{render.clean_line(doc['id'])} changed.")


@quirks_app.command()
def forget(id: Quirk, json: Json = False) -> None:
    """Forget a quirk: it is not learned again."""
    doc = client.run_command("memory.quirk_forget", id=id)
    render.finish_as_json(json, doc)
    render.out.print(f"{render.clean_line(doc['id'])} forgotten.")


def _clean(text: str) -> Text:
    return Text(render.clean_line(text, 1000))
