"""`holdfast files`: everything Holdfast has written on this machine."""

import msgspec
import typer

from holdfast import client
from holdfast.core.times import format_bytes
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json


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
    table = render.plain_table("file or folder", "size", "what")
    for one in found:
        table.add_row(render.clean_line(one.path, 300), "" if one.shared else format_bytes(one.size), one.what)
    render.out.print(table)
