"""How a PostgreSQL database is reached, and what its errors mean to us."""

import contextlib
import os
import re
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from psycopg import conninfo, sql
from psycopg.types.string import StrDumperUnknown, TextBinaryLoader, TextLoader

from holdfast.core.errors import BadSettings, HoldfastError, LeaseLost, StoreDamaged, StoreUnavailable
from holdfast.stores import hide_password
from holdfast.stores.rows import load_queries

SQL = {name: text.encode() for name, text in load_queries("postgres").items()}
DEFAULT_SCHEMA = "holdfast"
LOCK_CLASS = 0x486F6C64  # "Hold": keeps our advisory locks apart from those of other programs
# How long a writer waits for the advisory lock before it is told that the store is not available.
LOCK_WAIT_MS = 5_000
# The server ends a transaction that does nothing for so long, and frees the lock.
ABANDONED_MS = 60_000
LEASE_LOST = "HF001"
"""What the function `write_batch` raises where a job that is to end is another worker's."""
# Seconds between attempts to bring a lost connection back.
RECONNECT_S, LONGEST_RECONNECT_S = 0.2, 3.0
PATIENCE = {"connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "tcp_user_timeout": 20_000}
"""A machine that vanished in the middle of a transaction must not hold the writers' lock for hours."""

# The first schema of `search_path=...` in the options of the address.
_SEARCH_PATH = re.compile(r"search_path\s*=\s*\"?([^\s\",]+)")
# ESC is escaped as well: it begins our escapes.
_UNSTORABLE = re.compile("[\x00\x1b\ud800-\udfff]")
_ESCAPED = re.compile("\x1b([0-9a-f]{4})")


class EscapedText(StrDumperUnknown):
    """PostgreSQL refuses NUL and lone surrogates in text; one hostile name must not stop a whole batch."""

    def dump(self, obj: str) -> bytes | bytearray | memoryview | None:
        return super().dump(_UNSTORABLE.sub(lambda m: f"\x1b{ord(m[0]):04x}", obj))


def _unescape_text(text: str | bytes) -> str | bytes:
    if isinstance(text, str) and "\x1b" in text:
        return _ESCAPED.sub(lambda m: chr(int(m[1], 16)), text)
    return text


class UnescapedText(TextLoader):
    def load(self, data: bytes | bytearray | memoryview) -> str | bytes:
        return _unescape_text(super().load(data))


class UnescapedBinaryText(TextBinaryLoader):
    def load(self, data: bytes | bytearray | memoryview) -> str | bytes:
        return _unescape_text(super().load(data))


class Link:
    """One connection that comes back by itself: a lost one is replaced when it is next asked for."""

    def __init__(
        self, url: str, prepare: Callable[["Link", psycopg.Connection], None], *, reconnects_beside: bool = False
    ) -> None:
        """`reconnects_beside`: for whoever must not wait. Once it was connected, a lost connection is brought back by another
        thread, and until then the server is not available."""
        self.schema, self.where = schema_of(url), display_url(url)
        self._url, self._prepare = url, prepare
        self._db: psycopg.Connection | None = None
        self._beside, self._was_connected, self._closed = reconnects_beside, False, False
        self._reconnecting: threading.Thread | None = None
        self._error = ""

    @property
    def db(self) -> psycopg.Connection:
        if self._db is None or self._db.closed:
            if self._beside and self._was_connected:
                self._reconnect_beside()
                raise StoreUnavailable(
                    self._error or "the connection was lost", where=self.where, fix="Is the server up?"
                )
            self._db, self._was_connected = self._connect(), True
        return self._db

    def _reconnect_beside(self) -> None:
        if self._reconnecting is None or not self._reconnecting.is_alive():
            self._reconnecting = threading.Thread(target=self._reconnect, name="reconnect", daemon=True)
            self._reconnecting.start()

    def _reconnect(self) -> None:
        pause = RECONNECT_S
        while not self._closed:
            try:
                self._db, self._error = self._connect(), ""
                return
            except (psycopg.Error, HoldfastError, OSError) as error:
                self._error = hide_password(str(error).strip())
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_RECONNECT_S)

    @contextlib.contextmanager
    def giving_up_after(self, seconds: float) -> Iterator[None]:
        """A server that takes what is sent and says nothing: the connection is cut, so that whoever waits is told."""
        timer = threading.Timer(seconds, self._cut, (self._db,)) if seconds and self._db else None
        if timer is None:
            yield
            return
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _cut(self, db: psycopg.Connection) -> None:
        # Only the socket: the connection itself belongs to the thread that waits in it.
        with contextlib.suppress(psycopg.Error, OSError):
            copy = socket.socket(fileno=os.dup(db.fileno()))
            try:
                copy.shutdown(socket.SHUT_RDWR)
            finally:
                copy.close()

    def _connect(self) -> psycopg.Connection:
        address = parse_address(self._url)
        # What the address itself says goes before our defaults.
        patience: dict[str, Any] = {name: value for name, value in PATIENCE.items() if name not in address}
        # Autocommit: transactions are begun by name, so that a lone read is not one.
        db = psycopg.connect(self._url, autocommit=True, client_encoding="utf8", **patience)
        try:
            db.adapters.register_dumper(str, EscapedText)
            db.adapters.register_loader("text", UnescapedText)
            db.adapters.register_loader("text", UnescapedBinaryText)
            db.execute(sql.SQL("set search_path to {}").format(sql.Identifier(self.schema)))
            self._prepare(self, db)
        except BaseException:
            db.close()
            raise
        return db

    def close(self) -> None:
        self._closed = True
        self.lose()

    def lose(self) -> None:
        """Nothing is known about the connection any more, so it is not used again."""
        if self._db is not None:
            with contextlib.suppress(psycopg.Error):
                self._db.close()
            self._db = None

    def create_schema(self, db: psycopg.Connection) -> None:
        """Asked for first: `if not exists` alone wants the right to create even where nothing is to be created."""
        existing = db.execute("select 1 from pg_namespace where nspname = %s", (self.schema,)).fetchone()
        if not existing:
            db.execute(sql.SQL("create schema {}").format(sql.Identifier(self.schema)))

    @property
    def lock_key(self) -> tuple[int, int]:
        """One lock for each schema: two stores in one database do not wait for one another."""
        # PostgreSQL takes two signed 32-bit numbers; crc32 is unsigned.
        return LOCK_CLASS, zlib.crc32(self.schema.encode()) - (1 << 31)


