"""Starts a team server, and performs the operator's acts: tenants, retention."""

import contextlib
import os
import socket
import threading
from collections.abc import Mapping
from typing import Any

import msgspec
import psycopg

from holdfast.core.errors import BadSettings, CommandRefused
from holdfast.core.machine import collect_garbage_rarely
from holdfast.core.times import DAY, now_ms
from holdfast.stores import hide_password
from holdfast_team.protocol import CodeIssued
from holdfast_team.server.database import migrate_database, owner_connection, remove_old_events
from holdfast_team.server.limits import log_line
from holdfast_team.server.sign_on import SignOnSettings, is_safe_address
from holdfast_team.server.tenancy import hash_secret, new_secret

URL_VARIABLE, OIDC_SECRET_VARIABLE = "HOLDFAST_TEAM_DATABASE", "HOLDFAST_TEAM_OIDC_SECRET"
# Days that events are kept, by the level at which they were sent.
RETENTION_DAYS: Mapping[str, int] = {"presence": 365, "facts": 365, "summaries": 180, "full": 30}
HOUSEKEEPING_S = 6 * 3600.0
FIRST_CODE_MS = DAY


def database_url(option: str) -> str:
    """From the environment, because other users could read a password on the command line."""
    url = option or os.environ.get(URL_VARIABLE, "")
    if not url.startswith(("postgresql://", "postgres://")):
        raise BadSettings("no PostgreSQL database is named", fix=f"Set {URL_VARIABLE}=postgresql://USER@HOST/DATABASE.")
    return url


def serve_team(
    url: str,
    host: str,
    port: int,
    connections: int = 8,
    certificate: str = "",
    key: str = "",
    fd: int = -1,
    public_url: str = "",
) -> None:
    """Run until stopped. `fd`: a listening socket."""
    import uvicorn

    from holdfast_team.server.app import TeamServer

    migrate_database(url)
    stopping = threading.Event()
    threading.Thread(target=_keep_house, args=(url, stopping), name="housekeeping", daemon=True).start()
    collect_garbage_rarely()
    with contextlib.ExitStack() as stack:
        stack.callback(stopping.set)
        team = TeamServer(url, connections, public_url, os.environ.get(OIDC_SECRET_VARIABLE, ""))
        config = uvicorn.Config(
            team.build_app(), host=host, port=port, log_level="warning", access_log=False,
            server_header=False, ssl_certfile=certificate or None, ssl_keyfile=key or None, timeout_graceful_shutdown=3,
        )  # fmt: skip
        sockets = [socket.socket(fileno=fd)] if fd >= 0 else None
        uvicorn.Server(config).run(sockets)


def _keep_house(url: str, stopping: threading.Event) -> None:
    """Create partitions and remove old rows; without the database, next time."""
    while not stopping.is_set():
        try:
            log_line("housekeeping", removed=remove_old_events(url, RETENTION_DAYS))
        except Exception as error:
            log_line("housekeeping.failed", error=f"{type(error).__name__}: {hide_password(str(error))}"[:300])
        stopping.wait(HOUSEKEEPING_S)


def add_tenant(url: str, tenant: str, admin: str) -> CodeIssued:
    """Create the tenant if it is new, and a code with which its first admin joins."""
    if not tenant or len(tenant) > 64 or not tenant.replace("-", "").isalnum():
        raise CommandRefused("a tenant's name has letters, digits and dashes, 64 at most")
    code, now = new_secret("join"), now_ms()
    with owner_connection(url) as db, db.transaction():
        db.execute(
            "insert into tenants (tenant, name, created_at) values (%s, %s, %s) on conflict do nothing",
            (tenant, tenant, now),
        )
        db.execute(
            "insert into codes (tenant, code_hash, person, role, until) values (%s, %s, %s, 'admin', %s)",
            (tenant, hash_secret(code), admin, now + FIRST_CODE_MS),
        )
        about = {"person": admin, "role": "admin", "at": "the server's own command line"}
        _note_operator(db, tenant, "code.issued", about)
    return CodeIssued(code=code, person=admin, role="admin", until=now + FIRST_CODE_MS)


def set_sign_on(url: str, tenant: str, settings: SignOnSettings) -> None:
    """Set how people of the tenant sign on."""
    if not is_safe_address(settings.issuer):
        raise CommandRefused("a provider is reached by https", fix="Only on this machine itself may it be http.")
    with owner_connection(url) as db, db.transaction():
        _need_tenant(db, tenant)
        db.execute(
            "insert into sign_on (tenant, issuer, client_id, claim, domain, role) values (%s, %s, %s, %s, %s, %s)"
            " on conflict (tenant) do update set issuer = excluded.issuer, client_id = excluded.client_id,"
            " claim = excluded.claim, domain = excluded.domain, role = excluded.role",
            (tenant, settings.issuer, settings.client_id, settings.claim, settings.domain, settings.role),
        )
        _note_operator(db, tenant, "sign_on.set", msgspec.to_builtins(settings))


def set_quota(url: str, tenant: str, events_per_day: int) -> None:
    """0 means unlimited."""
    with owner_connection(url) as db, db.transaction():
        _need_tenant(db, tenant)
        db.execute("update tenants set events_per_day = %s where tenant = %s", (max(0, events_per_day), tenant))
        _note_operator(db, tenant, "quota.set", {"events_per_day": events_per_day})


def _need_tenant(db: psycopg.Connection[dict[str, Any]], tenant: str) -> None:
    if not db.execute("select 1 from tenants where tenant = %s for update", (tenant,)).fetchone():
        raise CommandRefused(
            f"there is no tenant {tenant[:64]!r}", fix="Run: holdfast team server tenant NAME --admin PERSON"
        )


def _note_operator(db: psycopg.Connection[dict[str, Any]], tenant: str, act: str, about: Mapping[str, Any]) -> None:
    db.execute(
        "insert into audit (tenant, at, by_person, act, about) values (%s, %s, %s, %s, %s)",
        (tenant, now_ms(), "operator", act, msgspec.json.encode(about).decode()),
    )
