"""Migrations: numbered, forward, one transaction each, a backup first. A newer schema is refused."""

from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from holdfast.core.errors import SchemaTooNew
from holdfast.stores import backup
from holdfast.stores.sql import load_migrations

if TYPE_CHECKING:
    import psycopg

    from holdfast.stores.postgres_connection import Link


def newest_version(dialect: str) -> int:
    return load_migrations(dialect)[-1][0]


def migrate_sqlite(db: apsw.Connection, path: Path, backups: Path | None) -> None:
    version = db.pragma("user_version") or 0
    refuse_newer(version, newest_version("sqlite"), str(path))
    pending = [(number, sql) for number, sql in load_migrations("sqlite") if number > version]
    # Version 0 is a new file: there is nothing to save.
    if pending and version and backups:
        backup.write_backup(path, backups, reason=f"before-migration-{pending[-1][0]}")
    for number, sql in pending:
        # The version is set in the same transaction: a crash leaves a step done or not begun.
        with db:
            db.execute(sql)
            db.pragma("user_version", number)


def migrate_postgres(db: "psycopg.Connection", link: "Link") -> None:
    """Daemons may start at the same moment on many machines: each step is taken under the writers' lock, by one."""
    # Without the lock first: nearly every start finds nothing to do.
    if postgres_version(db, link.schema) == newest_version("postgres"):
        return
    for number, text in load_migrations("postgres"):
        with db.transaction():
            db.execute("select pg_advisory_xact_lock(%s, %s)", link.lock_key)
            # Read again under the lock: another daemon may have taken this step meanwhile.
            version = postgres_version(db, link.schema)
            refuse_newer(version, newest_version("postgres"), link.where)
            if number > version:
                link.create_schema(db)
                db.execute(text.encode())
                db.execute(
                    "insert into meta values ('schema', %s) on conflict (name) do update set value = excluded.value",
                    (str(number),),
                )


def postgres_version(db: "psycopg.Connection", schema: str) -> int:
    """Looked up in the catalogue's tables: `to_regclass` may answer from a cache older than the lock just taken."""
    there = (
        "select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace where (nspname, relname) = (%s, 'meta')"
    )
    if not db.execute(there, (schema,)).fetchone():
        return 0
    row = db.execute("select value from meta where name = 'schema'").fetchone()
    return int(row[0]) if row else 0


def refuse_newer(stored_version: int, known_version: int, where: str) -> None:
    if stored_version > known_version:
        raise SchemaTooNew(
            f"schema {stored_version}, this Holdfast knows {known_version}",
            where=where,
            fix="Upgrade Holdfast. Hooks keep everything in the spool until then.",
        )
