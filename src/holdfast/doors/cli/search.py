"""`search` and `index`: code by meaning or by name, and the index of this checkout that it is looked up in."""

import re
import time
from typing import Annotated, Any

import typer
from rich.text import Text

from holdfast import client
from holdfast.core.times import format_bytes, time_ago
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json

# `holdfast search "…"`: code by meaning or by name; `related`, `outline` and `symbol` look something up in the index.

# PATH, PATH:LINE or PATH:LINE-END.
_PATH_AND_LINE = re.compile(r"^(.+?)(?::(\d+)(?:-\d+)?)?$")
MOST_SHOWN = 20


def register(app: typer.Typer) -> None:
    app.command()(search)
    app.add_typer(index_app, name="index")


def search(
    query: Annotated[
        list[str],
        typer.Argument(
            help="What you look for, in words, or a name, or a path. Or: related PATH:LINE, outline PATH, symbol NAME."
        ),
    ],
    lang: Annotated[str, typer.Option("--lang", help="Only this language, e.g. python.")] = "",
    path: Annotated[str, typer.Option("--path", help="Only below this folder, or a glob.")] = "",
    kind: Annotated[str, typer.Option("--kind", help="function, method, class, module, section or lines.")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 10,
    json: Json = False,
) -> None:
    """Code by meaning or by name, from the index of this checkout.

    `search related src/app.py:40` shows what is like that place, `search outline src/app.py` what the file defines,
    `search symbol parse_header` a name with its definition, uses and tests. Quote a question that begins with one of
    these words.
    """
    match query:
        # Only what looks like a path; otherwise the words are a question.
        case ["related", place] if "/" in place or "." in place or ":" in place:
            _show_related(place, limit, json)
        case ["outline", file] if "/" in file or "." in file:
            _show_outline(file, json)
        case ["symbol", name]:
            _show_symbol(name, json)
        case _:
            answer = client.ask_view(
                "reindex.search", query=" ".join(query), lang=lang, path=path, kind=kind, limit=limit
            )
            _show_hits(answer, json)


def _show_hits(answer: dict[str, Any], json: bool) -> None:
    if json:
        render.json_line(answer)
        return
    for hit in answer["hits"]:
        _show_hit(hit)
    if not answer["hits"]:
        render.out.print("Nothing found.")
    _show_footer(answer)


def _show_related(location: str, limit: int, json: bool) -> None:
    file, line = _PATH_AND_LINE.match(location).groups()  # type: ignore[union-attr]
    _show_hits(client.ask_view("reindex.related", file=_absolute_path(file), line=int(line or 1), limit=limit), json)


def _show_outline(file: str, json: bool) -> None:
    answer = client.ask_view("reindex.outline", file=_absolute_path(file))
    if json:
        render.json_line(answer)
        return
    render.out.print(f"{render.clean_line(answer['path'])} ({answer['lang']}), {answer['lines']} lines")
    for one in answer["definitions"]:
        lines = f"{one['line']}-{one['end']}"
        render.out.print(Text(f"  {lines:<12} {one['kind']:<9} {render.clean_line(one['symbol'])}"))


def _show_symbol(name: str, json: bool) -> None:
    answer = client.ask_view("reindex.symbol", symbol=name)
    if json:
        render.json_line(answer)
        return
    for title in ("definitions", "uses", "tests"):
        if answer[title]:
            render.out.print(f"{title} ({len(answer[title])})")
        for one in answer[title][:MOST_SHOWN]:
            line = Text(f"  {render.clean_line(one['path'])}:{one['line']}", style="cyan")
            line.append(f"  {render.clean_line(one['text'])}")
            render.out.print(line)
    if not answer["definitions"] and not answer["uses"] and not answer["tests"]:
        render.out.print("No such name in the index.")
    if answer["similar"]:
        render.out.print("Similar names: " + ", ".join(render.clean_line(one) for one in answer["similar"]))


def _absolute_path(file: str) -> str:
    from pathlib import Path

    return str(Path(file).absolute())


def _show_hit(hit: dict[str, Any]) -> None:
    line = Text(f"{render.clean_line(hit['path'])}:{hit['line']}-{hit['end']}", style="cyan")
    line.append(f"  {render.clean_line(hit['symbol'])}", style="bold")
    line.append(f"  ({'; '.join(render.clean_line(why) for why in hit['why'])})", style="dim")
    render.out.print(line)
    for number, text in enumerate(hit["excerpt"].split("\n"), hit["excerpt_line"]):
        render.out.print(Text(f"{number:>6}  ", style="dim") + Text(_as_is(text)))
    if around := _surrounding_symbols(hit):
        render.out.print(Text(f"        {around}", style="dim"))


def _surrounding_symbols(hit: dict[str, Any]) -> str:
    """`in Parser 10-90; before: open 12-20; after: close 41-50`."""
    titles = {"within": "in", "before": "before:", "after": "after:"}
    return "; ".join(
        f"{title} {render.clean_line(one['symbol'], 80)} {one['line']}-{one['end']}"
        for name, title in titles.items()
        if (one := hit[name])
    )


def _as_is(text: str) -> str:
    """Indentation stays; control characters go."""
    indent = len(text) - len(text.lstrip())
    return " " * min(indent, 40) + render.clean_line(text)


def _show_footer(answer: dict[str, Any]) -> None:
    age = f", indexed {time_ago(answer['at'])}" if answer["at"] else ""
    note = f" {render.clean_line(answer['note'])}." if answer["note"] else ""
    counts = f"{_count(answer['chunks'], 'chunk')} of {_count(answer['files'], 'file')}"
    render.err.print(Text(f"{counts}{age}.{note}", style="dim"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# `holdfast index …`: the code index of this checkout.

index_app = typer.Typer(help="The code index of this checkout.", no_args_is_help=True)

LOOK_EVERY_S = 0.1
STEPS = {"index": "reading files", "embed": "computing vectors", "tidy": "putting in order"}
ENDS = {"timeout": "was ended", "killed": "was killed", "superseded": "was superseded", "skipped": "was not made"}
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it is done.")]


@index_app.command()
def status(
    runs: Annotated[int, typer.Option("--runs", help="Also the last decisions and runs.")] = 0, json: Json = False
) -> None:
    """What is in it, how fresh it is, what is being done."""
    answer = client.ask_view("reindex.status")
    answer["runs"] = client.ask_view("reindex.runs", limit=runs) if runs else []
    if json:
        render.json_line(answer)
        return
    _show_index(answer)
    _show_runs(answer)


@index_app.command()
def run(wait: Wait = True, json: Json = False) -> None:
    """Update the index now."""
    _run_index(rebuild=False, wait=wait, json=json)


@index_app.command()
def rebuild(wait: Wait = True, json: Json = False) -> None:
    """Build the index from scratch; the old one answers until that is done."""
    _run_index(rebuild=True, wait=wait, json=json)


@index_app.command()
def why(file: str, json: Json = False) -> None:
    """Whether a file is in it, with its chunks, or why not."""
    answer = client.ask_view("reindex.why", file=_absolute_path(file))
    if json:
        render.json_line(answer)
        return
    if not answer["indexed"]:
        render.out.print(f"{render.clean_line(answer['path'])} is not in the index: {answer['reason']}.")
        raise typer.Exit(1)
    render.out.print(f"{render.clean_line(answer['path'])} ({answer['lang']}), {len(answer['chunks'])} chunks:")
    for chunk in answer["chunks"]:
        lines = f"{chunk['line']}-{chunk['end']}"
        render.out.print(Text(f"  {lines:<12} {chunk['kind']:<9} {render.clean_line(chunk['symbol'])}"))


@index_app.command("left-out")
def left_out(limit: Annotated[int, typer.Option("--limit", "-n")] = 1000, json: Json = False) -> None:
    """Files that are not in it, each with the reason."""
    answer = client.ask_view("reindex.left_out", limit=limit)
    if json:
        render.json_line(answer)
        return
    for one in answer:
        render.out.print(Text(f"{one['reason']:<24} {render.clean_line(one['path'])}"))


@index_app.command()
def flag(
    reset: Annotated[bool, typer.Option("--reset", help="Let the next prompt trigger again.")] = False,
    json: Json = False,
) -> None:
    """A session's first-prompt flag: the stored id, the current one, whether a prompt would trigger."""
    if reset:
        client.run_command("reindex.mark", shown=False)
    answer = client.ask_view("reindex.flag")
    if json:
        render.json_line({**answer, "would_trigger": not answer["shown"]})
        return
    render.out.print(f"State file session:  {render.clean_line(answer['stored_id'] or 'none')}")
    render.out.print(f"Current session:     {render.clean_line(answer['session_id'] or 'none')}")
    render.out.print(f"Sessions match:      {answer['stored_id'] == answer['session_id']}")
    render.out.print(f"Flag value:          {answer['shown']}")
    render.out.print(f"Would trigger:       {not answer['shown']}")


def _run_index(*, rebuild: bool, wait: bool, json: bool) -> None:
    decided = client.run_command("reindex.run", rebuild=rebuild)
    last = _watch_run(decided["run"], json) if wait else None
    if json:
        render.json_line({"decided": decided, "last": last})
    elif last is None:
        render.out.print("It runs in the background. See: holdfast index status")
    else:
        render.out.print(_run_summary(last))
    raise typer.Exit(0 if last is None or last["status"] in ("completed", "unchanged") else 1)


def _watch_run(run_id: str, quiet: bool) -> dict[str, Any]:
    # Only who waits for an index needs it: a search does not.
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
    """A newer run has taken its place and is through."""
    # A run's id begins with the time at which it was asked for.
    return bool(answer["last"]) and not answer["run"] and answer["last"]["at"] >= int(run_id.partition("-")[0])


def _run_summary(last: dict[str, Any]) -> str:
    if last["status"] == "unchanged":
        return f"Nothing changed: {last['files']} files, {last['chunks']} chunks."
    if last["status"] != "completed":
        return (
            f"The run {ENDS.get(last['status'], last['status'])}: {render.clean_line(last['reason'], 500).rstrip('.')}."
        )
    changes = ", ".join(f"{last[name]} {name}" for name in ("added", "changed", "removed") if last[name])
    note = f" No new vectors: {render.clean_line(last['note'])}." if last["note"] else ""
    why = f" Note: {render.clean_line(last['reason'], 300)}." if last["reason"] else ""
    return (
        f"{last['files']} files ({changes or 'nothing new'}; {last['left_out']} left out), {last['chunks']} chunks,"
        f" {last['ms'] / 1000:.1f} s.{why}{note}"
    )


def _show_index(answer: dict[str, Any]) -> None:
    index = answer["index"]
    if index is None:
        render.out.print(f"{render.clean_line(answer['root'])} has no index yet. Run: holdfast index run")
    elif "problem" in index:
        render.out.print(f"{render.clean_line(index['problem'])}")
    else:
        left = ", ".join(f"{count} {reason}" for reason, count in index["left_out"].items())
        ratio = index["bytes"] / max(index["source_bytes"], 1)
        render.out.print(f"{render.clean_line(answer['root'])}: {index['files']} files, {index['chunks']} chunks")
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
        render.out.print(
            Text(f"  {render.clock_time(one['at'])}  {kind:<9} {one['trigger'] or '':<14} {render.clean_line(what)}")
        )
