"""Migrates the store: numbered, forward, after a backup."""

from pathlib import Path

import apsw

from holdfast.core.errors import SchemaTooNew
from holdfast.stores.backup import write_backup
from holdfast.stores.statements import load_migrations


def newest_version() -> int:
    return load_migrations()[-1][0]


def migrate_sqlite(db: apsw.Connection, path: Path, backups: Path | None) -> None:
    version = db.pragma("user_version") or 0
    refuse_newer(version, newest_version(), str(path))
    pending = [(number, sql) for number, sql in load_migrations() if number > version]
    # Version 0 is a new file: there is nothing to save.
    if pending and version and backups:
        write_backup(path, backups, reason=f"before-migration-{pending[-1][0]}")
    for number, sql in pending:
        # The version is set in the same transaction: after a crash a step is done or not begun.
        with db:
            db.execute(sql)
            db.pragma("user_version", number)


def refuse_newer(stored_version: int, known_version: int, where: str) -> None:
    if stored_version > known_version:
        raise SchemaTooNew(
            f"schema {stored_version}, this Holdfast knows {known_version}",
            where=where,
            fix="Upgrade Holdfast. Hooks keep everything in the spool until then.",
        )
