"""`holdfast data import`: history from transcripts and older systems."""

import collections
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.text import Text

from holdfast import client
from holdfast.analysis.transcripts import Found, Importer, ImportLocation, Skipped
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.times import BELIEVED_AHEAD, now_ms
from holdfast.doors.cli import render
from holdfast.doors.cli.options import DryRun, Json
from holdfast.paths import private_folder, write_atomically
from holdfast.setup.imports import IMPORTERS
from holdfast.setup.imports.turns import believable_times, number_turns
from holdfast.stores.footprint import Footprint

BATCH_EVENTS, BATCH_BYTES, BATCH_FILES = 1_000, 4 << 20, 200
MOST_WAITING = 2
"""Batches that are read and not sent yet."""
SAVE_EVERY_S = 2.0
SHOWN_SKIPS = 20


def register(app: typer.Typer) -> None:
    app.command("import")(import_history)


def import_history(
    what: Annotated[list[str] | None, typer.Argument(help=f"Of: {', '.join(IMPORTERS)}. Default: all.")] = None,
    home: Annotated[Path | None, typer.Option("--home", help="Where the agents' folders are.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Read known, unchanged files again.")] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Import earlier sessions from the agents' own files, which are only read. Importing twice changes nothing."""
    if not dry_run:
        client.authorise("import")
    location = ImportLocation((home or Path.home()).absolute(), Path(client.current_project()))
    known_files = KnownFiles()
    work = list(_files_of_others(chosen_importers(what or []), location))
    fresh = [(i, f) for i, f in work if again or not known_files.has(f)]
    total = Totals(files=len(fresh), unchanged=len(work) - len(fresh))
    with known_files:
        _read_files(fresh, location, BatchSender(total, known_files, dry_run), quiet=json)
    render.finish_as_json(json, total.describe())
    _show_totals(total, dry_run)


def import_recent(seconds: float, *, quiet: bool) -> "tuple[Totals, int]":
    """Read the newest files until the time is over; return how many are left."""
    client.authorise("import")
    location, known_files = ImportLocation(Path.home(), Path(client.current_project())), KnownFiles()
    work = _files_of_others(chosen_importers([]), location)
    fresh = sorted((one for one in work if not known_files.has(one[1])), key=lambda one: -_changed_at(one[1]))
    total = Totals(files=len(fresh))
    with known_files:
        sender = BatchSender(total, known_files, dry_run=False)
        left = _read_files(fresh, location, sender, quiet=quiet, until=time.monotonic() + seconds)
    total.files -= left
    return total, left


def _read_files(
    files: list[tuple[Importer, Path]], location: ImportLocation, sending: "BatchSender", *, quiet: bool,
    until: float = float("inf"),
) -> int:  # fmt: skip
    """With a progress bar. Returns how many were not begun in time."""
    with _progress_bar(quiet) as bar, sending as sender:
        task = bar.add_task("import", total=sum(_size_of(file) for _, file in files))
        for done, (importer, file) in enumerate(files):
            if time.monotonic() > until:
                return len(files) - done
            _import_file(importer, file, location, sender)
            bar.advance(task, _size_of(file))
    return 0


def _changed_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # Removed meanwhile.


def files_to_import() -> list[Path]:
    """Every file that an import would read now."""
    location, known_files = ImportLocation(Path.home(), Path(client.current_project())), KnownFiles()
    return [file for _, file in _files_of_others(chosen_importers([]), location) if not known_files.has(file)]


def _files_of_others(importers: Iterable[Importer], location: ImportLocation) -> Iterator[tuple[Importer, Path]]:
    """Skip files that Holdfast wrote itself for older tools: their content is already in the log."""
    footprint = Footprint(client.state_paths().state)
    for importer in importers:
        yield from ((importer, file) for file in importer.find_files(location) if not footprint.wrote(file))


def chosen_importers(names: list[str]) -> list[Importer]:
    if unknown := [name for name in names if name not in IMPORTERS]:
        raise CommandRefused(f"there is no importer {unknown[0]!r}", fix=f"Known: {', '.join(IMPORTERS)}.")
    return [IMPORTERS[name] for name in names] or list(IMPORTERS.values())


@dataclass
class Totals:
    files: int = 0
    unchanged: int = 0
    imported: int = 0
    already_known: int = 0
    told_by_hooks: int = 0
    """Events of sessions that hooks reported."""
    expected: collections.Counter[str] = field(default_factory=collections.Counter)
    skipped: list[Skipped] = field(default_factory=list)

    def describe(self) -> dict[str, Any]:
        return {
            "files": self.files, "unchanged": self.unchanged, "taken": self.imported, "known": self.already_known,
            "told_by_hooks": self.told_by_hooks, "without_meaning": dict(self.expected),
            "skipped": [{"where": s.where, "why": s.why} for s in self.skipped],
        }  # fmt: skip


def _import_file(importer: Importer, file: Path, location: ImportLocation, sender: "BatchSender") -> None:
    # From before reading: a file that grows meanwhile is read again next time.
    total, stamp = sender.total, file_stamp(file)
    try:
        found = _events_noting_skips(importer.read(file, location), total)
        believable, whole = believable_times(found, now_ms() + BELIEVED_AHEAD), importer.whole_sessions
        for event in number_turns(believable, whole_sessions=whole):
            sender.add(event, whole_session=whole)
    except OSError as error:
        total.skipped.append(Skipped(str(file), error.strerror or str(error)))
    sender.end_file(file, stamp)


def _events_noting_skips(records: Iterable[Found], total: Totals) -> Iterator[Event]:
    for one in records:
        if isinstance(one, Event):
            yield one
        elif one.expected:
            total.expected[one.why] += 1
        else:
            total.skipped.append(one)


AgentSession = tuple[str, str]
"""Agent and session id, because two agents may use one id."""


@dataclass
class Batch:
    """Events that are sent together: part of one file, or several small files."""

    events: list[tuple[AgentSession, msgspec.Raw]] = field(default_factory=list)
    """The session and encoded form of each event."""
    size: int = 0
    of_sessions: set[AgentSession] = field(default_factory=set)
    """Sessions of transcripts; those that hooks reported are skipped."""
    ended: list[tuple[Path, list[int]]] = field(default_factory=list)
    """Files that end in this batch, with their stamps from before reading."""

    @property
    def is_full(self) -> bool:
        return len(self.events) >= BATCH_EVENTS or self.size > BATCH_BYTES


class BatchSender:
    """Sends batches from its own thread, while the next files are read."""

    def __init__(self, total: Totals, known_files: "KnownFiles", dry_run: bool) -> None:
        self.total = total
        self._known, self._dry_run = known_files, dry_run
        self._batch = Batch()
        self._told_by_hooks: dict[AgentSession, bool] = {}
        self._waiting: queue.Queue[Batch | None] = queue.Queue(MOST_WAITING)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="import-sender", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._hand_over()
        # The thread ends in any case, after its current batch.
        self._waiting.put(None)
        self._thread.join()
        if kind is None:
            self._raise_error()

    def add(self, event: Event, *, whole_session: bool) -> None:
        batch, encoded = self._batch, msgspec.json.encode(event)
        session = event.agent, event.session
        batch.events.append((session, msgspec.Raw(encoded)))
        batch.size += len(encoded)
        if whole_session:
            batch.of_sessions.add(session)
        if batch.is_full:
            self._hand_over()

    def end_file(self, file: Path, stamp: list[int]) -> None:
        self._batch.ended.append((file, stamp))
        if len(self._batch.ended) >= BATCH_FILES:
            self._hand_over()

    def _hand_over(self) -> None:
        self._raise_error()
        self._waiting.put(self._batch)
        self._batch = Batch()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while (batch := self._waiting.get()) is not None:
            if self._error is None:  # After an error the rest is taken from the queue, so that nobody waits for ever.
                try:
                    self._send(batch)
                except BaseException as error:  # Raised again in the thread that reads.
                    self._error = error

    def _send(self, batch: Batch) -> None:
        events = self._without_told(batch)
        if self._dry_run or not events:
            self.total.imported += len(events)
        else:
            done = client.ask_daemon("ingest", events=events)
            self.total.imported += done["taken"]
            self.total.already_known += done["known"]
        # After the daemon has answered: files of a failed batch are read again.
        if not self._dry_run:
            self._known.add(batch.ended)

    def _without_told(self, batch: Batch) -> list[msgspec.Raw]:
        new = sorted(batch.of_sessions - self._told_by_hooks.keys())
        if new:
            answer = {(agent, session) for agent, session in client.ask_daemon("told", sessions=new)}
            self._told_by_hooks.update((session, session in answer) for session in new)
        by_hooks = {session for session in batch.of_sessions if self._told_by_hooks[session]}
        events = [event for session, event in batch.events if session not in by_hooks]
        self.total.told_by_hooks += len(batch.events) - len(events)
        return events


class KnownFiles:
    """Which files were read completely, with their stamps. Saved now and then, because reading a file again adds
    nothing."""

    def __init__(self) -> None:
        self._file = client.state_paths().state / "imports" / "read.json"
        self._changed, self._saved = False, 0.0
        try:
            self._read: dict[str, list[int]] = msgspec.json.decode(self._file.read_bytes(), type=dict[str, list[int]])
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            self._read = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._changed:
            self._save()

    def has(self, file: Path) -> bool:
        return self._read.get(str(file)) == file_stamp(file)

    def add(self, files: Iterable[tuple[Path, list[int]]]) -> None:
        for file, stamp in files:
            self._read[str(file)] = stamp
            self._changed = True
        if self._changed and time.monotonic() - self._saved > SAVE_EVERY_S:
            self._save()

    def _save(self) -> None:
        private_folder(self._file.parent)
        write_atomically(self._file, msgspec.json.encode(self._read))
        self._changed, self._saved = False, time.monotonic()


def file_stamp(file: Path) -> list[int]:
    try:
        file_stat = file.stat()
    except OSError:
        return []
    return [file_stat.st_size, file_stat.st_mtime_ns]


def _progress_bar(quiet: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    return Progress(*columns, console=render.err, disable=quiet, transient=True)


def _show_totals(total: Totals, dry_run: bool) -> None:
    if not (total.files or total.unchanged or total.skipped):
        render.out.print("Nothing to import: no files of earlier sessions were found. See: holdfast data import --help")
        return
    verb = "would be imported" if dry_run else "imported"
    files, events = render.counted(total.files, "file", "files"), render.counted(total.imported, "event", "events")
    render.out.print(f"{files}: {events} {verb}, {total.already_known} already there.")
    if total.unchanged:
        unchanged = render.counted(total.unchanged, "file is", "files are")
        render.out.print(f"{unchanged} unchanged since the last import.")
    if total.told_by_hooks:
        left = render.counted(total.told_by_hooks, "event belongs", "events belong")
        render.out.print(f"{left} to sessions that hooks recorded, and left out.")
    if total.expected:
        kinds = ", ".join(f"{count} {why}" for why, count in total.expected.most_common(8))
        render.out.print(Text(f"Records without information of their own: {kinds}", style="dim"))
    for skip in total.skipped[:SHOWN_SKIPS]:
        render.out.print(
            Text(f"!  {render.clean_line(skip.where, 160)}: {render.clean_line(skip.why, 160)}", style="yellow")
        )
    if len(total.skipped) > SHOWN_SKIPS:
        render.out.print(
            f"… and {len(total.skipped) - SHOWN_SKIPS} more; all of them: holdfast data import --again --json"
        )
