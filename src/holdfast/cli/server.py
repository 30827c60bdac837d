"""`holdfast server …`: the team server on PostgreSQL, for whoever runs one."""

from typing import Annotated

import typer

from holdfast.cli import render
from holdfast.cli.options import Json
from holdfast.core.errors import CommandRefused

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
    fd: Annotated[int, typer.Option("--fd", hidden=True)] = -1,
) -> None:
    """Serve until it is ended. Any number of these may run on one database."""
    from holdfast.team.server.run import database_url, serve_team

    _need_packages()
    serve_team(database_url(database), host, port, connections, certificate, key, fd)


@app.command()
def migrate(database: Database = "") -> None:
    """Bring the tables up to this version; servers of the version before may go on running."""
    from holdfast.team.server.database import migrate_database
    from holdfast.team.server.run import database_url

    _need_packages()
    render.out.print(f"The tables are of version {migrate_database(database_url(database))}.")


@app.command()
def tenant(
    name: Annotated[str, typer.Argument(help="Letters, digits and dashes.")],
    admin: Annotated[str, typer.Option("--admin", help="The person who joins with the code that is printed.")],
    database: Database = "",
    json: Json = False,
) -> None:
    """Add a tenant, or print a new code for an admin of one that is there."""
    from holdfast.team.server.database import migrate_database
    from holdfast.team.server.run import add_tenant, database_url

    _need_packages()
    url = database_url(database)
    migrate_database(url)
    issued = add_tenant(url, name, admin)
    if json:
        render.json_line({"tenant": name, "admin": admin, "code": issued.code, "until": issued.until})
        return
    print(issued.code)
    render.err.print(f"{admin} joins {name} with it, within a day: holdfast team join URL --code CODE")


def _need_packages() -> None:
    try:
        import psycopg_pool  # noqa: F401
    except ImportError as error:
        raise CommandRefused(
            "the team server needs psycopg", fix="Run: pip install 'holdfast-agents[server]'"
        ) from error
