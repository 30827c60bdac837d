"""`holdfast`: every command by name, loaded on demand, and the one place where errors are shown."""

import os
import sys
from importlib import import_module
from typing import Annotated

import typer
from typer.core import TyperGroup

from holdfast import __version__
from holdfast.core.errors import CommandRefused, HoldfastError
from holdfast.core.text import strip_controls
from holdfast.doors.cli.completion import offer_values
from holdfast.doors.cli.options import ClickException, Command, Context, HelpFormatter

# Every command by name: its module, its heading in `--help`, and its older spellings.
#
# A command's module is imported when the command is used, so that one command does not load the others.

SECTIONS: dict[str, dict[str, str]] = {
    "See what your agents do": {
        "who": "sessions", "status": "status", "session": "sessions", "search": "search", "history": "history",
        "notify": "notify", "permission": "notify", "cost": "cost", "blame": "history", "statusline": "sessions", "dashboard": "serve",
    },
    "Work in a team": {"team": "team"},
    "Work in a project": {
        "gate": "gate", "task": "project", "state": "state", "resolve": "state", "check": "checks", "uat": "uat",
        "memory": "memory", "handoff": "memory", "recall": "past_work", "fix": "past_work", "how": "past_work",
        "quirks": "past_work", "index": "search", "lease": "project",
        "undo": "undo", "rescue": "undo", "diff": "undo",
    },
    "Set up": {
        "up": "doctor", "doctor": "doctor", "install": "installing", "uninstall": "installing", "import": "importing",
        "config": "config", "price": "cost", "mcp": "serve", "api": "api", "files": "files", "demo": "serve",
    },
    "Look after the data": {
        "event": "history", "verify": "store", "rebuild": "store", "backup": "store", "restore": "store",
        "erase": "erase", "redact": "erase", "daemon": "daemon", "serve": "serve",
        "server": "server",
    },
}  # fmt: skip
OLDER_SPELLINGS = {"sessions": "session", "events": "event", "checks": "check", "prices": "price"}
MODULES = {name: module for section in SECTIONS.values() for name, module in section.items()}


class RootGroup(TyperGroup):
    """The commands of SECTIONS, loaded one by one."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - click names it
        return list(MODULES)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        name = OLDER_SPELLINGS.get(cmd_name, cmd_name)
        if name not in MODULES:
            return None
        if name not in self.commands:
            self.commands[name] = _load_command(name)
        return self.commands[name]

    def load_all(self) -> None:
        for name in MODULES:
            self.commands.setdefault(name, _load_command(name))

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        width = max(map(len, MODULES)) + 4
        for title, names in SECTIONS.items():
            with formatter.section(title):
                rows = [(name, _first_sentence(self.get_command(ctx, name))) for name in names]
                formatter.write_dl(rows, col_max=width)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        if args and args[0] in OLDER_SPELLINGS:
            args = [OLDER_SPELLINGS[args[0]], *args[1:]]
        if args and args[0] not in MODULES and not args[0].startswith("-"):
            ctx.fail(_unknown_command(args[0]))
        return super().resolve_command(ctx, args)


def _unknown_command(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, MODULES, n=1)
    return f"There is no command {name!r}." + (f" Did you mean: holdfast {near[0]}" if near else "")


def _load_command(name: str) -> Command:
    module = import_module(f"holdfast.doors.cli.{MODULES[name]}")
    holder = typer.Typer(rich_markup_mode=None)
    holder.callback()(lambda: None)  # With one command and no callback typer would make no group of it.
    if hasattr(module, "register"):
        module.register(holder)
    else:
        # A module without `register` has one group of commands, under the module's name.
        holder.add_typer(module.app, name=MODULES[name])
    commands = typer.main.get_group(holder).commands
    command = commands.get(name) or commands[MODULES[name]]
    command.name = name
    offer_values(name, command)
    _show_whole_sentences(command)
    return command


def _first_sentence(command: Command | None) -> str:
    """Complete: a help line that ends in … makes people open another page."""
    text = (command.help or "").strip().partition("\n\n")[0] if command else ""
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


def _show_whole_sentences(command: Command) -> None:
    """Click cuts a group's help unless it is given as short help."""
    for inner in getattr(command, "commands", {}).values():
        inner.short_help = _first_sentence(inner)
        _show_whole_sentences(inner)


