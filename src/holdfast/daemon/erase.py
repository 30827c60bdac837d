"""Erasure as a job that survives its daemon: an intent on disk, repeatable steps, a final search."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import msgspec

from holdfast.app import App
from holdfast.core.engine import Committed
from holdfast.core.erase import Quotation, build_eraser, find_excerpts
from holdfast.core.errors import HoldfastError, KeyUnavailable, StoreUnavailable
from holdfast.core.event import Event, own_event
from holdfast.core.feature import Feature
from holdfast.core.ids import delivery_key
from holdfast.core.kinds.engine_events import EraseFinished
from holdfast.core.ports import Doc, Reader, Ref
from holdfast.core.replay import Rebuild
from holdfast.core.times import now_ms
from holdfast.daemon.quoting_files import (
    copies_of_database,
    erase_in_file,
    is_beside_database,
    is_database,
    quotes_bytes,
    quotes_text,
    remove_all,
    remove_indexes,
)
from holdfast.paths import (
    INTENT_SUFFIX,
    Paths,
    overwrite_file,
    plain_files,
    remove_partials,
    sync_path,
    write_atomically,
)
from holdfast.stores import backup
from holdfast.stores.erase import ERASED_KIND, EraseSql, drop_documents, name_id, rewrite_copy
from holdfast.stores.footprint import Footprint

SHORTEST_ID = 8
"""A shorter session id is a word like any other: only its events are erased, not every text that contains it."""


class EraseIntent(msgspec.Struct, kw_only=True):
    """`events` are appended along with the erasure, e.g. that a memory was forgotten."""

    id: str
    at: int
    texts: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    files: tuple[str, ...] | None = None
    """Files that show documents to be removed; filled in by the first step."""
    attempts: int = 0

    @property
    def what(self) -> str:
        kinds = (("text", self.texts), ("session", self.sessions), ("project", self.projects))
        return ", ".join(name for name, values in kinds if values)

    def quotations(self) -> list[Quotation]:
        """Ids of sessions and folders are also searched as words, because other rows may mention them."""
        named = [one for one in (*self.sessions, *self.projects) if len(one) >= SHORTEST_ID]
        texts = [Quotation(text) for text in self.texts if text.strip()]
        return [*texts, *(Quotation(name, is_name=True) for name in named if name.strip())]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(EraseIntent).decode


def new_intent(at: int, **targets: tuple[str, ...] | tuple[Event, ...]) -> EraseIntent:
    return EraseIntent(id=delivery_key(at)[:16], at=at, **targets)  # type: ignore[arg-type]


def path_of(paths: Paths, intent: EraseIntent) -> Path:
    return paths.run / f"{intent.id}{INTENT_SUFFIX}"


def save_intent(paths: Paths, intent: EraseIntent) -> None:
    write_atomically(path_of(paths, intent), _encode(intent))
    # The new name survives a power cut only when its folder is synced too.
    sync_path(paths.run)


def open_intents(paths: Paths) -> list[EraseIntent]:
    """Oldest first. An unreadable intent was being removed when the daemon died, so its work was done."""
    intents: list[EraseIntent] = []
    for path in sorted(paths.run.glob(f"*{INTENT_SUFFIX}")):
        try:
            intents.append(_decode(path.read_bytes()))
        except (OSError, msgspec.MsgspecError):
            path.unlink(missing_ok=True)
    return sorted(intents, key=lambda intent: intent.at)


def remove_intent(paths: Paths, intent: EraseIntent) -> None:
    path = path_of(paths, intent)
    with contextlib.suppress(FileNotFoundError):
        # The intent quotes the text itself, so its bytes are overwritten before it is unlinked.
        overwrite_file(path)
        path.unlink()
    sync_path(paths.run)


if TYPE_CHECKING:
    from holdfast.daemon.service import Daemon

FILES_S = 60.0


class NotFinished(HoldfastError):
    """What is to be erased is not gone everywhere yet"""


class Repetition(msgspec.Struct):
    """One place that repeats a text."""

    table: str
    key: str
    field: str
    excerpt: str


def find_repetitions(daemon: "Daemon", text: str) -> list[Repetition]:
    """List what would be erased."""
    quotation = Quotation(text)

    def look() -> list[Repetition]:
        with daemon.app.store.transaction():
            return list(_row_repetitions(daemon, quotation))

    rows: list[Repetition] = daemon.call(look)
    return [*rows, *_repeating_files(daemon, quotation, bool(rows))]


def _row_repetitions(daemon: "Daemon", quotation: Quotation) -> Iterator[Repetition]:
    for row in daemon.app.store.rows_with(quotation.probes):
        try:
            value = msgspec.json.decode(row.content)
        except (msgspec.DecodeError, UnicodeError):
            value = row.content.decode("utf-8", "replace")
        key = " ".join(str(part) for part in row.key)
        for field, excerpt in find_excerpts(value, quotation):
            yield Repetition(row.table, key, field, excerpt)


def _repeating_files(daemon: "Daemon", quotation: Quotation, in_store: bool) -> Iterator[Repetition]:
    """Files of the state folder besides the live database, and files in projects that show documents."""
    paths, live = daemon.paths, daemon.app.store.path
    for path in sorted(plain_files(paths.state)):
        if path == live or is_beside_database(path):
            continue
        name = str(path.relative_to(paths.state))
        # A file may vanish between listing and reading.
        with contextlib.suppress(OSError):
            if quotes_text(path, [quotation]):
                yield Repetition(_kind_of_file(daemon, path), name, "", "")
            elif in_store and path.parent == paths.derived:
                yield Repetition("index", name, "", "holds its words, not its text; it is made again without them")
    reader = daemon.app.store.reader()
    try:
        shown = sorted(set(shown_files(daemon.app, reader)))
    finally:
        reader.close()
    for name in shown:
        with contextlib.suppress(OSError):
            if quotes_text(Path(name), [quotation]):
                yield Repetition("file in a project", name, "", "")


def _kind_of_file(daemon: "Daemon", path: Path) -> str:
    kinds = {
        daemon.paths.backups: "backup", daemon.paths.quarantine: "set aside", daemon.paths.logs: "log",
        daemon.paths.spool: "spool", daemon.paths.derived: "index",
    }  # fmt: skip
    kind = next((kind for folder, kind in kinds.items() if folder in path.parents), "file")
    return "journal" if daemon.paths.journal in (path, path.parent) else kind


def run_erasure(daemon: "Daemon", intent: EraseIntent) -> EraseFinished:
    """The intent is on disk before anything else happens; if a step fails, it stays and is retried."""
    save_intent(daemon.paths, intent)
    return carry_out(daemon, intent)


def carry_out(daemon: "Daemon", intent: EraseIntent) -> EraseFinished:
    with daemon.copying:
        if not path_of(daemon.paths, intent).exists():
            return EraseFinished(id=intent.id, what=intent.what)  # Another thread has done it meanwhile.
        try:
            return _Erasure(daemon, intent).run()
        except (HoldfastError, OSError, apsw.Error) as error:
            intent.attempts += 1
            with contextlib.suppress(OSError):
                save_intent(daemon.paths, intent)
            daemon.log("erase.not-finished", id=intent.id, attempts=intent.attempts, error=type(error).__name__)
            detail = error.detail if isinstance(error, HoldfastError) else type(error).__name__
            raise NotFinished(detail, fix="It is retried automatically.") from error


def finish_open_erasures(daemon: "Daemon") -> None:
    """Finish erasures of an earlier daemon or a failed attempt."""
    for intent in open_intents(daemon.paths):
        with contextlib.suppress(NotFinished):
            carry_out(daemon, intent)


def shown_files(app: App, reader: Reader) -> Iterator[str]:
    """Files in people's projects that show documents."""
    for feature in app.features:
        kinds = {kind.kind: kind for kind in feature.documents}
        for row in reader.rows(feature.name) if feature.files else ():
            # A document that its feature cannot show has no file.
            with contextlib.suppress(Exception):
                typed = kinds.get(row.ref.kind)
                doc = typed.decode(row.doc) if typed else msgspec.json.decode(row.doc)
                yield from _paths_of(app, feature, row.ref, doc)


