"""`verify`, `rebuild`, `backup`, `restore`: is everything there, and is it what the log says?"""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from holdfast import client
from holdfast.cli import render
from holdfast.cli.options import Json
from holdfast.core.errors import CommandRefused
from holdfast.core.times import format_bytes
from holdfast.ingest.journal import Journal
from holdfast.ingest.store_guard import forget
from holdfast.stores import backup as backups


def register(app: typer.Typer) -> None:
    for verb in (verify, rebuild, backup, restore):
        app.command()(verb)


def verify(
    acks: Annotated[
        Path | None, typer.Option("--acks", help="A file of delivery keys that must be in the log.")
    ] = None,
    json: Json = False,
) -> None:
    """Check that every event is in the log exactly once and that nothing waits in the spool."""
    client.ask("drain")
    client.ask("settle")
    keys = acks.read_text().split() if acks else _journalled_keys()
    told = {
        **client.view("log.verify", keys=keys),
        "checked": len(keys),
        "waiting": client.ask("status")["spool_bytes"],
    }
    good = not (told["gaps"] or told["missing"] or told["waiting"])
    if json:
        render.json_line({"good": good, **told})
    else:
        render.out.print(
            f"{told['events']} events, {len(told['gaps'])} gaps, {len(keys)} acknowledged keys checked, ", end=""
        )
        render.out.print(f"{len(told['missing'])} missing, {told['waiting']} bytes in the spool.")
        for gap in told["gaps"]:
            render.out.print(f"  missing: {gap[0]} to {gap[1]}")
        for key in told["missing"][:20]:
            render.out.print(f"  acknowledged but not in the log: {key}")
    raise typer.Exit(0 if good else 1)


def _journalled_keys() -> list[str]:
    """What the daemon promised last, as its journal tells it: each must be in the log by now."""
    return [entry.key for entry in Journal(client.paths().journal).pending_entries()]


def rebuild(
    feature: Annotated[str, typer.Argument(help="Only this feature.")] = "",
    write: Annotated[
        bool, typer.Option("--write", help="Write all documents again, also those that are right.")
    ] = False,
    json: Json = False,
) -> None:
    """Replay the whole log and compare the state with it; differences are repaired and listed."""
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    told: dict[str, Any] = {}
    with Progress(*columns, console=render.err, disable=json, transient=True) as bar:
        task = bar.add_task("replay", total=None)
        for line in client.stream("rebuild", feature=feature, write=write):
            if "progress" in line:
                bar.update(task, completed=line["progress"][0], total=line["progress"][1])
            told = line.get("done", told)
    if json:
        render.json_line(told)
        return
    verdict = "state = replay" if not told["differences"] else f"{len(told['differences'])} differed and were mended"
    render.out.print(f"{told['events']} events replayed, {told['documents']} documents: {verdict}.")
    for line in told["differences"][:20]:
        render.out.print(f"  {render.clean(line)}")


def backup(json: Json = False) -> None:
    """Make a checked copy of the database now. (One is made every day; seven are kept.)"""
    made = client.ask("backup")
    if json:
        render.json_line(made)
    else:
        render.out.print(f"Written and checked: {made['path']}")


def restore(
    name: Annotated[str, typer.Argument(help="Which backup; without it they are listed.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Go back to a backup. The present database is set aside, not deleted."""
    place = client.paths()
    known = backups.listed(place.backups)
    if not name:
        for path in known:
            render.out.print(f"{path.name}  {format_bytes(path.stat().st_size)}")
        render.out.print("Go back to one with: holdfast restore NAME" if known else "No backups yet.")
        return
    chosen = next((p for p in known if p.name == name), None)
    if not chosen:
        raise CommandRefused(f"there is no backup {name!r}", fix="See: holdfast restore")
    backups.check(chosen)
    if not yes:
        typer.confirm(f"Set the present database aside and go back to {name}?", abort=True)
    client.stop_daemon("holdfast restore")
    aside = backups.go_back(chosen, place.database, place.quarantine)
    forget(place.database)
    client.start_daemon()
    render.out.print(f"Restored {name}. The former database is in {aside}.")