def for_writing(db: psycopg.Connection) -> None:
    """Acknowledged means durable (P2), whatever the server's default is; a stronger setting is left alone."""
    db.execute(SQL["durable"])
    db.execute("set default_transaction_isolation to 'read committed'")  # Also for single statements without `begin`.
    db.execute(SQL["patience"], (str(LOCK_WAIT_MS), str(ABANDONED_MS)))


def for_reading(_link: Link, db: psycopg.Connection) -> None:
    db.execute("set default_transaction_read_only = on")


def schema_of(url: str) -> str:
    """`?options=-c search_path=team` puts the tables into the schema `team`."""
    match = _SEARCH_PATH.search(str(parse_address(url).get("options") or ""))
    return match[1] if match else DEFAULT_SCHEMA


def parse_address(url: str) -> dict[str, Any]:
    """The driver quotes what it does not understand, and that may be the password."""
    try:
        return dict(conninfo.conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        raise BadSettings(
            f"store.url cannot be read: {hide_password(url)}", fix="Use postgresql://USER@HOST/DATABASE."
        ) from None


def display_url(url: str) -> str:
    """Where the database is, without the password."""
    address = parse_address(url)
    return f"postgresql://{address.get('host', '')}/{address.get('dbname', '')}"


@contextlib.contextmanager
def translate_postgres_errors(link: Link) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        state = error.sqlstate or ""
        if state == LEASE_LOST:
            raise LeaseLost(where=link.where) from error
        # data_corrupted, index_corrupted.
        if state in ("XX001", "XX002"):
            raise StoreDamaged(hide_password(str(error)), where=link.where) from error
        if _is_unreachable(error, state):
            raise StoreUnavailable(
                hide_password(str(error).strip()), where=link.where, fix="Is the server up?"
            ) from error
        raise


def _is_unreachable(error: psycopg.Error, state: str) -> bool:
    """The server, the network, its disk or its locks: not a mistake of ours, which must stay visible as one."""
    if not state:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    # Classes 08, 28, 3D, 53, 57, 58: connection, authorization, database, resources, operator, system.
    return state[:2] in ("08", "28", "3D", "53", "57", "58") or state in ("55P03", "25006", "25P03", "40001", "40P01")


def drop_tables(url: str) -> None:
    """Everything of ours on the server; its own log and backups are the administrator's."""
    link = Link(url, lambda _link, _db: None)
    with translate_postgres_errors(link):
        tables = "events, facts, bodies, states, jobs, names, meta, history, turns"
        link.db.execute(f"drop table if exists {tables} cascade")
        link.db.execute("drop function if exists write_batch, index_history")
    link.lose()
