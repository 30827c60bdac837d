"""`holdfast state …` and `holdfast resolve`: what is true of this project, now or then.

Agents and prompts ask for `state show` again and again: it loads nothing that only the others need to look good.
"""

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import client
from holdfast.cli.options import Json
from holdfast.core.errors import CommandRefused

app = typer.Typer(help="What is true of this project and what needs doing.", invoke_without_command=True)

At = Annotated[
    str, typer.Option("--at", help="As it was then: 2025-11-16T10:45:00Z, 10:45, 2h, 3d, or an event's number.")
]
File = Annotated[Path, typer.Argument(help="A SESSION_STATE file; - is standard input.")]
LARGEST = 1 << 20
PATIENCE_S = 30.0


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="state")
    root.command()(resolve)


@app.callback()
def state(context: typer.Context, at: At = "", json: Json = False) -> None:
    """Without a command: the same as `state show`."""
    if context.invoked_subcommand is None:
        show(at=at, json=json)


@app.command()
def show(at: At = "", json: Json = False) -> None:
    """The whole document, as it is or as it was."""
    told = client.view("project.state", at=at)
    if not at and told["document"]["CURRENT_STATE"]["git"]["repository"] is None:
        _look()
        told = client.view("project.state")
    if json:
        from holdfast.cli import render

        render.json_line(told["document"])
    else:
        _print_text(told["text"])


@app.command()
def refresh(json: Json = False) -> None:
    """Look at the project now and wait until that is done."""
    from holdfast.cli import render

    _look()
    told = client.view("project.tasks")
    if json:
        render.json_line({"root": told["root"], "tasks": len(told["tasks"])})
    else:
        render.out.print(f"Looked at {render.clean(told['root'])}: {len(told['tasks'])} open tasks.")


def _look() -> None:
    client.command("project.look")
    deadline = time.monotonic() + PATIENCE_S
    while (told := client.view("project.looking"))["waiting"]:
        if told["error"]:
            raise CommandRefused(f"the look at the project failed: {told['error']}", fix="See: holdfast daemon logs")
        if time.monotonic() > deadline:
            raise CommandRefused(
                f"the look at the project took more than {PATIENCE_S:.0f} s", fix="It goes on by itself."
            )
        time.sleep(0.02)


@app.command()
def diff(
    a: Annotated[str, typer.Argument(help="A time or the number of an event.")],
    b: Annotated[str, typer.Argument(help="Another; default: now.")] = "now",
    json: Json = False,
) -> None:
    """What changed between two moments."""
    from rich.text import Text

    from holdfast.cli import render

    told = client.view("project.diff", a=a, b=b)
    if json:
        render.json_line(told)
        return
    for one in told["differences"]:
        line = Text(f"{render.clean(one['path'], 80)}: ")
        line.append(_brief(one["before"]), style="red")
        line.append(" → ")
        line.append(_brief(one["after"]), style="green")
        render.out.print(line)
    if not told["differences"]:
        render.out.print("Nothing differs.")


def _brief(value: Any) -> str:
    from holdfast.cli import render

    if isinstance(value, dict):
        return render.clean(value.get("description") or value.get("summary") or value.get("path") or value, 80)
    return render.clean("nothing" if value is None else value, 80)


@app.command()
def validate(file: File, json: Json = False) -> None:
    """Is a state file valid by the published schema? Exit 1 if not."""
    from holdfast.api.session_state import check
    from holdfast.cli import render

    told = check(_read(file), str(file))
    if json:
        render.json_line(told)
    elif told["valid"]:
        render.out.print(f"{file}: valid, version {told['version']}")
    else:
        render.out.print(f"{file}: not valid")
        for problem in told["problems"]:
            render.out.print(f"  {render.clean(problem, 300)}")
    raise typer.Exit(0 if told["valid"] else 1)


@app.command()
def migrate(
    file: File,
    write: Annotated[bool, typer.Option("--write", help="Replace the file; the old one is kept beside it.")] = False,
    observe: Annotated[bool, typer.Option(help="Fill in what is observed here now.")] = True,
    json: Json = False,
) -> None:
    """A version 3 (or minimal version 4) file as version 4, to standard output."""
    from holdfast.api.session_state import parsed
    from holdfast.cli import render

    told = client.view("project.migrate", state=parsed(_read(file), str(file)), observe=observe)
    if write:
        kept = _replace(file, told["text"])
        told["kept"] = str(kept)
    if json:
        render.json_line(told)
    elif write:
        render.out.print(f"{file}: now version 4; the old one is {told['kept']}")
    else:
        _print_text(told["text"])


def _print_text(text: str) -> None:
    from holdfast.core.text import strip_controls

    print(strip_controls(text), end="")


def _replace(file: Path, text: str) -> Path:
    from holdfast.paths import write_atomically

    kept = file.with_name(f"{file.name}.v3-{time.strftime('%Y%m%d-%H%M%S')}")
    kept.write_bytes(file.read_bytes())
    write_atomically(file, text.encode())
    return kept


@app.command()
def schema() -> None:
    """The published JSON Schema of the document."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(client.view("project.schema"))).decode())


def _read(file: Path) -> str:
    try:
        if str(file) == "-":
            import sys

            return sys.stdin.read(LARGEST)
        if file.stat().st_size > LARGEST:
            raise CommandRefused(f"{file} is larger than {LARGEST >> 20} MB")
        return file.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise CommandRefused(f"{file}: {error.strerror}") from error


def resolve(
    set_: Annotated[str, typer.Option("--set", help="Say which project this is.")] = "",
    clear: Annotated[bool, typer.Option("--clear", help="Take that back.")] = False,
    json: Json = False,
) -> None:
    """Which project is this, how sure is that, and by which signals."""
    from rich.text import Text

    from holdfast.cli import render

    override = os.environ.get("CLAUDE_PROJECT", "")
    told = client.command("project.resolve", set=set_, clear=clear, override=override, cwd=str(Path.cwd()))
    if json:
        render.json_line(told)
        return
    render.out.print(f"{told['project']}  ({told['confidence']:.0%} sure)")
    for name, signal in told["signals"].items():
        said = signal["project"] or "nothing"
        render.out.print(
            f"  {name:<14} {render.clean(said, 30):<30} {signal['confidence']:.1f}  {render.clean(signal['reason'])}"
        )
    for other in told["alternatives"]:
        render.out.print(
            Text(f"  or {other['project']} ({other['confidence']:.0%}): {render.clean(other['reason'])}", style="dim")
        )
