"""`holdfast state …` and `holdfast state resolve`: what is true of this project, now or then, loading only what that needs."""

import contextlib
import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import client
from holdfast.core.errors import CommandRefused
from holdfast.doors.cli.options import Json

app = typer.Typer(help="Show the state of this project.", invoke_without_command=True)

At = Annotated[
    str, typer.Option("--at", help="As it was then: 2025-11-16T10:45:00Z, 10:45, 2h, 3d, or an event's number.")
]
File = Annotated[Path, typer.Argument(help="A SESSION_STATE file; - is standard input.")]
LARGEST = 1 << 20
PATIENCE_S = 30.0
"""The first look at a large repository takes long."""


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="state")
    root.command()(resolve)


@app.callback()
def state(context: typer.Context, at: At = "", json: Json = False) -> None:
    """Without a command: in words, and what changed since yesterday."""
    if context.invoked_subcommand is None:
        if at or json:
            show(at=at, json=json)
        else:
            _say_in_words(fresh_view("project.state"))


def _say_in_words(answer: dict[str, Any]) -> None:
    from holdfast.doors.cli import render
    from holdfast.doors.state_words import change_sentences, state_sentences

    _print_text(as_of(answer).removeprefix("# "))
    if not answer["looked_at"]:
        return
    for sentence in state_sentences(answer["document"], answer["open"]):
        render.out.print(render.clean_line(sentence, 240))
    try:
        changes = change_sentences(client.ask_view("project.diff", a="1d", b="now")["differences"])
    except CommandRefused:  # Nothing was known of it a day ago.
        changes = []
    if changes:
        render.out.print("Since yesterday:")
    for change in changes:
        render.out.print(f"  {render.clean_line(change, 200)}")
    render.hint("The whole document: holdfast state show")


@app.command()
def show(at: At = "", json: Json = False) -> None:
    """Show the whole document, now or as of a moment."""
    answer = client.ask_view("project.state", at=at) if at else fresh_view("project.state")
    if json:
        from holdfast.doors.cli import render

        render.json_line(answer["document"])
    else:
        _print_text(as_of(answer) + answer["text"] if not at else answer["text"])


@app.command()
def refresh(json: Json = False) -> None:
    """Look at the project now and wait for the result."""
    from holdfast.doors.cli import render

    _refresh_project()
    answer = client.ask_view("project.tasks")
    render.finish_as_json(json, {"root": answer["root"], "tasks": len(answer["tasks"])})
    render.out.print(
        f"Looked at {render.clean_line(answer['root'])}: {render.counted(len(answer['tasks']), 'open task')}."
    )


def fresh_view(name: str, **args: Any) -> dict[str, Any]:
    """A view of the project, which looks at it. What the look found is recorded afterwards."""
    answer: dict[str, Any] = client.ask_view(name, **args)
    if not client.running_pid():  # Looking starts no daemon.
        return answer
    if not answer["looked_at"]:
        # A project never looked at has nothing to show: its first look is awaited.
        with contextlib.suppress(CommandRefused):
            _refresh_project()
            answer = client.ask_view(name, **args)
    elif answer["news"] or not answer["current"]:
        client.run_command("project.look", quick=True)
    return answer


def as_of(answer: dict[str, Any]) -> str:
    """A line with the age of the state if it could not be looked at now, or that it never was."""
    if not answer["looked_at"]:
        return "# Nothing is known of this project yet. Look at it: holdfast state refresh\n"
    if answer["current"]:
        return ""
    clock = time.strftime("%H:%M:%S", time.localtime(answer["looked_at"] / 1000))
    return f"# As of {clock}: a look took too long, files may have changed since.\n"


def _refresh_project() -> None:
    client.run_command("project.look", quick=False)
    deadline = time.monotonic() + PATIENCE_S
    while (progress := client.ask_view("project.looking"))["waiting"]:
        if progress["error"]:
            raise CommandRefused(
                f"the look at the project failed: {progress['error']}", fix="See: holdfast daemon logs"
            )
        if time.monotonic() > deadline:
            raise CommandRefused(
                f"the look at the project took more than {PATIENCE_S:.0f} s", fix="It continues in the background."
            )
        time.sleep(0.02)


