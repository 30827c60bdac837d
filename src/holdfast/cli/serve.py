"""`holdfast serve`: the web server in the foreground: the dashboard, the API and the earlier session API."""

from typing import Annotated

import typer

from holdfast import client
from holdfast.app import open_settings
from holdfast.cli import render
from holdfast.core.errors import CommandRefused


def register(app: typer.Typer) -> None:
    app.command()(serve)


def needs_web() -> None:
    try:
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        missing = f"the web part is not installed ({error.name})"
        raise CommandRefused(missing, fix="Install Holdfast again: its web parts are missing.") from None


def port_or_default(port: int) -> int:
    return port or open_settings().for_project("")["dashboard"].port


def serve(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="On 127.0.0.1, never elsewhere.")] = 0,
) -> None:
    """Run the web server here: the dashboard, the API, and the session API under /api/oak/ci/."""
    needs_web()
    from holdfast.web import server

    client.start_daemon()

    def tell(web_context: server.WebContext) -> None:
        render.out.print(f"Listening on {web_context.address}/api/oak/ci/ (Ctrl-C ends it)")
        render.out.print(f"Dashboard: {web_context.new_link()}")

    server.serve_dashboard(client.state_paths(), port_or_default(port), tell=tell)
