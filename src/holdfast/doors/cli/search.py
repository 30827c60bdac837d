"""`holdfast search`: finds code by meaning or by name."""

import re
from typing import Annotated, Any

import typer
from rich.text import Text

from holdfast import client
from holdfast.core.times import time_ago
from holdfast.doors.cli import answered, render
from holdfast.doors.cli.index import absolute_path, index_app, show_block
from holdfast.doors.cli.options import Json

# PATH, PATH:LINE or PATH:LINE-END.
_PATH_AND_LINE = re.compile(r"^(.+?)(?::(\d+)(?:-\d+)?)?$")
MOST_SHOWN = 20


def register(app: typer.Typer) -> None:
    app.command()(search)
    app.add_typer(index_app, name="index")


def search(
    context: typer.Context,
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help="What you look for, in words, or a name, or a path. Or: related PATH:LINE, outline PATH, symbol NAME."
        ),
    ] = None,
    lang: Annotated[str, typer.Option("--lang", help="Only this language, e.g. python.")] = "",
    path: Annotated[str, typer.Option("--path", help="Only below this folder, or a glob.")] = "",
    kind: Annotated[str, typer.Option("--kind", help="function, method, class, module, section or lines.")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 10,
    json: Json = False,
) -> None:
    """Find code by meaning or by name, in the index of this checkout.

    `search related src/app.py:40` shows similar code, `search outline src/app.py` what the file defines, `search
    symbol parse_header` a name with its definition, uses and tests. Quote a question that begins with one of these
    words.
    """
    match query:
        case None | []:
            render.out.print(context.get_help(), end="")
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
    render.finish_as_json(json, answer)
    for hit in answer["hits"]:
        _show_hit(hit)
    if not answer["hits"]:
        render.out.print("Nothing found.")
    _show_footer(answer)


def _show_related(location: str, limit: int, json: bool) -> None:
    file, line = _PATH_AND_LINE.match(location).groups()  # type: ignore[union-attr]
    _show_hits(client.ask_view("reindex.related", file=absolute_path(file), line=int(line or 1), limit=limit), json)


def _show_outline(file: str, json: bool) -> None:
    answer = answered.view(json, "reindex.outline", file=absolute_path(file))
    render.out.print(f"{render.clean_line(answer['path'])} ({answer['lang']}), {answer['lines']} lines")
    for one in answer["definitions"]:
        show_block(one)


def _show_symbol(name: str, json: bool) -> None:
    answer = answered.view(json, "reindex.symbol", symbol=name)
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


def _show_hit(hit: dict[str, Any]) -> None:
    line = Text(f"{render.clean_line(hit['path'])}:{hit['line']}-{hit['end']}", style="cyan")
    line.append(f"  {render.clean_line(hit['symbol'])}", style="bold")
    line.append(f"  ({'; '.join(render.clean_line(why) for why in hit['why'])})", style="dim")
    render.out.print(line)
    for number, text in enumerate(hit["excerpt"].split("\n"), hit["excerpt_line"]):
        render.out.print(Text(f"{number:>6}  ", style="dim") + Text(_as_is(text)))
    if around := _surrounding_symbols(hit):
        render.hint(f"        {around}")


def _surrounding_symbols(hit: dict[str, Any]) -> str:
    """`in Parser 10-90; before: open 12-20; after: close 41-50`."""
    titles = {"within": "in", "before": "before:", "after": "after:"}
    return "; ".join(
        f"{title} {render.clean_line(one['symbol'], 80)} {one['line']}-{one['end']}"
        for name, title in titles.items()
        if (one := hit[name])
    )


def _as_is(text: str) -> str:
    """Keeps indentation, removes control characters."""
    indent = len(text) - len(text.lstrip())
    return " " * min(indent, 40) + render.clean_line(text)


def _show_footer(answer: dict[str, Any]) -> None:
    age = f", indexed {time_ago(answer['at'])}" if answer["at"] else ""
    note = f" {render.clean_line(answer['note'])}." if answer["note"] else ""
    counts = f"{render.counted(answer['chunks'], 'chunk')} of {render.counted(answer['files'], 'file')}"
    render.err.print(Text(f"{counts}{age}.{note}", style="dim"))
