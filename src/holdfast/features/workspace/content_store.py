"""Keeps versions of files by their content, and how each file looked last, in one database of the state folder."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import apsw
import msgspec

from holdfast.core.ports import Cipher
from holdfast.core.times import DAY
from holdfast.features.workspace import codec

FOLDER, NAME = "workspace", "content.sqlite"
MOST_WRITERS = 100
LONGEST_CHAIN = 12
"""Differences that are applied to read one version."""
SMALLEST_BASE, LARGEST_BASE = 4 << 10, 4 << 20
"""A difference to a smaller or larger file costs more time than it saves."""
# A version above this size is evicted before smaller ones.
BIG = 1 << 20
ENCRYPTED = b"\x00HFE1"

_SCHEMA = """
create table if not exists blobs(
  id text primary key, size integer not null, base text, depth integer not null, at integer not null,
  stored blob not null) without rowid;
create index if not exists blobs_base on blobs(base) where base is not null;
create table if not exists files(
  root text not null, path text not null, id text not null, mode integer not null, stamp text not null,
  by text not null, primary key(root, path)) without rowid;
create table if not exists roots(root text primary key, head text not null, shared text not null) without rowid;
create table if not exists changes(
  seq integer primary key autoincrement, root text not null, path text not null, before text not null,
  was integer not null, after text not null, mode integer not null, at integer not null, call text not null,
  owner text not null, since text not null);
create table if not exists versions(id text not null, root text not null, primary key(id, root)) without rowid;
create table if not exists writers(
  seq integer primary key autoincrement, root text not null, path text not null, id text not null, by text not null);