EXIT_ERROR = 1
EXIT_INTERRUPTED = 130
REPLACE_DAEMON = "Run: holdfast daemon restart"
UNKNOWN_TO_DAEMON = ("there is no view", "there is no command")
"""In the answer of a daemon that does not know a question."""

app = typer.Typer(
    name="holdfast",
    cls=RootGroup,
    help="Keeps the state of AI coding sessions. Without a command: shows what is running and what to do next.",
    epilog="More: holdfast COMMAND --help. First time here: holdfast up",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"holdfast {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        from holdfast.doors.cli.board import show_board

        show_board()


def build_command() -> Command:
    """Every command, loaded: what the warm CLI server keeps."""
    command = typer.main.get_command(app)
    if isinstance(command, RootGroup):
        command.load_all()
    return command


def run_cli(command: Command | None = None) -> None:
    """Exit codes: 0 done, 1 refused or failed (with one line), 2 wrong usage, 130 interrupted."""
    if "--version" in sys.argv[1:2]:  # The most asked question needs none of the rest.
        print(f"holdfast {__version__}")
        return
    try:
        _refuse_without_home()
        if command is not None or not _answered_quickly():
            _invoke_command(command or typer.main.get_command(app))
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        _leave_quietly(EXIT_INTERRUPTED)
    except BrokenPipeError:
        _leave_quietly(0)
    except Exception as error:
        # An answer of another version may lack what this one shows; any other failure is our bug and stays visible.
        if not (message := _describe_error(error)):
            raise
        kind = type(error).__name__ if isinstance(error, HoldfastError | OSError) else "OtherVersion"
        _exit_with_error(message, kind, EXIT_ERROR)


def _describe_error(error: Exception) -> str:
    """Empty for a failure that only another version of the daemon could explain, and does not."""
    if isinstance(error, HoldfastError):
        unknown = any(words in error.message for words in UNKNOWN_TO_DAEMON)
        return strip_controls((_other_daemon() if unknown else "") or error.message)
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror or error}{where}. Try: holdfast doctor"
    return _other_daemon()


def _other_daemon() -> str:
    from holdfast.client import version_difference

    difference = version_difference()
    return f"{difference}. {REPLACE_DAEMON}" if difference else ""


def _invoke_command(command: Command) -> None:
    """Report wrong usage as click does, or as JSON if JSON was requested."""
    # Completion in click needs its own way to exit.
    completing = "_HOLDFAST_COMPLETE" in os.environ
    try:
        code = command.main(prog_name="holdfast", standalone_mode=completing)
    except typer.Exit as ended:
        code = ended.exit_code
    except ClickException as error:
        if _wants_json():
            _exit_with_error(error.format_message(), "Usage", error.exit_code)
        error.show()
        sys.exit(error.exit_code)
    if isinstance(code, int) and code:
        sys.exit(code)


def _refuse_without_home() -> None:
    """Hooks find everything through HOME: without it nothing set up here would be found again."""
    if not os.environ.get("HOME") and not _asks_for_help():
        raise CommandRefused("HOME is not set, and agents' settings are found by it", fix="Run: export HOME=~")


def _asks_for_help() -> bool:
    return "--help" in sys.argv[1:]


def _wants_json() -> bool:
    return "--json" in sys.argv[1:]


def _exit_with_error(message: str, kind: str, code: int) -> None:
    """On standard error, so that scripts never read half data, half complaint."""
    if _wants_json():
        from holdfast.doors.cli import render

        text = render.json_text({"schema": render.SCHEMA, "error": {"type": kind, "message": message}})
    else:
        text = f"holdfast: {message}"
    print(text, file=sys.stderr)
    sys.exit(code)


def _leave_quietly(code: int) -> None:
    """Buffered output has no reader any more; Python would complain at exit."""
    # Buffered text is written at exit and must go somewhere.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    sys.exit(code)


def _answered_quickly() -> bool:
    """Agents call `state show` often: its plain form needs no command-line parser."""
    if sys.argv[1:] not in (["state", "show"], ["state", "show", "--json"]):
        return False
    from holdfast.doors.cli.state import show

    show(json=_wants_json())
    return True
