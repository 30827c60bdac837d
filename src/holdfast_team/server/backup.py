"""Backs up and restores a team's database over the server's own connection."""

# A backup is a zip of one COPY stream per table, all of one snapshot, and a manifest with each one's SHA-256 and row
# count. Large installations use `pg_basebackup`; this is for the others, and for moving.

import hashlib
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import msgspec
import psycopg
from psycopg import sql

from holdfast.core.errors import CommandRefused
from holdfast.core.times import now_ms
from holdfast_team.server.connection import parse_address, team_schema
from holdfast_team.server.database import migrate_database, owner_connection

MANIFEST = "manifest.json"
JUMP = 1_000_000
"""Feed numbers and lease tokens continue this far above those of the backup, so that numbers given out since are not
reused."""
Database = psycopg.Connection[dict[str, Any]]


class TableCopy(msgspec.Struct):
    name: str
    columns: list[str]
    key: list[str]
    rows: int = 0
    digest: str = ""


class Manifest(msgspec.Struct):
    version: int
    """Of the tables."""
    at: int
    tables: list[TableCopy]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)


# ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_backup(url: str, file: Path) -> Manifest:
    """Write all tables of one moment while servers keep running. The file appears when it is complete."""
    if file.exists():
        raise CommandRefused(f"{file} is there already", fix="Name a new file.")
    half = file.with_name(f"{file.name}.part")
    # The file holds everything of the team: only its owner can read it.
    fd = os.open(half, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out:
        with (
            owner_connection(url) as db,
            db.transaction(),
            zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            # All tables as of the same moment, although they are copied one by one.
            db.execute("set transaction isolation level repeatable read read only")
            manifest = Manifest(_version_of(db), now_ms(), _list_tables(db, team_schema(url)))
            for table in manifest.tables:
                with archive.open(f"{table.name}.copy", "w", force_zip64=True) as target:
                    _copy_out(db, table, target)
            archive.writestr(MANIFEST, msgspec.json.encode(manifest))
        out.flush()
        os.fsync(out.fileno())
    half.rename(file)
    return manifest


def _version_of(db: Database) -> int:
    row = db.execute("select max(version) as n from migrations").fetchone()
    return int(row["n"]) if row and row["n"] else 0


def _list_tables(db: Database, schema: str) -> list[TableCopy]:
    rows = db.execute(TABLES, (schema,)).fetchall()
    tables = [TableCopy(row["name"], row["columns"], row["key"]) for row in rows]
    # In the order that the references require.
    first = ("tenants", "people", "machines", "codes")
    return sorted(tables, key=lambda one: (first.index(one.name) if one.name in first else len(first), one.name))


TABLES = """
select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns, (
  select array_agg(k.attname::text order by o.n) from pg_index i cross join unnest(i.indkey) with ordinality o (attnum, n)
  join pg_attribute k on k.attrelid = c.oid and k.attnum = o.attnum where i.indrelid = c.oid and i.indisprimary) as key
from pg_class c join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where n.nspname = %s and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'migrations'
group by c.oid, c.relname
"""


def _copy_out(db: Database, table: TableCopy, target: IO[bytes]) -> None:
    """In key order, so that two copies of the same rows are the same bytes."""
    digest = hashlib.sha256()
    statement = sql.SQL("copy (select {} from {} order by {}) to stdout").format(
        _names(table.columns), sql.Identifier(table.name), _names(table.key)
    )
    with db.cursor().copy(statement) as copy:
        for piece in copy:
            digest.update(piece)
            # COPY ends each row with a newline and escapes newlines in values.
            table.rows += bytes(piece).count(b"\n")
            target.write(piece)
    table.digest = digest.hexdigest()


def _names(columns: list[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


# ── back ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def restore_backup(url: str, file: Path, *, go_on: bool = True) -> Manifest:
    """Restore into empty tables. `go_on`: machines will use it, so numbers given out since must not repeat."""
    with zipfile.ZipFile(file) as archive:
        manifest = _read_manifest(archive)
        version = migrate_database(url)
        if manifest.version > version:
            raise CommandRefused(f"the backup is of version {manifest.version}", fix="Update Holdfast on this server.")
        with owner_connection(url) as db, db.transaction():
            if db.execute("select 1 from tenants limit 1").fetchone():
                raise CommandRefused(
                    "the database is not empty", fix="Restore into a new one, and point servers there."
                )
            for table in manifest.tables:
                _copy_in(db, table, archive)
            # COPY brought the ids along, which does not advance the sequence.
            db.execute(NEXT_AUDIT_ID)
            if go_on:
                db.execute("update tenants set feed_head = feed_head + %s", (JUMP,))
                db.execute(JUMP_LEASES, (JUMP,))
    return manifest


NEXT_AUDIT_ID = (
    "select setval(pg_get_serial_sequence('audit', 'id'), (select coalesce(max(id), 0) + 1 from audit), false)"
)
JUMP_LEASES = """
update leases set lease = lease || jsonb_build_object('token', coalesce((lease->>'token')::bigint, 0) + %s,
  'machine', '', 'session', '', 'person', '', 'until', 0)
"""
"""Who held which lease at the time of the backup is unknown now: nobody does, and the next token is higher than any
given out."""


def _read_manifest(archive: zipfile.ZipFile) -> Manifest:
    try:
        manifest = msgspec.json.decode(archive.read(MANIFEST), type=Manifest)
    except (KeyError, msgspec.DecodeError) as error:
        raise CommandRefused("this is no backup of a team") from error
    names = [name for table in manifest.tables for name in (table.name, *table.columns, *table.key)]
    # The manifest comes from a file: only valid table names may enter statements.
    if not all(re.fullmatch(r"[a-z_]{1,60}", name) for name in names):
        raise CommandRefused("this is no backup of a team")
    return manifest


def _copy_in(db: Database, table: TableCopy, archive: zipfile.ZipFile) -> None:
    digest = hashlib.sha256()
    statement = sql.SQL("copy {} ({}) from stdin").format(sql.Identifier(table.name), _names(table.columns))
    with db.cursor().copy(statement) as copy:
        for piece in _pieces(archive, f"{table.name}.copy"):
            digest.update(piece)
            copy.write(piece)
    if digest.hexdigest() != table.digest:
        raise CommandRefused(f"the backup is damaged: {table.name} is not what was written")


def _pieces(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    try:
        with archive.open(name) as source:
            while piece := source.read(1 << 20):
                yield piece
    except (KeyError, zipfile.BadZipFile) as error:
        raise CommandRefused(f"the backup is damaged: {name}") from error


# ── the drill ────────────────────────────────────────────────────────────────────────────────────────────────────────


def drill_backup(url: str, file: Path) -> Manifest:
    """Restore into a separate schema next to the current one, export that again, compare, and drop it."""
    # PostgreSQL cuts names at 63 bytes.
    schema = f"{team_schema(url)[:40]}_drill_{os.getpid()}"
    beside = in_schema(url, schema)
    again = file.with_name(f"{file.name}.drill-{os.getpid()}")
    try:
        told = restore_backup(beside, file, go_on=False)
        second = {table.name: table.digest for table in write_backup(beside, again).tables}
        different = [table.name for table in told.tables if second.get(table.name) != table.digest]
        if different:
            raise CommandRefused(f"the backup does not come back as it was: {', '.join(different)}")
        return told
    finally:
        again.unlink(missing_ok=True)
        with owner_connection(url) as db:
            db.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))


def in_schema(url: str, schema: str) -> str:
    """The same address for another schema; its other options stay."""
    options = str(parse_address(url).get("options") or "")
    # The `-c search_path=…` among the options, and then the whole `options=…` of the address.
    kept = re.sub(r"-c\s*search_path\s*=\s*\S+", "", options).strip()
    wanted = quote(f"{kept} -c search_path={schema}".strip())
    bare = re.sub(r"([?&])options=[^&]*&?", r"\1", url).rstrip("?&")
    return f"{bare}{'&' if '?' in bare else '?'}options={wanted}"
