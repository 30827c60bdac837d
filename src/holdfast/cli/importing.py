"""`holdfast import`: history from transcripts and from older systems, so that the first day is not empty."""

import collections
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.text import Text

from holdfast import client
from holdfast.cli import render
from holdfast.cli.options import DryRun, Json
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.imports import IMPORTERS
from holdfast.imports.source import Found, Importer, Place, Skipped
from holdfast.imports.turn_numbers import number_turns
from holdfast.paths import private_folder, write_atomically

BATCH_EVENTS, BATCH_BYTES = 1_000, 4 << 20
SHOWN_SKIPS = 20


def register(app: typer.Typer) -> None:
    app.command("import")(import_)


def import_(
    what: Annotated[list[str] | None, typer.Argument(help=f"Of: {', '.join(IMPORTERS)}. Default: all.")] = None,
    home: Annotated[Path | None, typer.Option("--home", help="Where the agents' folders are.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Read files once more that are known and unchanged.")] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Bring in what happened before. Sources are only read; doing it twice changes nothing."""
    place = Place((home or Path.home()).absolute(), Path(client.project()))
    known = _Known()
    work = [(importer, file) for importer in chosen(what or []) for file in importer.find(place)]
    fresh = [(i, f) for i, f in work if again or not known.has(f)]
    total = Totals(files=len(fresh), unchanged=len(work) - len(fresh))
    with _progress(quiet=json) as bar:
        task = bar.add_task("import", total=sum(file.stat().st_size for _, file in fresh))
        for importer, file in fresh:
            size = file.stat().st_size
            _import_file(importer, file, place, total, dry_run)
            if not dry_run:
                known.add(file)
            bar.advance(task, size)
    render.json_line(total.told()) if json else _show(total, dry_run)


def files_to_import() -> list[Path]:
    """Every file an import would read now."""
    place, known = Place(Path.home(), Path(client.project())), _Known()
    return [file for importer in chosen([]) for file in importer.find(place) if not known.has(file)]


def chosen(names: list[str]) -> list[Importer]:
    if unknown := [name for name in names if name not in IMPORTERS]:
        raise CommandRefused(f"there is no importer {unknown[0]!r}", fix=f"Known: {', '.join(IMPORTERS)}.")
    return [IMPORTERS[name] for name in names] or list(IMPORTERS.values())


@dataclass
class Totals:
    files: int = 0
    unchanged: int = 0
    taken: int = 0
    known: int = 0
    left: int = 0
    """Events of sessions that hooks told of themselves."""
    expected: collections.Counter[str] = field(default_factory=collections.Counter)
    skipped: list[Skipped] = field(default_factory=list)
    asked: dict[str, bool] = field(default_factory=dict)

    def by_hooks(self, session: str) -> bool:
        if session not in self.asked:
            self.asked[session] = bool(client.ask("told", sessions=[session]))
        return self.asked[session]

    def told(self) -> dict[str, Any]:
        return {
            "files": self.files, "unchanged": self.unchanged, "taken": self.taken, "known": self.known,
            "told_by_hooks": self.left, "without_meaning": dict(self.expected),
            "skipped": [{"where": s.where, "why": s.why} for s in self.skipped],
        }  # fmt: skip


def _import_file(importer: Importer, file: Path, place: Place, total: Totals, dry_run: bool) -> None:
    try:
        for batch in _batches(number_turns(_events(importer.read(file, place), total))):
            _send(importer, batch, total, dry_run)
    except OSError as error:
        total.skipped.append(Skipped(str(file), error.strerror or str(error)))


def _events(found: Iterable[Found], total: Totals) -> Iterator[Event]:
    for one in found:
        if isinstance(one, Event):
            yield one
        elif one.expected:
            total.expected[one.why] += 1
        else:
            total.skipped.append(one)


def _batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    batch: list[Event] = []
    size = 0
    for event in events:
        batch.append(event)
        size += 400 + sum(len(v) for v in event.data.as_dict().values() if isinstance(v, str))
        if len(batch) == BATCH_EVENTS or size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _send(importer: Importer, batch: list[Event], total: Totals, dry_run: bool) -> None:
    if importer.whole_sessions:
        untold = [event for event in batch if not total.by_hooks(event.session)]
        total.left += len(batch) - len(untold)
        batch = untold
    if dry_run or not batch:
        total.taken += len(batch)
        return
    done = client.ask("ingest", events=batch)
    total.taken += done["taken"]
    total.known += done["known"]


class _Known:
    """Which files were read to their end, as they were then."""

    def __init__(self) -> None:
        self._file = client.paths().state / "imports" / "read.json"
        try:
            self._read: dict[str, list[int]] = msgspec.json.decode(self._file.read_bytes(), type=dict[str, list[int]])
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            self._read = {}

    def has(self, file: Path) -> bool:
        return self._read.get(str(file)) == self._stamp(file)

    def add(self, file: Path) -> None:
        self._read[str(file)] = self._stamp(file)
        private_folder(self._file.parent)
        write_atomically(self._file, msgspec.json.encode(self._read))

    def _stamp(self, file: Path) -> list[int]:
        found = file.stat()
        return [found.st_size, found.st_mtime_ns]


def _progress(quiet: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    return Progress(*columns, console=render.err, disable=quiet, transient=True)


def _show(total: Totals, dry_run: bool) -> None:
    verb = "would be taken" if dry_run else "taken"
    render.out.print(f"{total.files} files: {total.taken} events {verb}, {total.known} were there already.")
    if total.unchanged:
        render.out.print(f"{total.unchanged} files are unchanged since the last import.")
    if total.left:
        render.out.print(f"{total.left} events belong to sessions that hooks told of already; they were left out.")
    if total.expected:
        kinds = ", ".join(f"{count} {why}" for why, count in total.expected.most_common(8))
        render.out.print(Text(f"Records that tell nothing of their own: {kinds}", style="dim"))
    for skip in total.skipped[:SHOWN_SKIPS]:
        render.out.print(Text(f"!  {render.clean(skip.where, 160)}: {render.clean(skip.why, 160)}", style="yellow"))
    if len(total.skipped) > SHOWN_SKIPS:
        render.out.print(f"… and {len(total.skipped) - SHOWN_SKIPS} more; all of them: holdfast import --again --json")
