"""`holdfast serve`: the HTTP door of seed 004, in the foreground."""

from typing import Annotated

import typer

from holdfast.cli import client, render
from holdfast.core.errors import CommandRefused

PORT = 8417


def register(app: typer.Typer) -> None:
    app.command()(serve)


def serve(
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="On 127.0.0.1, never elsewhere.")] = PORT,
) -> None:
    """Take seed 004's five requests under /api/oak/ci/ over HTTP, on loopback only."""
    try:
        from holdfast.web import server
    except ImportError as error:
        missing = f"the web part is not installed ({error.name})"
        raise CommandRefused(missing, fix="pip install 'holdfast[web]'") from None
    client.start_daemon()
    render.out.print(f"Listening on http://127.0.0.1:{port}/api/oak/ci/ (Ctrl-C ends it)")
    server.serve(client.paths(), port)
