"""Runs one index build, from the claim to the result."""

import contextlib
import errno
import threading
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import apsw
import msgspec

from holdfast.analysis.search import embedder as embedders
from holdfast.analysis.search.embedding_port import NoEmbedder
from holdfast.analysis.search.index import checkout, claim, database, freshness
from holdfast.analysis.search.index.places import About, IndexDir, sibling_indexes, sweep_gone
from holdfast.analysis.search.index.update import Counts, Embedding, Tell, Update
from holdfast.analysis.search.settings import IndexSettings
from holdfast.core.errors import HoldfastError

# Minimum seconds between progress reports.
SHOW_EVERY_S = 0.2
# Share of empty pages from which the file is compacted.
EMPTY_SHARE = 0.1
TIDY_SHARE = 0.3
"""When this share of an index is new, its full text is optimised."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    root: str
    folder: str
    """The index's folder."""
    run: str
    repo: str = ""
    rebuild: bool = False
    patience_s: float = 10.0
    settings: IndexSettings = IndexSettings()


class Result(msgspec.Struct, kw_only=True):
    status: str
    """completed, superseded, claimed or failed"""
    reason: str = ""
    counts: Counts = msgspec.field(default_factory=Counts)
    chunks: int = 0
    generation: int = 0
    note: str = ""
    """Why there are no new vectors, if so."""
    ms: int = 0


class Superseded(Exception):
    pass


def run_build(task: Task) -> Result:
    """Never raises for faults of the checkout or disk."""
    began = time.monotonic()
    index_dir = IndexDir(Path(task.folder))
    try:
        index_dir.prepare(About(task.root, task.repo))
        with (
            claim.hold_claim(index_dir.claim, task.run, task.patience_s) as held,
            _Progress(index_dir, task.run, held) as progress,
        ):
            result = _build_or_rebuild(task, index_dir, progress)
    except claim.Claimed as error:
        result = Result(status="claimed", reason=str(error))
    except Superseded:
        result = Result(status="superseded", reason="a newer run was asked for")
    except HoldfastError as error:
        result = Result(status="failed", reason=error.message)
    except (OSError, apsw.Error, BrokenExecutor) as error:
        result = Result(status="failed", reason=_failure_reason(error))
    with contextlib.suppress(OSError):
        # After each run, whatever its result; never a reason to fail.
        sweep_gone(index_dir.folder.parent)
    result.ms = int((time.monotonic() - began) * 1000)
    return result


def _failure_reason(error: Exception) -> str:
    if isinstance(error, apsw.FullError) or (
        isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    ):
        return "The disk is full: the index answers as it is. Make room, then run: holdfast search index run"
    return f"{type(error).__name__}: {error}"


def _build_or_rebuild(task: Task, index_dir: IndexDir, tell: Tell) -> Result:
    if not Path(task.root).is_dir():
        return Result(status="failed", reason=f"{task.root} is not there")
    index_dir.sweep()
    try:
        return _build_index(task, index_dir, tell, rebuild=task.rebuild)
    # A damaged index is rebuilt, because it comes from the checkout alone.
    except (database.IndexDamaged, *database.DAMAGE) as error:
        result = _build_index(task, index_dir, tell, rebuild=True)
        result.reason = f"the index was rebuilt: {error}"
        return result
    finally:
        index_dir.sweep()


def _build_index(task: Task, index_dir: IndexDir, tell: Tell, rebuild: bool) -> Result:
    """An existing index is changed in place; a rebuild and a first one use new files."""
    warming = threading.Thread(target=_warm_embedder, args=(task.settings,))
    warming.start()
    # The marks before the listing: what git changes in between is found by the next run.
    seen = _Seen(freshness.encoded_git_marks(task.root), checkout.list_checkout(task.root, task.settings))
    warming.join()
    current = index_dir.current()
    generation = index_dir.newest() + 1 if rebuild or not current else current
    with contextlib.closing(
        _open_database(task, index_dir, generation, fresh=generation != current, seeded=not rebuild)
    ) as db:
        # A first index answers while it grows; a rebuild answers only when complete.
        if not current:
            index_dir.turn(generation)
        result = _bring_up(task, seen, db, _while_there_is_room(tell, db, index_dir))
        result.generation = generation
    if generation != index_dir.current():
        index_dir.turn(generation)
    return result


def _warm_embedder(settings: IndexSettings) -> None:
    """Load the model while git lists the files."""
    with contextlib.suppress(NoEmbedder):
        embedders.choose_embedder(settings)


