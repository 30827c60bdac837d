"""`holdfast search index`: the code index of this checkout."""

import time
from typing import Annotated, Any

import typer

from holdfast import client
from holdfast.core.times import format_bytes, time_ago
from holdfast.doors.cli import answered, render
from holdfast.doors.cli.options import Json


def absolute_path(file: str) -> str:
    from pathlib import Path

    return str(Path(file).absolute())


index_app = typer.Typer(help="The code index of this checkout.", no_args_is_help=True)

LOOK_EVERY_S = 0.1
STEPS = {"index": "reading files", "embed": "computing vectors", "tidy": "putting in order"}
ENDS = {"timeout": "was ended", "killed": "was killed", "superseded": "was superseded", "skipped": "was not made"}
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it is done.")]


@index_app.command()
def status(
    runs: Annotated[int, typer.Option("--runs", help="Also the last decisions and runs.")] = 0, json: Json = False
) -> None:
    """Show what is indexed, how fresh it is, and what is running."""
    answer = client.ask_view("reindex.status")
    answer["runs"] = client.ask_view("reindex.runs", limit=runs) if runs else []
    render.finish_as_json(json, answer)
    _show_index(answer)
    _show_runs(answer)


@index_app.command()
def run(wait: Wait = True, json: Json = False) -> None:
    """Update the index now."""
    _run_index(rebuild=False, wait=wait, json=json)


@index_app.command()
def rebuild(wait: Wait = True, json: Json = False) -> None:
    """Rebuild the index; the old one answers until that is done."""
    _run_index(rebuild=True, wait=wait, json=json)


@index_app.command()
def why(file: str, json: Json = False) -> None:
    """Show whether a file is indexed, with its chunks, or why not."""
    answer = answered.view(json, "reindex.why", file=absolute_path(file))
    if not answer["indexed"]:
        render.out.print(f"{render.clean_line(answer['path'])} is not in the index: {answer['reason']}.")
        raise typer.Exit(1)
    render.out.print(
        f"{render.clean_line(answer['path'])} ({answer['lang']}), {render.counted(len(answer['chunks']), 'chunk')}:"
    )
    for chunk in answer["chunks"]:
        show_block(chunk)


def show_block(block: dict[str, Any]) -> None:
    lines = f"{block['line']}-{block['end']}"
    render.say(f"  {lines:<12} {block['kind']:<9} {render.clean_line(block['symbol'])}")


@index_app.command("left-out")
def left_out(limit: Annotated[int, typer.Option("--limit", "-n")] = 1000, json: Json = False) -> None:
    """List files that are not indexed, with the reason."""
    answer = answered.view(json, "reindex.left_out", limit=limit)
    for one in answer:
        render.say(f"{one['reason']:<24} {render.clean_line(one['path'])}")


@index_app.command()
def flag(
    reset: Annotated[bool, typer.Option("--reset", help="Let the next prompt trigger again.")] = False,
    json: Json = False,
) -> None:
    """Show a session's first-prompt flag: the stored id, the current one, whether a prompt would trigger."""
    if reset:
        client.run_command("reindex.mark", shown=False)
    answer = client.ask_view("reindex.flag")
    render.finish_as_json(json, {**answer, "would_trigger": not answer["shown"]})
    render.out.print(f"State file session:  {render.clean_line(answer['stored_id'] or 'none')}")
    render.out.print(f"Current session:     {render.clean_line(answer['session_id'] or 'none')}")
    render.out.print(f"Sessions match:      {answer['stored_id'] == answer['session_id']}")
    render.out.print(f"Flag value:          {answer['shown']}")
    render.out.print(f"Would trigger:       {not answer['shown']}")


def _run_index(*, rebuild: bool, wait: bool, json: bool) -> None:
    decided = client.run_command("reindex.run", rebuild=rebuild)
    last = _watch_run(decided["run"], json) if wait else None
    code = 0 if last is None or last["status"] in ("completed", "unchanged") else 1
    render.finish_as_json(json, {"decided": decided, "last": last}, code)
    render.out.print(_run_summary(last) if last else "It runs in the background. See: holdfast search index status")
    raise typer.Exit(code)


