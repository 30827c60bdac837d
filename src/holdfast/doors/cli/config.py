"""`holdfast config …`: show every value with its origin, change one, trust a project's file."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from holdfast import client
from holdfast import settings as layered
from holdfast.analysis.redact import current_redactor
from holdfast.app import open_settings
from holdfast.core.errors import CommandRefused
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json
from holdfast.settings import trust as trusting
from holdfast.settings.edit import set_value
from holdfast.stores import hide_password
from holdfast.stores.body_keys import require_keyring

app = typer.Typer(help="Settings and where each comes from.", no_args_is_help=True)

DEFAULT = "default"
Layer = Annotated[str, typer.Option("--layer", help="user, project or local")]


@app.command()
def show(section: Annotated[str, typer.Argument(help="Only this section.")] = "", json: Json = False) -> None:
    """Show every setting in force here, with its origin."""
    resolved = open_settings().for_project(client.current_project())
    flat = resolved.flat()
    rows = [(name, _without_secrets(value), str(origin)) for name, value, origin in flat if name.startswith(section)]
    values = [{"name": name, "value": value, "origin": origin} for name, value, origin in rows]
    render.finish_as_json(json, {"settings": values, "notices": [str(n) for n in resolved.notices]})
    _print_settings(rows, everything=bool(section))
    for notice in resolved.notices:
        render.warn(notice)


def _print_settings(rows: list[tuple[str, Any, str]], *, everything: bool) -> None:
    shown = rows if everything else [row for row in rows if not _is_quiet(row)]
    table = render.plain_table("setting", "value")
    for name, value, origin in shown:
        line = Text(render.clean_line(_format_value(value), 60) or '""')
        table.add_row(name, line if origin == DEFAULT else line.append(f"  {origin}", style="dim"))
    render.out.print(table)
    if left_out := len(rows) - len(shown):
        render.hint(f"and {left_out} defaults of requirements: holdfast config show gates")


def _is_quiet(row: tuple[str, Any, str]) -> bool:
    """Each requirement has some thirty fields; unset ones would bury the rest."""
    return row[0].startswith("gates.requirements.") and row[2] == DEFAULT


@app.command("set")
def set_setting(
    name: Annotated[str, typer.Argument(help="e.g. store.body_days")],
    value: Annotated[str, typer.Argument(help="As YAML: 30, true, [a, b].")],
    layer: Layer = "user",
) -> None:
    """Change one value in a settings file; comments and order are kept."""
    client.authorise("config", f"setting {name}")
    parsed = _parse_yaml(value)
    if name == "store.encrypt_bodies" and parsed is True:
        # Refused here, where a person reads it, instead of in a daemon without a key.
        require_keyring()
    settings, project = open_settings().settings, _layer_project(layer)
    notices = set_value(settings, layer, name, parsed, project=project)
    render.out.print(f"{name} = {render.clean_line(_without_secrets(value))} in {settings.file(layer, project)}")
    for notice in notices:
        render.say(str(notice))


@app.command()
def schema() -> None:
    """Print the JSON Schema of settings files, for editors."""
    print(msgspec.json.format(msgspec.json.encode(layered.json_schema(open_settings().settings))).decode())


@app.command()
def trust(
    file: Annotated[Path | None, typer.Argument(help="Default: this project's settings files.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust it no longer.")] = False,
) -> None:
    """Allow a project's settings to name commands. Trust is for this exact content: a change asks again."""
    if not revoke:
        client.authorise("trust")
    files = [file] if file else _project_files()
    if not files:
        raise CommandRefused("this project has no settings files", fix="They would be in .holdfast/ here.")
    for path in files:
        _trust_one(path, yes, revoke)


def _trust_one(path: Path, yes: bool, revoke: bool) -> None:
    if revoke:
        render.out.print(f"{path}: {'no longer trusted' if trusting.untrust_file(path) else 'was not trusted'}")
        return
    content = path.read_bytes()
    # Shown before the question: the person trusts this exact content.
    render.say(content.decode("utf-8", "replace"))
    if not yes:
        typer.confirm(f"Trust this content of {path}?", abort=True)
    trusting.trust_file(path, content)
    render.out.print(f"{path}: trusted until it changes")


def _project_files() -> list[Path]:
    files = open_settings().settings.all_files(client.current_project())
    return [path for layer, path in files if layer != "user" and path.exists()]


def _layer_project(layer: str) -> str:
    return "" if layer == "user" else client.current_project()


def _parse_yaml(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe").load(text)
    except YAMLError as error:
        raise CommandRefused(f"{text!r} is not YAML", fix='Quote it: "…"') from error


def _without_secrets(value: Any) -> Any:
    """The database address may contain a password, which is never shown."""
    if isinstance(value, str):
        return hide_password(current_redactor().redact_text(value)[0])
    if isinstance(value, list | tuple):
        return [_without_secrets(one) for one in value]
    if isinstance(value, dict):
        return {name: _without_secrets(one) for name, one in value.items()}
    return value


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
