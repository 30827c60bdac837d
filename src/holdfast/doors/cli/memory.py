"""`holdfast memory …`: what is remembered, for people; `holdfast handoff`: prepare work for another agent."""

from typing import Annotated, Any

import typer
from rich.text import Text

from holdfast import client
from holdfast.core.errors import CommandRefused
from holdfast.core.times import DAY, now_ms, time_ago
from holdfast.doors.cli import answered, render
from holdfast.doors.cli.options import Json

app = typer.Typer(help="Search, add, confirm and forget memories.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="m… (a memory) or e… (something that was said), as `search` shows it.")]
Everywhere = Annotated[bool, typer.Option("--everywhere", help="In all projects, not only this one.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100)]


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="memory")
    root.command()(handoff)


@app.command()
def search(
    query: Annotated[list[str], typer.Argument(help="What you look for, in your words.")],
    limit: Limit = 10,
    kind: Annotated[str, typer.Option("--type", help="decision, bug_fix, gotcha, discovery, preference, …")] = "",
    days: Annotated[int, typer.Option("--days", min=0, help="Only of the last so many days.")] = 0,
    everywhere: Everywhere = False,
    json: Json = False,
) -> None:
    """Find what was said, decided, fixed and learned."""
    since = now_ms() - days * DAY if days else 0
    answer = answered.view(
        json, "memory.search", query=" ".join(query), limit=limit, type=kind, since=since, everywhere=everywhere
    )
    for hit in answer["hits"]:
        _print_memory(hit["id"], hit["type"] or hit["kind"], hit["at"], hit["text"], hit["status"])
    if not answer["hits"]:
        render.out.print(f"Nothing found in {answer['texts']} texts.")
    if answer["left"]:
        render.out.print(
            f"The index is being made, {answer['left']:,} events are not in it yet: ask again in a minute."
        )


@app.command("list")
def list_memories(
    limit: Limit = 20,
    status: Annotated[
        str, typer.Option("--status", help="active, candidate, superseded, dropped, forgotten.")
    ] = "active",
    candidates: Annotated[bool, typer.Option("--candidates", help="What waits for you to keep or drop it.")] = False,
    everywhere: Everywhere = False,
    json: Json = False,
) -> None:
    """List the newest memories of this project."""
    wanted_status = "candidate" if candidates else status
    answer = answered.view(json, "memory.listed", limit=limit, status=wanted_status, everywhere=everywhere)
    for doc in answer["observations"]:
        _print_memory(doc["id"], doc["type"], doc["at"], doc["text"], _shown_status(doc))
    if not answer["observations"]:
        render.out.print(
            "No candidates."
            if wanted_status == "candidate"
            else "No memories yet. Add one with: holdfast memory add TEXT"
        )


def _shown_status(doc: dict[str, Any]) -> str:
    return "expired" if doc["expired"] else "pinned" if doc["pinned"] else str(doc["status"])


SHOWN = (
    "id", "type", "kind", "status", "origin", "words_of", "importance", "times", "session", "superseded_by", "detail",
)  # fmt: skip


@app.command()
def show(id: Id, json: Json = False) -> None:
    """Show one memory in full, with its source events."""
    doc = answered.view(json, "memory.show", id=id)
    render.say(render.clean_line(doc["text"], 4000), "bold")
    for name in SHOWN:
        if doc.get(name):
            render.out.print(Text(f"  {name:<13} ", style="dim") + Text(render.clean_line(doc[name], 1000)))
    for event in doc["evidence"]:
        render.out.print(Text(f"  from e{event['seq']:<7} {event['kind']}  ", style="dim") + _clean_text(event["text"]))


@app.command()
def around(id: Id, limit: Limit = 6, json: Json = False) -> None:
    """Show what was said before and after it."""
    answer = answered.view(json, "memory.around", id=id, limit=limit)
    for one in answer["said"]:
        _print_memory(one["id"], one["kind"], one["at"], one["text"])


@app.command()
def add(
    text: Annotated[list[str], typer.Argument(help="The text to remember.")],
    kind: Annotated[str, typer.Option("--type", help="decision, gotcha, preference, …")] = "discovery",
    file: Annotated[list[str] | None, typer.Option("--file", help="A file it is about.")] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Inject it at every start of a session.")] = False,
    json: Json = False,
) -> None:
    """Remember something in your own words."""
    doc = client.run_command("memory.add", text=" ".join(text), type=kind, files=file or [], pin=pin)
    _show_change(doc, "remembered", json)


@app.command()
def pin(id: Id, off: Annotated[bool, typer.Option("--off", help="No longer.")] = False, json: Json = False) -> None:
    """Inject it at every start of a session."""
    _show_change(client.run_command("memory.pin", id=id, off=off), "no longer pinned" if off else "pinned", json)


@app.command()
def promote(id: Id, json: Json = False) -> None:
    """Vouch for a memory that is not in your own words, so that it may be injected."""
    _show_change(client.run_command("memory.promote", id=id), "promoted", json)


@app.command()
def keep(
    id: Id,
    text: Annotated[str, typer.Option("--text", help="Keep it in these words instead.")] = "",
    kind: Annotated[str, typer.Option("--type", help="decision, rule, preference, gotcha, fact, trade_off, …")] = "",
    json: Json = False,
) -> None:
    """Keep a candidate: from now on it may be injected."""
    _show_change(client.run_command("memory.keep", id=id, text=text, type=kind), "kept", json)


@app.command()
def drop(id: Id, json: Json = False) -> None:
    """Drop a candidate: the same words are not proposed again."""
    _show_change(client.run_command("memory.drop", id=id), "dropped", json)


@app.command()
def review(everywhere: Everywhere = False) -> None:
    """Review the candidates: k keeps, c changes the words, d drops, s skips, q ends."""
    waiting = client.ask_view("memory.listed", limit=100, status="candidate", everywhere=everywhere)["observations"]
    if not waiting:
        render.out.print("No candidates.")
    for number, doc in enumerate(waiting, 1):
        _print_memory(doc["id"], doc["type"], doc["at"], doc["text"])
        if doc["detail"]:
            render.say(f"  {render.clean_line(doc['detail'], 300)}", "yellow")
        render.hint(f"  {number} of {len(waiting)}   k keep   c change   d drop   s skip   q quit")
        if not _review_candidate(doc):
            return


def _review_candidate(doc: dict[str, Any]) -> bool:
    """One key per candidate; False when the person quits."""
    import click

    key = ""
    while key not in ("k", "c", "d", "s", "q"):
        key = click.getchar().lower()
        # Ctrl-C, Ctrl-D, or the end of input.
        if key in ("\x03", "\x04", ""):
            return False
    if key == "k":
        _show_change(client.run_command("memory.keep", id=doc["id"]), "kept", False)
    elif key == "c":
        words = click.prompt("  In these words", default=doc["text"])
        _show_change(client.run_command("memory.keep", id=doc["id"], text=words), "kept", False)
    elif key == "d":
        _show_change(client.run_command("memory.drop", id=doc["id"]), "dropped", False)
    return key != "q"


@app.command()
def forget(
    id: Annotated[str, typer.Argument(help="m… or e…, as `search` shows it; not with --text.")] = "",
    text: Annotated[str, typer.Option("--text", help="A text, wherever it is repeated; - reads standard input.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="With --text: do it. Without this it is only shown.")] = False,
    json: Json = False,
) -> None:
    """Remove its text and everything derived from it from the database and the backups. This cannot be undone."""
    if bool(id) == bool(text):
        raise CommandRefused("name a memory or a --text", fix="See: holdfast memory search")
    if id:
        _show_change(client.run_command("memory.forget", id=id), "forgotten", json)
        return
    import sys

    from holdfast.doors.cli.erase import erase_text

    erase_text(sys.stdin.read() if text == "-" else text, yes, json)


@app.command()
def explain(
    source: Annotated[str, typer.Argument(help="A file of JSON lines, or - for standard input.")] = "-",
    json: Json = False,
) -> None:
    """Show what would be remembered, what is valid and what would be injected; nothing is stored."""
    import contextlib
    import sys

    from holdfast.features.memory.policy.recall import explain_line

    opened = contextlib.nullcontext(sys.stdin.buffer) if source == "-" else open(source, "rb")  # noqa: SIM115
    with opened as lines:
        for line in lines:
            if line.strip():
                answer = explain_line(line)
                print(_json_text(answer) if json else _plain_text(answer), flush=True)


def _json_text(answer: dict[str, Any]) -> str:
    import msgspec

    return msgspec.json.encode(answer).decode()


def _plain_text(answer: dict[str, Any]) -> str:
    if "remembered" in answer:
        rows = [
            f"{one['outcome']:<10} {one['type']:<11} {render.clean_line(one['text'], 1000)}"
            for one in answer["remembered"]
        ]
        return "\n".join(rows) or "nothing lasting"
    return render.clean_line(" ".join(f"{name}: {value}" for name, value in answer.items()), 4000)


@app.command()
def injected(
    session: Annotated[str, typer.Option("--session", help="Only this session (the full id).")] = "",
    limit: Limit = 10,
    everywhere: Everywhere = False,
    json: Json = False,
) -> None:
    """Show what was injected from memory, word for word."""
    answer = answered.view(json, "memory.injected", session=session, limit=limit, everywhere=everywhere)
    for one in answer["injected"]:
        head = f"{render.short_time(one['at'])}  {one['moment']}  {one['session'][:8]}  {one['source']}"
        render.hint(render.clean_line(f"{head}, {one['tokens']} tokens"))
        for words in one["text"].split("\n"):
            render.out.print(Text("  ") + _clean_text(words))
    if not answer["injected"]:
        render.out.print("Nothing has been injected from memory yet.")


def handoff(
    session: Annotated[str, typer.Option("--session", help="Default: this one, or the newest here.")] = "",
    note: Annotated[str, typer.Option("--next", help="The next step, in your words.")] = "",
    json: Json = False,
) -> None:
    """Prepare a session's work: the next agent that starts in this project receives it, once."""
    answer = answered.command(json, "memory.handoff", session=session, note=note)
    for words in answer["text"].split("\n"):
        render.out.print(_clean_text(words))
    render.hint("The next session that starts here receives this, once.")


def _show_change(doc: dict[str, Any], how: str, json: bool) -> None:
    render.finish_as_json(json, doc)
    render.out.print(f"{render.clean_line(doc['id'])} {how}.")


def _print_memory(id: str, kind: str, at: int, text: str, status: str = "") -> None:
    line = Text(f"{id:<13}  ", style="cyan")
    line.append(f"{kind:<16} {time_ago(at):>10}  ", style="dim")
    line.append(f"({status}) " if status and status != "active" else "", style="yellow")
    render.out.print(line + _clean_text(text))


def _clean_text(text: str) -> Text:
    return Text(render.clean_line(text, 1000))
