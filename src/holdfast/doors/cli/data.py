"""`holdfast data …`: the group under which the commands about the recorded data are listed."""

import typer

app = typer.Typer(help="Check, back up, import, export and erase what was recorded.")


@app.callback()
def data() -> None:
    """Check, back up, import, export and erase what was recorded."""


@app.command()
def export() -> None:
    """Export a session (the same as `holdfast session export`)."""