@app.command()
def diff(
    a: Annotated[str, typer.Argument(help="A time or the number of an event.")],
    b: Annotated[str, typer.Argument(help="Another; default: now.")] = "now",
    json: Json = False,
) -> None:
    """Show what changed between two moments."""
    from rich.text import Text

    from holdfast.doors.cli import answered, render

    answer = answered.view(json, "project.diff", a=a, b=b)
    for one in answer["differences"]:
        line = Text(f"{render.clean_line(one['path'], 80)}: ")
        line.append(_brief_value(one["before"]), style="red")
        line.append(" → ")
        line.append(_brief_value(one["after"]), style="green")
        render.out.print(line)
    if not answer["differences"]:
        render.out.print("Nothing differs.")


def _brief_value(value: Any) -> str:
    from holdfast.doors.cli import render

    if isinstance(value, dict):
        return render.clean_line(value.get("description") or value.get("summary") or value.get("path") or value, 80)
    return render.clean_line("nothing" if value is None else value, 80)


@app.command()
def validate(file: File, json: Json = False) -> None:
    """Validate a state file against the published schema. Exits 1 if invalid."""
    from holdfast.doors.cli import render
    from holdfast.features.project.document.schema import check

    report = check(_read_text(file), str(file))
    code = 0 if report["valid"] else 1
    render.finish_as_json(json, report, code)
    render.out.print(f"{file}: valid, version {report['version']}" if report["valid"] else f"{file}: not valid")
    for problem in report["problems"]:
        render.out.print(f"  {render.clean_line(problem, 300)}")
    raise typer.Exit(code)


@app.command()
def migrate(
    file: File,
    write: Annotated[bool, typer.Option("--write", help="Replace the file and keep the old one next to it.")] = False,
    observe: Annotated[bool, typer.Option(help="Fill in what is observed now.")] = True,
    json: Json = False,
) -> None:
    """Convert a version 3 (or minimal version 4) file to version 4 on standard output."""
    from holdfast.doors.cli import render
    from holdfast.features.project.document.old_formats import parsed

    answer = client.ask_view("project.migrate", state=parsed(_read_text(file), str(file)), observe=observe)
    if write:
        backup = _replace_file(file, answer["text"])
        answer["kept"] = str(backup)
    render.finish_as_json(json, answer)
    if write:
        render.out.print(f"{file}: now version 4; the old one is {answer['kept']}")
    else:
        _print_text(answer["text"])


def _print_text(text: str) -> None:
    from holdfast.core.text import strip_controls

    print(strip_controls(text), end="")


def _replace_file(file: Path, text: str) -> Path:
    from holdfast.paths import write_atomically

    backup = file.with_name(f"{file.name}.v3-{time.strftime('%Y%m%d-%H%M%S')}")
    # The old file is kept before anything is written in its place.
    backup.write_bytes(file.read_bytes())
    write_atomically(file, text.encode())
    return backup


@app.command()
def schema() -> None:
    """Print the published JSON Schema of the document."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(client.ask_view("project.schema"))).decode())


def _read_text(file: Path) -> str:
    try:
        if str(file) == "-":
            import sys

            return sys.stdin.read(LARGEST)
        if file.stat().st_size > LARGEST:
            raise CommandRefused(f"{file} is larger than {LARGEST >> 20} MB")
        from holdfast.features.project.document.old_formats import decode_text

        return decode_text(file.read_bytes())
    except UnicodeDecodeError as error:
        raise CommandRefused(f"{file} is no text", fix="The file was left as it is.") from error
    except OSError as error:
        raise CommandRefused(f"{file}: {error.strerror}") from error


def resolve(
    set_: Annotated[str, typer.Option("--set", help="Say which project this is.")] = "",
    clear: Annotated[bool, typer.Option("--clear", help="Take that back.")] = False,
    json: Json = False,
) -> None:
    """Show which project this is, how certain that is, and by which signals."""

    from holdfast.doors.cli import answered, render

    override = os.environ.get("CLAUDE_PROJECT", "")
    answer = answered.command(json, "project.resolve", set=set_, clear=clear, override=override, cwd=str(Path.cwd()))
    render.out.print(f"{answer['project']}  ({answer['confidence']:.0%} sure)")
    for name, signal in answer["signals"].items():
        signal_project = signal["project"] or "nothing"
        render.out.print(
            f"  {name:<14} {render.clean_line(signal_project, 30):<30} {signal['confidence']:.1f}  {render.clean_line(signal['reason'])}"
        )
    for other in answer["alternatives"]:
        render.hint(f"  or {other['project']} ({other['confidence']:.0%}): {render.clean_line(other['reason'])}")
