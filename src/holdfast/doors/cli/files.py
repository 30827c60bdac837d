"""`holdfast files`: everything Holdfast has written on this machine."""

from pathlib import Path

import msgspec
import typer
from rich.text import Text

from holdfast import client
from holdfast.core.times import format_bytes
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json
from holdfast.setup.doctor.agent_checks import short_path


def register(app: typer.Typer) -> None:
    app.command()(files)


def files(json: Json = False) -> None:
    """List everything Holdfast has written on this machine. `holdfast uninstall` takes out what is outside its folders."""
    from holdfast.setup.written import list_written

    found = list_written(client.state_paths())
    render.finish_as_json(json, [msgspec.to_builtins(one) for one in found])
    if not found:
        render.out.print("Holdfast has written nothing on this machine.")
        return
    for one in found:
        render.out.print(Text(render.clean_line(short_path(Path(one.path)), 300)))
        render.hint(f"    {one.what}" if one.shared else f"    {one.what}, {format_bytes(one.size)}")