create index if not exists writers_file on writers(root, path);
create table if not exists marks(name text primary key, value text not null) without rowid;
"""


class Seen(msgspec.Struct, frozen=True):
    """How a file looked: `id` names its content ("" absent), `stamp` tells whether to look again."""

    id: str = ""
    mode: int = 0
    stamp: str = ""
    by: str = ""
    """The session that wrote it; `?` if that is unknown, empty for a person."""


ABSENT = Seen()
UNKEPT = "?"
"""The id of content that was not kept: too large, unreadable, or no space left."""


class ChangeRow(msgspec.Struct, frozen=True):
    seq: int
    root: str
    path: str
    before: str
    was: int
    after: str
    mode: int
    at: int
    call: str
    """The key of the call that ran; empty if none did."""
    owner: str
    """Who had written what was replaced (`Seen.by`)."""
    since: str
    """The key of the last call that had begun."""


def content_id(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=20).hexdigest()


class ContentStore:
    """Thread-safe. `transaction` groups what belongs together."""

    def __init__(self, state_dir: Path, cipher: Cipher | None = None) -> None:
        folder = state_dir / FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = folder / NAME
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        self._cipher = cipher
        self._lock = threading.RLock()
        self._db = apsw.Connection(str(self.path))
        self._db.set_busy_timeout(2_000)
        for pragma in ("journal_mode=wal", "synchronous=normal", "secure_delete=on", "auto_vacuum=incremental"):
            self._rows(f"pragma {pragma}")
        self._db.execute(_SCHEMA)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return self._db.execute(sql, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._lock, self._db:
            yield

    # ── contents ───────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, content: bytes, base: str, at: int) -> str:
        """Keep a version and return its id; `UNKEPT` if it must be encrypted and cannot be."""
        name = content_id(content)
        with self._lock:
            if self._row(name) is not None:
                return name
            before = self._base_for(content, base)
            encoded = codec.encode(content, before[1] if before else None)
            delta = before is not None and codec.is_delta(encoded)
            stored = self._cipher.seal(encoded, name.encode()) if self._cipher else encoded
            if not stored:
                return UNKEPT
            self._db.execute(
                "insert into blobs values(?,?,?,?,?,?)",
                (name, len(content), base if delta else None, before[0] + 1 if before and delta else 0, at, stored),
            )
        return name

    def get(self, name: str) -> bytes | None:
        """The content of a version, verified; None if it is not kept any more."""
        with self._lock:
            content = self._decoded(name)
        return content if content is not None and content_id(content) == name else None

    def has(self, name: str) -> bool:
        with self._lock:
            return self._row(name) is not None

    def _base_for(self, content: bytes, base: str) -> tuple[int, bytes] | None:
        if not base or not SMALLEST_BASE < len(content) <= LARGEST_BASE:
            return None
        with self._lock:
            row = self._row(base)
            if row is None or row[1] >= LONGEST_CHAIN or row[3] > LARGEST_BASE:
                return None
            before = self._decoded(base)
        return None if before is None else (row[1], before)

    def _row(self, name: str) -> tuple[str | None, int, bytes, int] | None:
        return next(iter(self._rows("select base, depth, stored, size from blobs where id=?", (name,))), None)

    def _decoded(self, name: str) -> bytes | None:
        row = self._row(name)
        if row is None:
            return None
        stored = self._cipher.open(row[2], name.encode()) if self._cipher else row[2]
        missing = False

        def base() -> bytes:
            nonlocal missing
            content = self._decoded(row[0] or "")
            missing = content is None
            return content or b""

        content = codec.decode(stored, base)
        return None if missing else content

    # ── files and changes ──────────────────────────────────────────────────────────────────────────────────────────

    def files(self, root: str) -> dict[str, Seen]:
        with self._lock:
            rows = self._rows("select path, id, mode, stamp, by from files where root=?", (root,))
        return {path_of(path): Seen(*rest) for path, *rest in rows}

    def note(self, root: str, path: str, seen: Seen) -> None:
        self._db.execute(
            "insert or replace into files values(?,?,?,?,?,?)",
            (text_of(root), text_of(path), seen.id, seen.mode, seen.stamp, seen.by),
        )

    def forget(self, root: str, path: str) -> None:
        self._db.execute("delete from files where root=? and path=?", (text_of(root), text_of(path)))

    def head(self, root: str) -> str:
        """The commit on which `files` is based."""
        with self._lock:
            return next((row[0] for row in self._rows("select head from roots where root=?", (text_of(root),))), "")

    def set_head(self, root: str, head: str, shared: str) -> None:
        with self._lock:
            self._db.execute("insert or replace into roots values(?,?,?)", (text_of(root), head, text_of(shared)))

    def known_roots(self) -> dict[str, str]:
        """The git folder of every worktree that was ever watched."""
        with self._lock:
            return {path_of(root): path_of(shared) for root, shared in self._rows("select root, shared from roots")}

    def add_change(self, root: str, path: str, before: Seen, after: Seen, at: int, call: str) -> None:
        # Whose folder a version is from, also when the change was reported long ago: an erasure asks for it.
        self._db.executemany(
            "insert or ignore into versions values(?,?)",
            [(one.id, text_of(root)) for one in (before, after) if one.id and not one.id.startswith("git:")],
        )
        self._db.execute(
            "insert into changes(root, path, before, was, after, mode, at, call, owner, since)"
            " values(?,?,?,?,?,?,?,?,?,coalesce((select value from marks where name='begun'), ''))",
            (text_of(root), text_of(path), before.id, before.mode, after.id, after.mode, at, call, before.by),
        )

    def add_writer(self, root: str, path: str, before: Seen, after: Seen) -> None:
        """Remember whose version this is, until the file is gone or as git has it."""
        here = (text_of(root), text_of(path))
        last = self._rows("select seq, by from writers where root=? and path=? order by seq desc limit 1", here)
        if not after.id or after.id.startswith("git:"):
            self._db.execute("delete from writers where root=? and path=?", here)
        elif last and last[0][1] == after.by:
            self._db.execute("update writers set id=? where seq=?", (after.id, last[0][0]))
        else:
            rows = [(*here, after.id, after.by)] if last else [(*here, before.id, "?"), (*here, after.id, after.by)]
            self._db.executemany("insert into writers(root, path, id, by) values(?,?,?,?)", rows)

    def writers(self, root: str, path: str) -> list[tuple[str, str]]:
        """Versions of a file and who wrote them, oldest first; the first is what they started from."""
        with self._lock:
            rows = self._rows(
                "select id, by from (select * from writers where root=? and path=? order by seq desc limit ?) order by seq",
                (text_of(root), text_of(path), MOST_WRITERS),
            )
        return [(name, by) for name, by in rows]

    def begin(self, call: str) -> None:
        """From now on changes come after the beginning of this call, also for the next daemon."""
        with self._lock:
            self._db.execute("insert or replace into marks values('begun', ?)", (call,))

    def changes(self, most: int = 2_000) -> list[ChangeRow]:
        """Changes that are not in the log yet, oldest first."""
        with self._lock:
            rows = self._rows("select * from changes order by seq limit ?", (most,))
        return [ChangeRow(row[0], path_of(row[1]), path_of(row[2]), *row[3:]) for row in rows]

    def told(self, seqs: Iterable[int]) -> None:
        """These changes are in the log now."""
        with self.transaction():
            self._db.executemany("delete from changes where seq=?", [(seq,) for seq in seqs])

    # ── manners ────────────────────────────────────────────────────────────────────────────────────────────────────

    def used_bytes(self) -> int:
        with self._lock:
            return int(self._rows("select coalesce(sum(length(stored)), 0) from blobs")[0][0])

    def count(self) -> int:
        with self._lock:
            return int(self._rows("select count(*) from blobs")[0][0])

    def oldest(self) -> int:
        with self._lock:
            return int(self._rows("select coalesce(min(at), 0) from blobs")[0][0])

    def keep_bounds(self, now: int, days: int, most_bytes: int) -> int:
        """Remove old versions, then big ones, then the oldest. What files hold now stays as long as it fits."""
        removed = self._remove("at < ? and id not in (select id from files)", (now - days * DAY,))
        # Big files first: one of them weighs as much as a thousand edits.
        for where in (f"size > {BIG} and id not in (select id from files)", "id not in (select id from files)", "true"):
            while (over := self.used_bytes() - most_bytes) > 0:
                gone = self._remove_oldest(where, over)
                removed += gone
                if not gone:
                    break
        if removed:
            with self._lock:
                self._rows("pragma incremental_vacuum(2000)")
        return removed

    def _remove_oldest(self, where: str, over: int) -> int:
        with self._lock:
            rows = self._rows(f"select id, length(stored) from blobs where {where} order by at limit 500")
        names, freed = [], 0
        for name, size in rows:
            names.append(name)
            freed += size
            if freed >= over:
                break
        return self._drop(names)

    def _remove(self, where: str, values: tuple[int, ...]) -> int:
        with self._lock:
            return self._drop([row[0] for row in self._rows(f"select id from blobs where {where}", values)])

    def _drop(self, names: list[str]) -> int:
        """Remove versions; what is stored as a difference to them is stored in full first."""
        gone = set(names)
        with self.transaction():
            for name in names:
                children = self._rows("select id from blobs where base=?", (name,))
                for (child,) in children:
                    if child not in gone:
                        self._store_in_full(child)
            for table in ("blobs", "versions"):
                self._db.executemany(f"delete from {table} where id=?", [(name,) for name in names])
        return len(names)

    def _store_in_full(self, name: str) -> None:
        content = self._decoded(name)
        if content is None:
            self._db.execute("delete from blobs where id=?", (name,))
            return
        encoded = codec.encode(content, None)
        stored = self._cipher.seal(encoded, name.encode()) if self._cipher else encoded
        self._db.execute("update blobs set base=null, depth=0, stored=? where id=?", (stored, name))

    def encrypt_older(self, most: int = 500) -> int:
        """Encrypt what was stored before the setting was switched on."""
        if self._cipher is None or not self._cipher.wanted:
            return 0
        with self.transaction():
            rows = self._rows("select id, stored from blobs where substr(stored, 1, 5) <> ? limit ?", (ENCRYPTED, most))
            sealed = [(self._cipher.seal(stored, name.encode()), name) for name, stored in rows]
            done = [(stored, name) for stored, name in sealed if stored.startswith(ENCRYPTED)]
            self._db.executemany("update blobs set stored=? where id=?", done)
        return len(done)

    def erase(self, quotes: Callable[[bytes], bool], projects: Iterable[str] = ()) -> int:
        """Remove every version that quotes an erased text, and everything of these folders."""
        gone: list[str] = []
        with self.transaction():
            for project in projects:
                gone += self._names_below(project.rstrip("/"))
            for table in ("files", "changes", "writers"):
                for root, path in self._rows(f"select distinct root, path from {table}"):
                    if quotes(str(path).encode()):
                        self._db.execute(f"delete from {table} where root=? and path=?", (root, path))
            for (name,) in self._rows("select id from blobs"):
                content = self._decoded(name)
                if content is None or quotes(content):
                    gone.append(name)
        removed = self._drop(list(dict.fromkeys(gone)))
        with self._lock:
            self._db.execute("vacuum")
            self._rows("pragma wal_checkpoint(truncate)")
        return removed

    def _names_below(self, project: str) -> list[str]:
        """The versions that only files of this folder have; its files and changes are forgotten."""
        here = (project, f"{project}/")
        where = "(root = ?1 or substr(root, 1, length(?2)) = ?2)"
        rows = self._rows(
            f"select id from files where {where} union select id from versions where {where}"
            f" union select id from writers where {where}",
            here,
        )
        for table in ("files", "changes", "versions", "writers", "roots"):
            self._db.execute(f"delete from {table} where {where}", here)
        kept = {row[0] for row in self._rows("select id from files union select id from versions")}
        return [name for (name,) in rows if name not in kept]


ODD = "bytes:"


def text_of(path: str) -> str:
    """A file name as text that JSON and SQLite can hold: names that are not UTF-8 are quoted."""
    return path if path.isascii() or not _is_odd(path) else ODD + quote(os.fsencode(path))


def path_of(text: str) -> str:
    return os.fsdecode(unquote_to_bytes(text[len(ODD) :])) if text.startswith(ODD) else text


def _is_odd(path: str) -> bool:
    return any("\udc80" <= one <= "\udcff" for one in path)
