"""Where the index of a checkout lies, how its database is opened, and the lock that lets one run in at a time."""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import psutil

from holdfast.analysis.search.index import checkout
from holdfast.core.errors import HoldfastError, UnsafePath
from holdfast.paths import write_atomically

# Opening an index file for writing or for reading, and the disk space it leaves to others.

FORMAT = "5"
"""Raised when chunks are cut or words are stored differently: indexes of another format are made anew."""
SCHEMA = Path(__file__).with_name("schema.sql")
# How long a connection waits for another one's lock.
BUSY_MS = 5_000


class IndexDamaged(HoldfastError):
    """The code index is damaged"""


DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)


def create_database(path: Path) -> apsw.Connection:
    db = apsw.Connection(str(path))
    _set_pragmas(db)
    with db:
        for statement in db.execute(SCHEMA.read_text()):
            # The script has many statements: going through the cursor runs them all.
            del statement
        db.execute("insert into meta values ('format', ?)", (FORMAT,))
    # The index holds the text of the sources.
    path.chmod(0o600)
    return db


def open_to_write(path: Path) -> apsw.Connection:
    """Raises IndexDamaged where the file is none of ours or not whole."""
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        _set_pragmas(db)
        if get_meta(db, "format") != FORMAT:
            raise IndexDamaged("it is of another format", where=str(path))
    except (apsw.SQLError, *DAMAGE) as error:
        raise IndexDamaged(str(error), where=str(path)) from None
    return db


def open_to_read(path: Path) -> apsw.Connection:
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)  # a reader of WAL writes to its -shm file
        db.set_busy_timeout(BUSY_MS)
        db.pragma("query_only", True)
        if get_meta(db, "format") != FORMAT:
            raise IndexDamaged("it is of another format", where=str(path), fix="Run: holdfast index run")
        return db
    except (apsw.SQLError, apsw.CantOpenError, *DAMAGE) as error:
        raise IndexDamaged(str(error), where=str(path), fix="Run: holdfast index rebuild") from None


def _set_pragmas(db: apsw.Connection) -> None:
    db.set_busy_timeout(BUSY_MS)
    db.pragma("journal_mode", "wal")
    # Without the last commits after a power cut the index is still whole, and the next run finds what is missing.
    db.pragma("synchronous", "normal")
    # Negative means KiB: 64 MB.
    db.pragma("cache_size", -64_000)
    db.pragma("temp_store", "memory")


