"""`verify`, `rebuild`, `backup`, `restore`: is everything there, and is the state what the log says?"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from holdfast import client
from holdfast.core.errors import CommandRefused, HoldfastError, KeyUnavailable
from holdfast.core.kinds.engine_events import StoreRestored
from holdfast.core.times import format_bytes, now_ms
from holdfast.daemon.heads import parse_heads, read_heads
from holdfast.daemon.ingest.high_water import remove_high_water_mark
from holdfast.daemon.ingest.journal import Journal, forget_ledger, read_ledger
from holdfast.daemon.restores import Restore, note_restore, read_restores
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json
from holdfast.paths import Paths
from holdfast.stores import backup as backups


def register(app: typer.Typer) -> None:
    for verb in (verify, rebuild, backup, restore):
        app.command()(verb)


def verify(
    acks: Annotated[
        Path | None, typer.Option("--acks", help="A file of delivery keys that must be in the log.")
    ] = None,
    heads: Annotated[
        Path | None, typer.Option("--heads", help="A file of heads kept elsewhere, as `--json` prints them.")
    ] = None,
    json: Json = False,
) -> None:
    """Check that every event is in the log exactly once, unchanged, and that nothing waits in the spool."""
    # What waits must be in the log before it is checked.
    client.ask_daemon("drain")
    client.ask_daemon("settle")
    keys = acks.read_text().split() if acks else _acknowledged_keys()
    noted = [*read_heads(client.state_paths().heads), *(parse_heads(heads.read_text().splitlines()) if heads else ())]
    status = client.ask_daemon("status")
    answer = {
        **client.ask_view("log.verify", keys=keys, heads=msgspec.to_builtins(noted), restores=_restores()),
        "checked": len(keys),
        "waiting": status["spool_bytes"],
        "journal_waits": status["bodies"]["journal_waits"],
    }
    problems = list(_problems(answer))
    render.finish_as_json(json, {"good": not problems, **answer}, 1 if problems else 0)
    render.out.print(
        f"{answer['events']} events, {len(answer['gaps'])} gaps, {len(keys)} acknowledged keys checked, "
        f"{len(answer['missing'])} missing, {answer['waiting']} bytes in the spool."
    )
    render.out.print(_chain_sentence(answer["chain"]))
    for problem in problems:
        render.out.print(f"  {problem}")
    raise typer.Exit(1 if problems else 0)


def _problems(answer: dict[str, Any]) -> Iterator[str]:
    chain = answer["chain"]
    yield from (f"missing: {first} to {last}" for first, last in answer["gaps"])
    yield from (f"acknowledged but not in the log: {key}" for key in answer["missing"][:20])
    yield from (f"event {seq} is not what was written, or an event before it is gone" for seq in chain["broken"])
    for head in chain["lost_heads"]:
        when = render.day_and_clock(head["at"])
        yield f"the log of {when}, which ended at event {head['seq']}, was changed and no restore explains it"
    if answer["unrecorded_erasures"]:
        yield f"{answer['unrecorded_erasures']} events are erased without a recorded erasure"
    if answer["waiting"]:
        yield f"{answer['waiting']} bytes wait in the spool"
    if answer["journal_waits"]:
        yield "Hooks wait in the encrypted journal for the keyring: the missing events may be there."


def _chain_sentence(chain: dict[str, Any]) -> str:
    if not chain["since"]:
        return "No event is chained yet: the first one after the upgrade begins the chain."
    earlier = f" Events before {chain['since']} are older than the chain." if chain["since"] > 1 else ""
    restored = f" Restores took away {chain['restored_heads']} noted heads." if chain["restored_heads"] else ""
    return (
        f"{render.counted(chain['chained'], 'event')} chained, {chain['erased']:,} of them erased, "
        f"{render.counted(chain['heads'], 'noted head')} checked.{restored}{earlier}"
    )


def _restores() -> list[dict[str, int]]:
    restores = read_restores(client.state_paths().restores)
    return [{"at": one.at, "kept": one.event.kept} for one in restores]


def _acknowledged_keys() -> list[str]:
    """The last few thousand keys acknowledged to hooks, from files outside the store."""
    paths = client.state_paths()
    # What is acknowledged and still only in the journal counts too.
    try:
        pending = [entry.key for entry in Journal(paths.journal).pending_entries()]
    except KeyUnavailable:
        pending = []  # The daemon's status tells whether it waits for the same key.
    return [*dict.fromkeys([*read_ledger(paths.ledger), *pending])]


def rebuild(
    feature: Annotated[str, typer.Argument(help="Only this feature.")] = "",
    write: Annotated[
        bool, typer.Option("--write", help="Write all documents again, also those that are right.")
    ] = False,
    json: Json = False,
) -> None:
    """Replay the whole log and compare it with the state; differences are repaired and listed."""
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    summary: dict[str, Any] = {}
    with Progress(*columns, console=render.err, disable=json, transient=True) as bar:
        task = bar.add_task("replay", total=None)
        for line in client.stream_replies("rebuild", feature=feature, write=write):
            if "progress" in line:
                bar.update(task, completed=line["progress"][0], total=line["progress"][1])
            summary = line.get("done", summary)
    render.finish_as_json(json, summary)
    verdict = (
        "state = replay" if not summary["differences"] else f"{len(summary['differences'])} differed and were repaired"
    )
    render.out.print(f"{summary['events']} events replayed, {summary['documents']} documents: {verdict}.")
    for line in summary["differences"][:20]:
        render.out.print(f"  {render.clean_line(line)}")


def backup(json: Json = False) -> None:
    """Make a checked copy of the database now. (One is made every day; seven are kept.)"""
    made = client.ask_daemon("backup")
    render.finish_as_json(json, made)
    render.out.print(f"Written and checked: {made['path']}")


def restore(
    name: Annotated[str, typer.Argument(help="Which backup; without it they are listed.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Restore a backup. The present database is set aside, not deleted."""
    paths = client.state_paths()
    listed = backups.list_backups(paths.backups)
    if not name:
        for path in listed:
            render.out.print(f"{path.name}  {format_bytes(path.stat().st_size)}")
        render.out.print("Go back to one with: holdfast data restore NAME" if listed else "No backups yet.")
        return
    chosen = next((p for p in listed if p.name == name), None)
    if not chosen:
        raise CommandRefused(f"there is no backup {name!r}", fix="See: holdfast data restore")
    client.authorise("restore")
    # Checked before anything is stopped or moved.
    backups.check_database(chosen)
    if not yes:
        typer.confirm(f"Set the present database aside and go back to {name}?", abort=True)
    client.stop_daemon("holdfast data restore")
    lost = _note_restore(paths, chosen)
    aside = backups.go_back(chosen, paths.database, paths.quarantine)
    # The restored log ends earlier: with the old mark the next start would take it for damaged.
    remove_high_water_mark(paths.database)
    # Its keys may be of events after the backup.
    forget_ledger(paths.ledger)
    client.start_daemon()
    render.out.print(
        f"Restored {name}. The former database is in {aside}, with {lost} events that are gone from the log."
    )
    render.out.print("Approvals, single uses and pauses of the gates from before are void.")


def _note_restore(paths: Paths, chosen: Path) -> int:
    event = StoreRestored(backup=str(chosen), backup_head=backups.last_seq_of_database(chosen), asked=True)
    event.tombstones = backups.tombstones_of_database(chosen)
    # A damaged database may be the reason for the restore.
    with contextlib.suppress(HoldfastError):
        event.shared_head = backups.last_shared_seq(paths.database, chosen)
        event.lost = backups.last_seq_of_database(paths.database) - event.shared_head
    note_restore(paths.restores, Restore(now_ms(), event))
    return event.lost
