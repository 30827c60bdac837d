"""Answers views from the store while no daemon runs: looking starts nothing."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import msgspec

from holdfast import client
from holdfast.agents import AGENTS
from holdfast.agents.intake import Intake
from holdfast.analysis.redact import redact
from holdfast.app import ReadOnlyApp, database_path, open_read_only
from holdfast.core.errors import HoldfastError
from holdfast.core.git_context import CachedGitContext
from holdfast.core.ports import EventQuery, Reader
from holdfast.paths import Paths
from holdfast.stores.migrations import newest_version
from holdfast.stores.sqlite_connection import for_reading
from holdfast.stores.sqlite_reader import SqliteReader


def answer_view(name: str, args: Mapping[str, Any]) -> tuple[Any] | None:
    """None if only a daemon can answer: it runs, events wait to be stored, or the store needs its care."""
    paths = client.state_paths()
    if client.running_pid() or paths.failed.exists() or _has_content(paths.spool):
        return None
    app = _app(paths.state)
    database = database_path(paths, app.settings)
    try:
        if database.exists():
            return _answered(app, database, name, args) if _is_complete(database) else None
    except (OSError, apsw.Error):
        return None
    with _empty_store() as nothing:
        return _answered(app, nothing, name, args)


def _answered(app: ReadOnlyApp, database: Path, name: str, args: Mapping[str, Any]) -> tuple[Any]:
    reader = SqliteReader(database)
    try:
        project = Intake(AGENTS, CachedGitContext(), redact).project(client.current_project())
        call = app.call(name, args, reader, client.current_session(), project, os.getpid())
        return (msgspec.json.decode(msgspec.json.encode(app.view(name, call), enc_hook=str)),)
    finally:
        reader.close()


def _is_complete(database: Path) -> bool:
    """Whether the store has this version's tables and its daemon stopped in good order, with nothing in the journal."""
    db = for_reading(database)
    try:
        if db.pragma("user_version") != newest_version():
            return False
    finally:
        db.close()
    reader: Reader = SqliteReader(database)
    try:
        last = reader.events(EventQuery(limit=1, newest=True))
    except HoldfastError:
        return False
    finally:
        reader.close()
    return bool(last) and last[0].kind == "daemon.stopped"


def _has_content(path: Path) -> bool:
    files = path.rglob("*") if path.is_dir() else [path]
    return any(one.is_file() and one.stat().st_size for one in files)


@contextmanager
def _empty_store() -> Iterator[Path]:
    """What a machine has on which nothing was recorded yet."""
    from holdfast.stores.sqlite import SqliteStore

    with tempfile.TemporaryDirectory(prefix="holdfast-empty-") as folder:
        database = Path(folder, "empty.db")
        SqliteStore(database, backups=Path(folder, "backups")).close()
        yield database


@cache
def _app(state: Path) -> ReadOnlyApp:
    return open_read_only(Paths(state))
