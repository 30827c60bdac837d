"""`holdfast search "…"`: code by meaning or by name."""

from typing import Annotated, Any

import typer
from rich.text import Text

from holdfast import client
from holdfast.cli import render
from holdfast.cli.options import Json


def register(app: typer.Typer) -> None:
    app.command()(search)


def search(
    query: Annotated[list[str], typer.Argument(help="What you look for, in words, or a name, or a path.")],
    lang: Annotated[str, typer.Option("--lang", help="Only this language, e.g. python.")] = "",
    path: Annotated[str, typer.Option("--path", help="Only below this folder, or a glob.")] = "",
    kind: Annotated[str, typer.Option("--kind", help="function, method, class, module, section or lines.")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 10,
    json: Json = False,
) -> None:
    """Code by meaning or by name, from the index of this checkout."""
    told = client.view("reindex.search", query=" ".join(query), lang=lang, path=path, kind=kind, limit=limit)
    if json:
        render.json_line(told)
        return
    for hit in told["hits"]:
        _show(hit)
    if not told["hits"]:
        render.out.print("Nothing found.")
    _footer(told)


def _show(hit: dict[str, Any]) -> None:
    line = Text(f"{render.clean(hit['path'])}:{hit['line']}", style="cyan")
    line.append(f"  {render.clean(hit['symbol'])}", style="bold")
    line.append(f"  ({'; '.join(render.clean(why) for why in hit['why'])})", style="dim")
    render.out.print(line)
    for text in hit["excerpt"].split("\n"):
        render.out.print(Text("    " + _as_is(text)))


def _as_is(text: str) -> str:
    """Indentation stays; control characters go."""
    indent = len(text) - len(text.lstrip())
    return " " * min(indent, 40) + render.clean(text)


def _footer(told: dict[str, Any]) -> None:
    age = f", indexed {render.ago(told['at'])}" if told["at"] else ""
    note = f" {render.clean(told['note'])}." if told["note"] else ""
    render.err.print(Text(f"{told['chunks']} chunks of {told['files']} files{age}.{note}", style="dim"))
