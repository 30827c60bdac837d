"""`holdfast serve`: the web server in the foreground."""

from typing import Annotated

import typer

from holdfast import client
from holdfast.doors.cli import render
from holdfast.doors.cli.dashboard import dashboard
from holdfast.doors.cli.demo import demo
from holdfast.doors.cli.mcp import mcp
from holdfast.doors.cli.web_options import needs_web, port_or_default


def register(app: typer.Typer) -> None:
    for verb in (serve, dashboard, mcp, demo):
        app.command()(verb)


def serve(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="On 127.0.0.1, never elsewhere.")] = 0,
) -> None:
    """Run the web server here: the dashboard, the API, and the session API under /api/oak/ci/."""
    needs_web()
    from holdfast.doors.web import server

    client.start_daemon()

    def tell(web_context: server.WebContext) -> None:
        render.out.print(f"Listening on {web_context.address}/api/oak/ci/ (Ctrl-C ends it)")
        render.out.print(f"Dashboard: {web_context.new_link()}")

    server.serve_dashboard(client.state_paths(), port_or_default(port), tell=tell)