def fetch_required_row(db: apsw.Connection, sql: str, parameters: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """The row that must be there; where it is not, somebody else wrote into the file."""
    row: tuple[Any, ...] | None = db.execute(sql, parameters).fetchone()
    if row is None:
        raise IndexDamaged("a row is missing", fix="Run: holdfast index rebuild")
    return row


def get_meta(db: apsw.Connection, name: str, default: str = "") -> str:
    row = db.execute("select value from meta where name = ?", (name,)).fetchone()
    return row[0] if row else default


def set_meta(db: apsw.Connection, **values: Any) -> None:
    db.executemany(
        "insert into meta values (?, ?) on conflict (name) do update set value = excluded.value",
        [(name, str(value)) for name, value in values.items()],
    )


# Bytes that are left on the disk for the log, which must be able to grow.
KEPT_FREE = 64 << 20
KEPT_SHARE = 0.1
"""Of a disk so small that the above were most of it."""


class DiskAlmostFull(HoldfastError):
    """The disk is full"""


def check_disk_space(db: apsw.Connection, folder: Path) -> None:
    """Raises DiskAlmostFull. Pages of the index that hold nothing any more count as free: they are used first."""
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize + int(db.pragma("freelist_count")) * int(db.pragma("page_size"))
    if free < min(KEPT_FREE, disk.f_blocks * disk.f_frsize * KEPT_SHARE):
        raise DiskAlmostFull(
            f"{free >> 20} MB are free, the log needs them",
            where=str(folder),
            fix="Free some space, then run: holdfast index run. Until then the index answers as it is.",
        )


# Where the index of a checkout lies, and which of its files is the one that answers.

KEPT_S = 14 * 86_400
DATABASE = re.compile(r"^(\d+)\.db$")


class About(msgspec.Struct, frozen=True):
    root: str
    repo: str = ""


class IndexDir(msgspec.Struct, frozen=True):
    folder: Path

    @property
    def claim(self) -> Path:
        return self.folder / "claim"

    @property
    def progress(self) -> Path:
        return self.folder / "progress.json"

    @property
    def cancel(self) -> Path:
        return self.folder / "cancel"

    def database(self, generation: int) -> Path:
        return self.folder / f"{generation}.db"

    def current(self) -> int:
        """0 when there is none yet. One that is gone by now was followed by another."""
        generation = self._current_number()
        # Between reading the number and looking, a run may have put a newer one in place.
        while generation and not self.database(generation).exists():
            before, generation = generation, self._current_number()
            if generation == before:
                return 0
        return generation

    def _current_number(self) -> int:
        try:
            text = (self.folder / "current").read_text("ascii").strip()
        except (OSError, ValueError):
            return 0
        return int(text) if text.isdecimal() else 0

    def turn(self, generation: int) -> None:
        write_atomically(self.folder / "current", f"{generation}\n".encode())

    def newest(self) -> int:
        return max(self.generations(), default=0)

    def generations(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        return [int(match[1]) for p in self.folder.iterdir() if (match := DATABASE.match(p.name))]

    def sweep(self) -> None:
        """Generations that answer no more. A reader that still has one open keeps it until it is done."""
        current = self.current()
        for generation in self.generations():
            if generation != current:
                for tail in ("-wal", "-shm", ""):
                    Path(f"{self.database(generation)}{tail}").unlink(missing_ok=True)

    def about(self) -> About | None:
        try:
            return msgspec.json.decode((self.folder / "about.json").read_bytes(), type=About)
        except (OSError, msgspec.DecodeError):
            return None

    def prepare(self, about: About) -> "IndexDir":
        for folder in (self.folder.parent, self.folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.is_symlink():
                raise UnsafePath(f"{folder} is a symlink", fix="Move it away and try again.")
        if self.about() != about:
            write_atomically(self.folder / "about.json", msgspec.json.encode(about))
        return self


def folder_of(state_dir: Path) -> Path:
    return state_dir / "indexes"


def index_dir_of(state_dir: Path, root: str) -> IndexDir:
    """By the real path: a checkout reached by two names has one index."""
    real = os.path.realpath(root)
    # The name is for people, the digest makes it unique.
    name = re.sub(r"[^\w.-]", "_", os.path.basename(real))[:40] or "root"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return IndexDir(folder_of(state_dir) / f"{name}-{digest}")


def sibling_indexes(index_dir: IndexDir, repo: str) -> list[IndexDir]:
    """Indexes of other worktrees of the same repository: what is the same there need not be cut again."""
    if not repo or not index_dir.folder.parent.is_dir():
        return []
    others = [IndexDir(p) for p in sorted(index_dir.folder.parent.iterdir()) if p != index_dir.folder and p.is_dir()]
    return [other for other in others if (about := other.about()) and about.repo == repo and other.current()]


def sweep_gone(folder: Path) -> None:
    """Indexes of checkouts that were removed, some days later: a disk that is not mounted may come back."""
    for index_dir in (IndexDir(p) for p in folder.iterdir() if p.is_dir() and not p.is_symlink()):
        about = index_dir.about()
        # The folder's time is that of the last change inside it, so of the last run.
        if about and not os.path.lexists(about.root) and time.time() - index_dir.folder.stat().st_mtime > KEPT_S:
            shutil.rmtree(index_dir.folder, ignore_errors=True)


def root_of(project: str) -> tuple[str, str]:
    """(checkout, its common git directory): the nearest folder upwards that has a `.git`, else the folder itself."""
    folder = project
    while folder and folder != os.path.dirname(folder):
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder, checkout.common_dir(folder)
        folder = os.path.dirname(folder)
    return project, ""


# One run at a time for each index. The claim is a lock the kernel holds: it ends with its owner and not before (D3).


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """For people: who holds it. `beat` is when it last said so; it decides nothing."""

    pid: int
    start: float
    run: str
    at: int
    beat: int = 0


class Claimed(Exception):
    def __init__(self, holder: Holder | None) -> None:
        self.holder = holder
        super().__init__(f"held by process {holder.pid}" if holder else "held by another process")


class Claim:
    def __init__(self, fd: int, holder: Holder) -> None:
        self._fd, self._holder = fd, holder

    def beat(self) -> None:
        self._holder = msgspec.structs.replace(self._holder, beat=_now_ms())
        text = msgspec.json.encode(self._holder)
        os.pwrite(self._fd, text, 0)
        # The file is rewritten, not replaced: the lock belongs to this very file.
        os.ftruncate(self._fd, len(text))


@contextlib.contextmanager
def hold_claim(path: Path, run: str, patience_s: float = 0.0) -> Iterator[Claim]:
    """Raises Claimed when a live process has it for longer than `patience_s`."""
    # A link put in its place could have us overwrite another file.
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _lock_file(fd, path, time.monotonic() + patience_s)
        claim = Claim(fd, Holder(pid=os.getpid(), start=psutil.Process().create_time(), run=run, at=_now_ms()))
        claim.beat()
        yield claim
    finally:
        os.close(fd)


def claim_holder(path: Path) -> Holder | None:
    """Who holds it now; None when it is free."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        # Taking the lock is the test: closing the file gives it back at once.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None
    except OSError:
        return _read_holder(fd)
    finally:
        os.close(fd)


def _lock_file(fd: int, _path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() >= deadline:
                raise Claimed(_read_holder(fd)) from None
            time.sleep(0.05)


def _read_holder(fd: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(fd, 4096, 0), type=Holder)
    except (OSError, msgspec.DecodeError):
        return None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