def _while_there_is_room(tell: Tell, db: apsw.Connection, index_dir: IndexDir) -> Tell:
    def told(step: str, done: int, total: int) -> None:
        tell(step, done, total)
        # The last report comes after the work: then there is nothing to stop.
        if done < total:
            database.check_disk_space(db, index_dir.folder)

    return told


def _open_database(task: Task, index_dir: IndexDir, generation: int, fresh: bool, seeded: bool) -> apsw.Connection:
    path = index_dir.database(generation)
    if not fresh:
        return database.open_to_write(path)
    for other in sibling_indexes(index_dir, task.repo) if seeded else ():
        with contextlib.suppress(database.IndexDamaged, apsw.Error):
            return _copy_index(other.database(other.current()), path)
        path.unlink(missing_ok=True)
    return database.create_database(path)


def _copy_index(source: Path, path: Path) -> apsw.Connection:
    """Another worktree's index, with every file still to be compared."""
    with contextlib.closing(database.open_to_read(source)) as other:
        other.pragma("query_only", False)  # or it would refuse to write the copy, too
        other.execute("vacuum into ?", (str(path),))
    path.chmod(0o600)
    db = database.open_to_write(path)
    with db:
        # -1 equals no time, so every file is compared by content; an equal hash saves the cutting.
        db.execute("update files set mtime = -1")
        db.execute("delete from meta where name = 'through'")
    return db


class _Seen(msgspec.Struct):
    """The checkout as it was at the start: one that cannot be read leaves no index."""

    marks: str
    listing: checkout.Listing


def _bring_up(task: Task, seen: _Seen, db: apsw.Connection, tell: Tell) -> Result:
    with db:
        # Unset during the run: an interrupted one must not look complete.
        database.set_meta(db, through="")
    counts = Update(db, task.root, task.settings, tell).run(seen.listing)
    note = ""
    try:
        counts.embedded = Embedding(db, task.settings, tell).run(embedders.choose_embedder(task.settings))
    except NoEmbedder as error:
        note = str(error)
    total = database.fetch_required_row(db, "select count(*) from chunks")[0]
    if counts.chunks > total * TIDY_SHARE:
        tell("tidy", 0, 0)
        db.execute("insert into words (words) values ('optimize')")
    with db:
        _put_folders(db, seen.listing.folders)
        about = {
            "settings": freshness.settings_fingerprint(task.settings),
            "marks": seen.marks,
            "at": time.time_ns() // 1_000_000,
        }
        database.set_meta(db, through="yes", note=note, **about)
    _give_back(db)
    return Result(status="completed", counts=counts, chunks=total, note=note)


def _give_back(db: apsw.Connection) -> None:
    """Return unused space to the disk when it is worth the copying."""
    if int(db.pragma("freelist_count")) > int(db.pragma("page_count")) * EMPTY_SHARE:
        db.execute("vacuum")
    # Otherwise the write-ahead log keeps its largest size until the next run.
    db.pragma("wal_checkpoint(truncate)")


def _put_folders(db: apsw.Connection, folders: dict[str, int]) -> None:
    if dict(db.execute("select path, mtime from folders")) != folders:
        db.execute("delete from folders")
        db.executemany("insert into folders values (?, ?)", folders.items())


class _Progress:
    """Progress in a small file, and the claim's heartbeat; also where a run learns that it is cancelled."""

    def __init__(self, index_dir: IndexDir, run_id: str, held: claim.Claim) -> None:
        self._place, self._run, self._claim = index_dir, run_id, held
        self._shown = 0.0

    def __enter__(self) -> Tell:
        return self._report_progress

    def __exit__(self, *_: object) -> None:
        self._place.progress.unlink(missing_ok=True)

    def _report_progress(self, step: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._shown < SHOW_EVERY_S:
            return
        self._shown = now
        # By the id of the run: a late cancel must not hit the next one.
        if is_cancelled(self._place, self._run):
            raise Superseded
        self._claim.beat()
        if step:
            text = msgspec.json.encode({"run": self._run, "step": step, "done": done, "total": total})
            # Renamed into place, so that nobody reads half of it.
            partial = self._place.folder / ".progress.partial"
            partial.write_bytes(text)
            partial.chmod(0o600)  # the folder is private; doctor looks at each file
            partial.replace(self._place.progress)


def is_cancelled(index_dir: IndexDir, run_id: str) -> bool:
    try:
        return index_dir.cancel.read_text("ascii").strip() == run_id
    except (OSError, ValueError):
        return False


def read_progress(index_dir: IndexDir) -> dict[str, Any] | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        state = msgspec.json.decode(index_dir.progress.read_bytes())
        return state if isinstance(state, dict) else None
    return None
