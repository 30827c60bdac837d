"""Stores: the same promises on SQLite and PostgreSQL, chosen by URL."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.core.errors import BadSettings
from holdfast.core.ports import Reader, Store
from holdfast.stores.body_cipher import READING, BodyCipher

# Group 1: the user before a password in an address; group 2: `password=` of a connection string.
_PASSWORD = re.compile(r"((?<=://)[^\s:/@]*:)[^\s]*(?=@)|(password\s*=\s*)(?:'[^']*'|[^\s&'\"]+)", re.IGNORECASE)


def open_store(url: str, *, backups: Path | None = None, cipher: BodyCipher = READING) -> Store:
    """The write side. Migrates (backing up first) or refuses a newer schema."""
    if path := sqlite_path(url):
        # Imported here: a daemon on one engine does not load the driver of the other.
        from holdfast.stores.sqlite import SqliteStore

        return SqliteStore(path, backups=backups, cipher=cipher)
    if url.startswith(("postgresql://", "postgres://")):
        with _translate_missing_driver():
            from holdfast.stores.postgres import PostgresStore
        return PostgresStore(url, cipher=cipher)
    raise BadSettings(
        f"store.url is {hide_password(url)!r}", fix="Use sqlite:///PATH or postgresql://USER@HOST/DATABASE."
    )


def hide_password(text: str) -> str:
    """An address, or an error that quotes one, without its password."""
    return _PASSWORD.sub(lambda found: f"{found[1] or found[2]}…", text)


def open_reader(url: str) -> Reader:
    if path := sqlite_path(url):
        from holdfast.stores.sqlite import SqliteReader

        return SqliteReader(path)
    with _translate_missing_driver():
        from holdfast.stores.postgres import PostgresReader
    return PostgresReader(url)


def sqlite_path(url: str) -> Path | None:
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None


@contextlib.contextmanager
def _translate_missing_driver() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise BadSettings(
            f"no PostgreSQL driver: {error}", fix="Run: pip install 'holdfast-agents[postgres]'"
        ) from error
