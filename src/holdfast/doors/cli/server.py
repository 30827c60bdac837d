"""`holdfast team server …`: the team server on PostgreSQL, for its operator."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.core.errors import CommandRefused
from holdfast.core.network import is_loopback
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json

app = typer.Typer(help="Run a team server on PostgreSQL.", no_args_is_help=True)

Database = Annotated[
    str, typer.Option("--database", help="postgresql://USER@HOST/DATABASE. Default: HOLDFAST_TEAM_DATABASE.")
]


@app.command()
def run(
    database: Database = "",
    host: Annotated[str, typer.Option("--host", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535)] = 8484,
    connections: Annotated[int, typer.Option("--connections", min=2, max=200, help="To PostgreSQL, at most.")] = 8,
    certificate: Annotated[str, typer.Option("--certificate", help="A PEM file; without one, put TLS in front.")] = "",
    key: Annotated[str, typer.Option("--key", help="The certificate's key.")] = "",
    public_url: Annotated[
        str, typer.Option("--public-url", help="Where browsers reach it, for single sign-on behind a proxy.")
    ] = "",
    # For a process manager that hands over a listening socket.
    fd: Annotated[int, typer.Option("--fd", hidden=True)] = -1,
    without_tls: Annotated[
        bool, typer.Option("--without-tls", help="Beyond loopback without a certificate: a proxy in front has TLS.")
    ] = False,
) -> None:
    """Serve until stopped. Any number of servers may share one database."""
    if not (certificate or without_tls or fd >= 0 or is_loopback(host)):
        raise CommandRefused(
            f"tokens and prompts would cross the network in plain text: {host} is not loopback, and there is no certificate",
            fix="Give --certificate and --key, or --without-tls if a proxy in front of it has TLS.",
        )
    from holdfast_team.server.run import serve_team

    serve_team(_address(database), host, port, connections, certificate, key, fd, public_url)


@app.command()
def migrate(database: Database = "") -> None:
    """Migrate the tables to this version; servers of the previous version may keep running."""
    from holdfast_team.server.database import migrate_database

    render.out.print(f"The tables are of version {migrate_database(_address(database))}.")


@app.command()
def tenant(
    name: Annotated[str, typer.Argument(help="Letters, digits and dashes.")],
    admin: Annotated[str, typer.Option("--admin", help="The person who joins with the code that is printed.")],
    database: Database = "",
    json: Json = False,
) -> None:
    """Add a tenant, or print a new code for an admin of an existing one."""
    from holdfast_team.server.database import migrate_database
    from holdfast_team.server.run import add_tenant

    url = _address(database)
    migrate_database(url)
    issued = add_tenant(url, name, admin)
    render.finish_as_json(json, {"tenant": name, "admin": admin, "code": issued.code, "until": issued.until})
    print(issued.code)
    render.err.print(f"{admin} joins {name} with it, within a day: holdfast team join URL --code CODE")


@app.command("sign-on")
def sign_on(
    tenant: Annotated[str, typer.Argument(help="The tenant.")],
    issuer: Annotated[str, typer.Option("--issuer", help="The OpenID Connect provider: https://HOST/…")],
    client_id: Annotated[str, typer.Option("--client-id", help="What this server is called there.")],
    claim: Annotated[str, typer.Option("--claim", help="The claim that names a person.")] = "email",
    domain: Annotated[str, typer.Option("--domain", help="People with such an address join by signing on.")] = "",
    role: Annotated[str, typer.Option("--role", help="What they are then.")] = "member",
    database: Database = "",
) -> None:
    """Let people sign on by OpenID Connect. Without --domain only existing members may.

    Register URL/sign-on/callback at the provider. A client secret goes into HOLDFAST_TEAM_OIDC_SECRET of the server.
    """
    import msgspec

    from holdfast_team.server.database import migrate_database
    from holdfast_team.server.run import set_sign_on
    from holdfast_team.server.sign_on import SignOnSettings

    url = _address(database)
    migrate_database(url)
    given = {"issuer": issuer, "client_id": client_id, "claim": claim, "domain": domain, "role": role}
    try:
        settings = msgspec.convert(given, SignOnSettings)
    except msgspec.ValidationError as error:
        raise CommandRefused(f"there is no role {role[:40]!r}", fix="Roles: viewer, member, lead, admin.") from error
    set_sign_on(url, tenant, settings)
    render.out.print(f"{tenant} signs on by {issuer}. People begin at URL/sign-on/{tenant}")


@app.command()
def quota(
    tenant: Annotated[str, typer.Argument(help="The tenant.")],
    events_per_day: Annotated[int, typer.Option("--events-per-day", min=0, help="0 = no limit.")],
    database: Database = "",
) -> None:
    """Limit what a tenant may send in a day, over all servers. The rest waits on the machines and is not lost."""
    from holdfast_team.server.run import set_quota

    set_quota(_address(database), tenant, events_per_day)
    render.out.print(f"{tenant}: {events_per_day or 'any number of'} events a day.")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="A new file; it is as secret as the database.")], database: Database = ""
) -> None:
    """Copy all tables, as of one moment, into a file, while servers run."""
    from holdfast_team.server.backup import write_backup

    told = write_backup(_address(database), file)
    render.out.print(f"{told.rows} rows of {len(told.tables)} tables are in {file}.")


@app.command()
def restore(file: Annotated[Path, typer.Argument(help="A backup.")], database: Database = "") -> None:
    """Restore a backup into an empty database. Machines then send again what it lacks."""
    from holdfast_team.server.backup import restore_backup

    told = restore_backup(_address(database), file)
    render.out.print(f"{told.rows} rows of {len(told.tables)} tables are back.")


@app.command()
def drill(file: Annotated[Path, typer.Argument(help="A backup.")], database: Database = "") -> None:
    """Test a backup: restore it next to the current tables, compare every table, and remove it again."""
    from holdfast_team.server.backup import drill_backup

    told = drill_backup(_address(database), file)
    render.out.print(f"The backup is good: {told.rows} rows of {len(told.tables)} tables came back as they were.")


def _address(database: str) -> str:
    try:
        import psycopg_pool  # noqa: F401
    except ImportError as error:
        raise CommandRefused(
            "the team server needs psycopg", fix="Run: pip install 'holdfast-agents[server]'"
        ) from error
    from holdfast_team.server.run import database_url

    return database_url(database)
