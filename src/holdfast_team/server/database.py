"""PostgreSQL under the team server: migrations, partitions, and transactions confined to one tenant."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from holdfast.core.errors import BadSettings, SchemaTooNew, StoreUnavailable
from holdfast.core.times import DAY, now_ms
from holdfast.stores import hide_password
from holdfast_team.server.connection import PATIENCE, team_schema

ROLE = "holdfast_team_app"
"""Owns nothing and cannot bypass row-level security: the server's role while it answers requests."""
APPEND_ONLY = frozenset(("audit", "receipts"))
MONTHS_AHEAD = 2
# Any number that is the same in all servers; its bytes spell "Hole".
MIGRATION_LOCK = 0x486F6C65
STATEMENT_MS = 30_000
# Milliseconds a step waits for a table, how often it retries, and seconds in between.
STEP_WAIT_MS, STEP_ATTEMPTS, STEP_PAUSE_S = 2_000, 30, 1.0
LOST = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction)
"""A connection that ended, or whose server became a replica: another one may reach the new primary."""
TOO_LARGE = (psycopg.errors.ProgramLimitExceeded, psycopg.errors.StatementTooComplex)
"""What PostgreSQL can never store: a name too long for an index, nesting too deep. The driver counts these among lost
connections, and a machine would then resend the batch for ever."""

AsyncConnection = psycopg.AsyncConnection[dict[str, Any]]


# ── migrations, as the owner ─────────────────────────────────────────────────────────────────────────────────────────


def migrate_database(url: str) -> int:
    """Migrate the tables to this version, one transaction per step, while other servers run; return the version.

    An older server starts too, if the newest step allows it (`-- oldest: N`).
    """
    with owner_connection(url) as db:
        _create_role(db)
        _create_schema(db, team_schema(url))
        db.execute("select pg_advisory_lock(%s)", (MIGRATION_LOCK,))  # Until this connection ends.
        have, oldest = _stored_version(db)
        migrations = _load_migrations()
        if have > max(migrations) and oldest > max(migrations):
            raise SchemaTooNew(f"its tables are of version {have}", fix="Update Holdfast on this server.")
        for number in sorted(n for n in migrations if n > have):
            _run_step(db, number, migrations[number], team_schema(url))
        with db.transaction():
            _protect_tables(db, team_schema(url))
            _create_partitions(db, now_ms())
        return max(have, *migrations)


def _stored_version(db: psycopg.Connection[dict[str, Any]]) -> tuple[int, int]:
    """(version of the tables, the oldest server version that may run on them)"""
    db.execute("create table if not exists migrations (version integer primary key, at bigint not null)")
    db.execute("alter table migrations add column if not exists oldest integer not null default 1")
    found = db.execute(
        "select coalesce(max(version), 0) as n, coalesce(max(oldest), 1) as o from migrations"
    ).fetchone()
    return (int(found["n"]), int(found["o"])) if found else (0, 1)


def _run_step(db: psycopg.Connection[dict[str, Any]], number: int, text: str, schema: str) -> None:
    """Requests continue meanwhile: a step that cannot lock a table at once lets them pass and retries."""
    # A line such as `-- oldest: 3` in the step's file.
    said = re.search(r"^-- oldest: (\d+)", text, re.M)
    for attempt in range(STEP_ATTEMPTS):
        try:
            with db.transaction():
                db.execute(f"set local lock_timeout = {STEP_WAIT_MS}")
                db.execute(_fill_placeholders(text, schema))
                db.execute(
                    "insert into migrations values (%s, %s, %s)", (number, now_ms(), int(said[1]) if said else 1)
                )
            return
        except psycopg.errors.LockNotAvailable:
            if attempt == STEP_ATTEMPTS - 1:
                raise
            time.sleep(STEP_PAUSE_S)


