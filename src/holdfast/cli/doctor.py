"""`holdfast doctor`: what is wrong, one line each, with the command that mends it."""

from typing import Annotated

import typer
from rich.text import Text

from holdfast.cli import render
from holdfast.cli.options import Json
from holdfast.doctor.checks import run_checks
from holdfast.doctor.finding import Finding


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Mend what is safe to mend.")] = False, json: Json = False
) -> None:
    """Look for everything that is known to go wrong. Exit 1 when something needs you."""
    found = run_checks()
    mended = [_mend(finding) for finding in found if fix and finding.safely]
    left = [f for f in found if not (fix and f.safely)]
    if json:
        render.json_line({"findings": [{"problem": f.problem, "mend": f.mend} for f in left], "mended": mended})
    else:
        _show(left, mended)
    raise typer.Exit(1 if left else 0)


def _show(left: list[Finding], mended: list[str]) -> None:
    for line in mended:
        render.out.print(Text(f"mended  {line}", style="green"))
    for finding in left:
        render.out.print(Text(f"!  {finding.problem}", style="yellow") + Text(f"   mend: {finding.mend}", style="dim"))
    if not left:
        render.out.print("No problems found.")


def _mend(finding: Finding) -> str:
    if finding.safely:
        finding.safely()
    return finding.problem