def _watch_run(run_id: str, quiet: bool) -> dict[str, Any]:
    # Only needed to wait for an index, not for a search.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=render.err, disable=quiet, transient=True) as bar:
        task = bar.add_task("waiting", total=None)
        while True:
            answer = client.ask_view("reindex.watch")
            last = answer["last"]
            if (last and last["run"] == run_id) or _is_overtaken(answer, run_id):
                value: dict[str, Any] = last
                return value
            if step := answer["progress"]:
                bar.update(task, description=STEPS.get(step["step"], ""), completed=step["done"], total=step["total"])
            time.sleep(LOOK_EVERY_S)


def _is_overtaken(answer: dict[str, Any], run_id: str) -> bool:
    """A newer run has replaced it and completed."""
    # A run's id begins with the time of its request.
    return bool(answer["last"]) and not answer["run"] and answer["last"]["at"] >= int(run_id.partition("-")[0])


def _size_text(one: dict[str, Any]) -> str:
    return f"{render.counted(one['files'], 'file')}, {render.counted(one['chunks'], 'chunk')}"


def _run_summary(last: dict[str, Any]) -> str:
    if last["status"] == "unchanged":
        return f"Nothing changed: {_size_text(last)}."
    if last["status"] != "completed":
        return (
            f"The run {ENDS.get(last['status'], last['status'])}: {render.clean_line(last['reason'], 500).rstrip('.')}."
        )
    changes = ", ".join(f"{last[name]} {name}" for name in ("added", "changed", "removed") if last[name])
    note = f" No new vectors: {render.clean_line(last['note'])}." if last["note"] else ""
    why = f" Note: {render.clean_line(last['reason'], 300)}." if last["reason"] else ""
    return (
        f"{_size_text(last)} ({changes or 'nothing new'}; {render.counted(last['left_out'], 'file')} left out),"
        f" {last['ms'] / 1000:.1f} s.{why}{note}"
    )


def _show_index(answer: dict[str, Any]) -> None:
    index = answer["index"]
    if index is None:
        render.out.print(f"{render.clean_line(answer['root'])} has no index yet. Run: holdfast search index run")
    elif "problem" in index:
        render.out.print(f"{render.clean_line(index['problem'])}")
    else:
        left = ", ".join(f"{count} {reason}" for reason, count in index["left_out"].items())
        ratio = index["bytes"] / max(index["source_bytes"], 1)
        render.out.print(f"{render.clean_line(answer['root'])}: {_size_text(index)}")
        render.out.print(f"  fresh      {time_ago(index['at']) if index['at'] else 'not finished yet'}")
        render.out.print(
            f"  vectors    {index['embedded']} of {index['chunks']}, model {render.clean_line(index['model'] or 'none')}"
        )
        render.out.print(f"  size       {format_bytes(index['bytes'])}, {ratio:.1f}× the source text")
        render.out.print(f"  left out   {left or 'nothing'}")
        if index["note"]:
            render.out.print(f"  note       {render.clean_line(index['note'])}")
    if step := answer["progress"]:
        render.out.print(f"  now        {STEPS.get(step['step'], step['step'])}: {step['done']} of {step['total']}")
    if last := answer["last"]:
        render.out.print(f"  last run   {time_ago(last['at'])}, {last['trigger']}: {_run_summary(last)}")


def _show_runs(answer: dict[str, Any]) -> None:
    for one in answer["runs"]:
        what = one.get("status") or f"{one['decision']} ({one['reason']})"
        kind = one["kind"].partition(".")[2]
        render.say(f"  {render.clock_time(one['at'])}  {kind:<9} {one['trigger'] or '':<14} {render.clean_line(what)}")