def _paths_of(app: App, feature: Feature, ref: Ref, doc: Doc) -> list[str]:
    section = app.settings.for_project(feature.facets(ref, doc)[0]).get(feature.name)
    files = feature.files(ref, doc, section) if feature.files else ()
    return [str(file.path) for file in files if file.content is not None]


class _Erasure:
    """Runs the steps of an erasure, each of which can be repeated."""

    def __init__(self, daemon: "Daemon", intent: EraseIntent) -> None:
        self._daemon, self._intent = daemon, intent
        self._store, self._paths = daemon.app.store, daemon.paths
        self._live = self._store.path
        self._wanted = intent.quotations()
        self._change = build_eraser(self._wanted)
        self._probes = tuple({probe for quotation in self._wanted for probe in quotation.probes})
        self._own_folders = [self._paths.state / one.own_folder for one in daemon.app.features if one.own_folder]
        self._receipt = EraseFinished(id=intent.id, what=intent.what)

    def run(self) -> EraseFinished:
        self._note_files()
        self._append_events()
        # Spooled hooks may quote it: they become events first, which the rewrite then reaches.
        self._daemon.call(self._daemon.drain_now)
        # No time limit: a large store takes longer than other calls may.
        self._daemon.call(self._rewrite_store, None)
        self._rebuild()
        self._receipt.removed += remove_all(self._paths.derived)
        # Rewritten rows leave their old bytes in free pages until they are vacuumed.
        self._daemon.call(self._store.vacuum_erased, None)
        self._rewrite_copies()
        self._rewrite_files()
        self._verify()
        # Only after the search: a receipt says that nothing was left.
        self._daemon.call(self._append_receipt)
        remove_intent(self._paths, self._intent)
        self._daemon.log("erase.finished", **self._receipt.as_dict())
        return self._receipt

    # ── the store ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _append_events(self) -> None:
        if self._intent.events:
            self._daemon.call(lambda: self._daemon.pipeline.commit_events(self._intent.events))

    def _rewrite_store(self) -> None:
        """On the writer thread: acknowledged events reach the store first, and the journal keeps no copy."""
        daemon = self._daemon
        daemon.pipeline.retry_held()
        # Events held in memory would be written after the rewrite, with the text in them.
        if daemon.pipeline.has_unstored:
            raise StoreUnavailable("the store takes nothing now")
        with self._store.transaction():
            self._receipt.events += self._store.blank_events(self._intent.sessions, self._intent.projects)
            self._receipt.rows += self._store.rewrite(self._probes, self._change) if self._wanted else 0
            self._receipt.tombstones = self._store.tombstones()
        if not daemon.journal.wipe():
            raise StoreUnavailable("the journal cannot be written")

    def _rebuild(self) -> None:
        """Rebuild documents from the rewritten log (P5)."""
        from holdfast.daemon.background import finish_rebuild

        reader = self._store.reader()
        try:
            work = Rebuild(self._daemon.app.features, reader)
            work.read()
            self._daemon.call(lambda: finish_rebuild(self._daemon, work), None)
        finally:
            reader.close()
        documents = [(f, ref, doc) for f in work.features if f.files for ref, doc in work.docs[f.name].items()]
        # Show every document again, so that files in projects lose the text too.
        self._daemon.files.watch(Committed((), tuple(documents), 0))
        if not self._daemon.files.flush(FILES_S):
            raise StoreUnavailable("files that show documents are still being written")
        self._remove_files(work)

    def _append_receipt(self) -> None:
        self._daemon.pipeline.commit_events([own_event(self._receipt, now_ms(), once=self._intent.id)])
        self._daemon.pipeline.publish()

    # ── files that show documents ──────────────────────────────────────────────────────────────────────────────────

    def _note_files(self) -> None:
        """Note the files of current documents: those without a document afterwards are removed."""
        if self._intent.files is None:
            reader = self._store.reader()
            try:
                # Erasing a text keeps the documents; only sessions and projects take documents with them.
                removing = self._intent.sessions or self._intent.projects
                self._intent.files = tuple(sorted(set(shown_files(self._daemon.app, reader)))) if removing else ()
            finally:
                reader.close()
            save_intent(self._paths, self._intent)

    def _remove_files(self, work: Rebuild) -> None:
        left: set[str] = set()
        for feature in work.features:
            for ref, doc in work.docs[feature.name].items() if feature.files else ():
                with contextlib.suppress(Exception):
                    left.update(_paths_of(self._daemon.app, feature, ref, doc))
        for name in set(self._intent.files or ()) - left:
            Path(name).unlink(missing_ok=True)
            self._receipt.removed += 1

    # ── everything else in the state folder ────────────────────────────────────────────────────────────────────────

    def _rewrite_copies(self) -> None:
        remove_partials(self._paths)
        for path in copies_of_database(self._paths, self._live):
            try:
                rewrite_copy(path, self._rewrite_rows)
                backup.check_database(path)
                backup.remove_side_files(path)
                self._receipt.copies += 1
            except KeyUnavailable:
                raise  # It is not damaged: its bodies cannot be opened now.
            except (HoldfastError, apsw.Error):
                backup.remove_copy(path)  # Damaged: nobody can say what is in it.
                self._receipt.removed += 1

    def _rewrite_rows(self, db: apsw.Connection) -> int:
        there = db.execute("select count(*) from sqlite_schema where name in ('events', 'facts', 'jobs')").get
        if there != 3:
            raise StoreUnavailable("it is not a Holdfast database")
        # Documents are derived and may quote it: in copies they are dropped, not searched.
        drop_documents(db)
        sql = EraseSql(db, self._daemon.app.cipher)
        blanked = sql.blank_events(
            self._intent.sessions, self._intent.projects, name_id(db, ERASED_KIND), name_id(db, "")
        )
        return blanked + (sql.rewrite(self._probes, self._change) if self._wanted else 0)

    def _rewrite_files(self) -> None:
        state = self._paths.state
        self._receipt.removed += remove_indexes(state, self._intent.projects, self._wanted)
        self._receipt.removed += self._erase_in_features()
        # Through the log itself, which holds its file open.
        self._receipt.files += self._daemon.log.rewrite(lambda path: erase_in_file(path, self._wanted))
        self._receipt.files += Footprint(state).rewrite(lambda path: erase_in_file(path, self._wanted))
        for path in self._text_files():
            # The forwarder and others replace files meanwhile; a missing file has nothing to erase.
            with contextlib.suppress(FileNotFoundError):
                self._receipt.files += erase_in_file(path, self._wanted)

    def _erase_in_features(self) -> int:
        app = self._daemon.app
        return sum(
            feature.erase(self._paths.state, app.cipher, self._quotes_bytes, self._intent.projects)
            for feature in app.features
            if feature.erase
        )

    def _quotes_bytes(self, content: bytes) -> bool:
        small = content.lower()
        return any(probe in small for probe in self._probes) and quotes_bytes(content, self._wanted)

    def _text_files(self) -> list[Path]:
        return [p for p in plain_files(self._paths.state) if not self._is_special(p)]

    def _is_special(self, path: Path) -> bool:
        # This erasure and the daemon's locks still need these; the journal was wiped in `_rewrite_store`.
        own = (path_of(self._paths, self._intent), self._paths.journal, self._paths.lease, self._paths.start_lock)
        return (
            path in own
            or path.parent in (self._paths.spool, self._paths.logs, *self._own_folders)
            or is_database(path)
            or is_beside_database(path)
        )

    # ── the proof ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _verify(self) -> None:
        """Read the whole state folder. The spool is excluded: what hooks bring now is new."""
        intents = {path_of(self._paths, intent) for intent in open_intents(self._paths)}
        left = [
            path.relative_to(self._paths.state)
            for path in plain_files(self._paths.state)
            if path not in intents and path.parent != self._paths.spool and self._quotes(path)
        ]
        if left or self._daemon.call(self._rows_left, None):
            raise StoreUnavailable(f"it is still in {', '.join(map(str, left)) or 'the store'}")

    def _quotes(self, path: Path) -> bool:
        try:
            return quotes_text(path, self._wanted)
        except FileNotFoundError:
            return False

    def _rows_left(self) -> bool:
        with self._store.transaction():
            rows = self._store.rows_with(self._probes) if self._wanted else ()
            # A probe is only part of a text: a row counts only if the eraser would still change it.
            return any(self._change(row.content) != row.content for row in rows)