@contextlib.contextmanager
def owner_connection(url: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """For the operator's acts: migrate, add tenants, remove old rows."""
    try:
        db = psycopg.connect(url, autocommit=True, row_factory=dict_row, connect_timeout=5)
    except psycopg.OperationalError as error:
        raise StoreUnavailable(hide_password(str(error).strip()), fix="Is PostgreSQL up?") from error
    except psycopg.ProgrammingError as error:
        raise BadSettings(f"the address cannot be read: {hide_password(url)}") from error
    with db:
        db.execute(sql.SQL("set search_path to {}").format(sql.Identifier(team_schema(url))))
        yield db


def _load_migrations() -> dict[int, str]:
    folder = files("holdfast_team.server") / "sql"
    named = {re.match(r"(\d+)_", one.name): one for one in folder.iterdir()}
    return {int(match[1]): one.read_text("utf-8") for match, one in named.items() if match}


def _fill_placeholders(text: str, schema: str) -> sql.SQL:
    return sql.SQL(text.replace(":schema", f'"{schema}"').replace(":role", ROLE))


def _create_role(db: psycopg.Connection[dict[str, Any]]) -> None:
    role = sql.Identifier(ROLE)
    if not db.execute("select 1 from pg_roles where rolname = %s", (ROLE,)).fetchone():
        try:
            db.execute(sql.SQL("create role {} nologin nobypassrls").format(role))
        except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            pass  # Another server was faster.
        except psycopg.errors.InsufficientPrivilege as error:
            raise BadSettings(
                f"the role {ROLE} is missing and this user may not create it",
                fix=f"As an administrator: CREATE ROLE {ROLE} NOLOGIN NOBYPASSRLS; GRANT {ROLE} TO the user of the server.",
            ) from error
    # An administrator may have granted it already, and this user may not.
    with contextlib.suppress(psycopg.errors.InsufficientPrivilege, psycopg.errors.InternalError_):
        db.execute(sql.SQL("grant {} to current_user").format(role))


def _create_schema(db: psycopg.Connection[dict[str, Any]], schema: str) -> None:
    if not db.execute("select 1 from pg_namespace where nspname = %s", (schema,)).fetchone():
        with contextlib.suppress(psycopg.errors.DuplicateSchema, psycopg.errors.UniqueViolation):
            db.execute(sql.SQL("create schema {}").format(sql.Identifier(schema)))


def _protect_tables(db: psycopg.Connection[dict[str, Any]], schema: str) -> None:
    """Apply the policy to every table with a tenant, including tables of later migrations."""
    db.execute(sql.SQL("grant usage on schema {} to {}").format(sql.Identifier(schema), sql.Identifier(ROLE)))
    for row in db.execute(TENANT_TABLES, (schema,)).fetchall():
        table = sql.Identifier(row["name"])
        if not row["protected"]:
            db.execute(sql.SQL("alter table {} enable row level security").format(table))
            db.execute(sql.SQL("create policy one_tenant on {} using ({}) with check ({})").format(table, OWN, OWN))
        rights = "select, insert" if row["name"] in APPEND_ONLY else "select, insert, update, delete"
        db.execute(sql.SQL("grant {} on {} to {}").format(sql.SQL(rights), table, sql.Identifier(ROLE)))


OWN = sql.SQL("tenant = (select current_setting('holdfast.tenant', true))")
"""As a subquery it is evaluated once, not per row."""
TENANT_TABLES = """
select c.relname as name, c.relrowsecurity as protected
from pg_class c join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant'
where n.nspname = %s and c.relkind in ('r', 'p') and not c.relispartition
"""


def _create_partitions(db: psycopg.Connection[dict[str, Any]], now: int) -> None:
    """This month and the next: earlier rows go to the default partition and are not lost."""
    month = datetime.fromtimestamp(now / 1000, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _ in range(MONTHS_AHEAD + 1):
        # December leads to January of the next year.
        after = month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
        name = f"events_{month:%Y_%m}"
        if not db.execute("select to_regclass(%s) as found", (name,)).fetchone()["found"]:  # type: ignore[index]
            statement = sql.SQL("create table {} partition of events for values from ({}) to ({})").format(
                sql.Identifier(name),
                sql.Literal(int(month.timestamp() * 1000)),
                sql.Literal(int(after.timestamp() * 1000)),
            )
            # Rows of that month are in the default partition already, so PostgreSQL refuses the new one.
            with contextlib.suppress(psycopg.errors.CheckViolation), db.transaction():
                db.execute(statement)
        month = after


OLD_ROWS = (
    ("delete from edited_files where at < %s", 30),
    ("delete from sessions where seen_at < %s", 365),
    ("delete from feed where kind in ('lease', 'lease_ended') and at < %s", 7),
    ("delete from browser_sessions where until < %s", 1),
    ("delete from sign_on_attempts where until < %s", 1),
    ("delete from daily_use where day < to_timestamp(%s / 1000.0)::date", 400),
)
"""Rows that nobody needs after so many days. A lease lasts an hour at most without a new item."""


def remove_old_events(url: str, days: Mapping[str, int]) -> int:
    """Retention by level: remove events received longer ago than the days of their level."""
    removed = 0
    with owner_connection(url) as db:
        _create_partitions(db, now_ms())
        for level, keep in days.items():
            before = now_ms() - keep * DAY
            removed += db.execute("delete from events where level = %s and received_at < %s", (level, before)).rowcount
        for statement, days_kept in OLD_ROWS:
            db.execute(statement, (now_ms() - days_kept * DAY,))
    return removed


# ── transactions of one tenant ───────────────────────────────────────────────────────────────────────────────────────


class TenantTransaction:
    """Statements that row-level security confines to one tenant."""

    def __init__(self, db: AsyncConnection, tenant: str) -> None:
        self._db, self.tenant = db, tenant

    async def execute(self, query: str, values: Mapping[str, Any] | None = None) -> int:
        """Return how many rows changed."""
        done = await self._db.execute(query, {**(values or {}), "tenant": self.tenant})
        return done.rowcount

    async def all(self, query: str, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        done = await self._db.execute(query, {**(values or {}), "tenant": self.tenant})
        return await done.fetchall()

    async def one(self, query: str, values: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        rows = await self.all(query, values)
        return rows[0] if rows else None


@lru_cache(16)
def _function_call(name: str, values: int) -> bytes:
    """Cached, because every request needs it."""
    marks = sql.SQL(", ").join([sql.Placeholder()] * values)
    return sql.SQL("select * from {}({})").format(sql.Identifier(name), marks).as_bytes(None)


class TeamDatabase:
    """A pool of connections, each restricted to the unprivileged role from its first moment."""

    def __init__(self, url: str, connections: int = 8) -> None:
        self.url, self.schema = url, team_schema(url)
        self._pool: AsyncConnectionPool[AsyncConnection] = AsyncConnectionPool(
            url, min_size=1, max_size=connections, open=False, timeout=10, configure=self._configure,
            kwargs={"row_factory": dict_row, "autocommit": True, **PATIENCE},
        )  # fmt: skip
        self._listeners: dict[str, set[asyncio.Event]] = {}
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._pool.open()
        self._listening = asyncio.create_task(self._listen())

    async def close(self) -> None:
        if self._listening:
            self._listening.cancel()
        await self._pool.close()

    async def _configure(self, db: AsyncConnection) -> None:
        await db.execute(sql.SQL("set search_path to {}").format(sql.Identifier(self.schema)))
        await db.execute(sql.SQL("set role {}").format(sql.Identifier(ROLE)))
        await db.execute(f"set statement_timeout = {STATEMENT_MS}")
        # Acknowledged means durable; a server default of `off` would break that promise, a stronger one is kept.
        await db.execute(
            "select set_config('synchronous_commit', 'on', false)"
            " where current_setting('synchronous_commit') in ('off', 'local')"
        )

    @contextlib.asynccontextmanager
    async def transaction(self, tenant: str) -> AsyncIterator[TenantTransaction]:
        """Commits at its end; after an error the pool takes the connection back."""
        # Without the driver's pipeline: it costs twice the processor time of the round trips it saves to a near
        # database.
        async with self._connected(BEGIN.format(tenant)) as (db, _):
            yield TenantTransaction(db, tenant)
            await db.execute("commit")

    @contextlib.asynccontextmanager
    async def _connected(
        self, first: bytes | sql.Composed, values: Sequence[Any] = ()
    ) -> AsyncIterator[tuple[AsyncConnection, psycopg.AsyncCursor[dict[str, Any]]]]:
        """A connection that answered its first statement. After a failover every kept one may be dead."""
        # As often as dead connections may be in the pool, and once more.
        for left in reversed(range(self._pool.max_size + 1)):
            async with self._pool.connection() as db:
                try:
                    answer = await db.execute(first, values or None)
                except LOST:
                    await db.close()
                    if not left:
                        raise
                    continue
                yield db, answer
                return

    async def call_function(self, name: str, *values: Any) -> list[dict[str, Any]]:
        """Call a function that runs before a tenant is known."""
        # With the unprivileged role: the function itself reads one row by its hash.
        async with self._connected(_function_call(name, len(values)), values) as (_, answer):
            return await answer.fetchall()

    async def check(self) -> str:
        """Return why it is not ready; empty if it is. A role that could see every tenant is a reason."""
        try:
            async with self._pool.connection(timeout=3) as db:
                done = await db.execute(READINESS, (self.schema,))
                row = await done.fetchone()
        except psycopg.errors.UndefinedTable:
            row = None
        if not row or row["version"] < max(_load_migrations()):
            return "the tables are not migrated"
        if row["privileged"] or row["unprotected"]:
            return "row-level security is not in force"
        return "" if not row["read_only"] else "the database is read-only"

    def current_figures(self) -> dict[str, int]:
        """Figures of the pool, and how many requests wait for news."""
        waiting = sum(map(len, self._listeners.values()))
        return {**{name: int(value) for name, value in self._pool.get_stats().items()}, "feeds_waiting": waiting}

    # ── LISTEN / NOTIFY ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def channel(self) -> str:
        return f"holdfast_feed_{self.schema}"

    @contextlib.contextmanager
    def subscribe(self, tenant: str) -> Iterator[asyncio.Event]:
        """Set when the tenant's feed has something new, and after the listening connection was lost and restored."""
        event = asyncio.Event()
        self._listeners.setdefault(tenant, set()).add(event)
        try:
            yield event
        finally:
            self._listeners[tenant].discard(event)
            # Removed without waiters: otherwise every tenant that ever asked would stay.
            if not self._listeners[tenant]:
                del self._listeners[tenant]

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(psycopg.Error):
                # A connection outside the pool, listening for the server's lifetime.
                async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as db:
                    await db.execute(sql.SQL("listen {}").format(sql.Identifier(self.channel)))
                    # Notifications sent while nobody listened are lost: everybody looks once.
                    self._wake(self._listeners)
                    async for notice in db.notifies():
                        self._wake([notice.payload])
            await asyncio.sleep(1)

    def _wake(self, tenants: Sequence[str] | Mapping[str, Any]) -> None:
        for tenant in list(tenants):
            for event in self._listeners.get(tenant, ()):
                event.set()


BEGIN = sql.SQL("begin; select set_config('holdfast.tenant', {}, true)")
"""Two statements in one round trip, quoted by the driver."""
READINESS = f"""
select (select coalesce(max(version), 0) from migration_version()) as version,
       (select rolsuper or rolbypassrls from pg_roles where rolname = current_user) as privileged,
       exists ({TENANT_TABLES} and not c.relrowsecurity) as unprotected,
       pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as read_only
"""

Clock = Callable[[], int]
