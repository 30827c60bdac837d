"""Starting a team server, and what only whoever runs it may do: tenants, retention."""

import contextlib
import os
import socket
import threading
from collections.abc import Mapping

import msgspec

from holdfast.core.errors import BadSettings, CommandRefused
from holdfast.team.protocol import CodeIssued
from holdfast.team.server.acts import hash_secret, new_secret
from holdfast.team.server.database import migrate_database, now_ms, owner_connection, remove_old_events

URL_VARIABLE = "HOLDFAST_TEAM_DATABASE"
RETENTION_DAYS: Mapping[str, int] = {"presence": 365, "facts": 365, "summaries": 180, "full": 30}
HOUSEKEEPING_S = 6 * 3600.0
FIRST_CODE_MS = 24 * 3_600_000


def database_url(given: str) -> str:
    """In the environment rather than on the command line, where other users of the machine could read a password."""
    url = given or os.environ.get(URL_VARIABLE, "")
    if not url.startswith(("postgresql://", "postgres://")):
        raise BadSettings("no PostgreSQL database is named", fix=f"Set {URL_VARIABLE}=postgresql://USER@HOST/DATABASE.")
    return url


def serve_team(
    url: str, host: str, port: int, connections: int = 8, certificate: str = "", key: str = "", fd: int = -1
) -> None:
    """Until it is ended. `fd`: a socket that listens already."""
    import uvicorn

    from holdfast.team.server.app import TeamServer

    migrate_database(url)
    stopping = threading.Event()
    threading.Thread(target=_keep_house, args=(url, stopping), name="housekeeping", daemon=True).start()
    with contextlib.ExitStack() as stack:
        stack.callback(stopping.set)
        config = uvicorn.Config(
            TeamServer(url, connections).build_app(), host=host, port=port, log_level="warning", access_log=False,
            server_header=False, ssl_certfile=certificate or None, ssl_keyfile=key or None, timeout_graceful_shutdown=3,
        )  # fmt: skip
        sockets = [socket.socket(fileno=fd)] if fd >= 0 else None
        uvicorn.Server(config).run(sockets)


def _keep_house(url: str, stopping: threading.Event) -> None:
    """Partitions ahead of time, and what is too old. Where the database is gone now, next time."""
    while not stopping.is_set():
        with contextlib.suppress(Exception):
            remove_old_events(url, RETENTION_DAYS)
        stopping.wait(HOUSEKEEPING_S)


def add_tenant(url: str, tenant: str, admin: str) -> CodeIssued:
    """The tenant, where it is new, and a code with which its first admin joins."""
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
        about = msgspec.json.encode({"person": admin, "role": "admin", "at": "the server's own command line"}).decode()
        db.execute(
            "insert into audit (tenant, at, by_person, act, about) values (%s, %s, %s, 'code.issued', %s)",
            (tenant, now, "operator", about),
        )
    return CodeIssued(code=code, person=admin, role="admin", until=now + FIRST_CODE_MS)
