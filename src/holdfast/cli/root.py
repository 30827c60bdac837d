"""`holdfast`: the root of the command line, and the one place where its errors are shown."""

import os
import sys
from typing import Annotated

import typer

from holdfast import __version__
from holdfast.cli.catalog import RootGroup
from holdfast.cli.options import ClickException, Command
from holdfast.core.errors import CommandRefused, HoldfastError
from holdfast.core.text import strip_controls

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
REPLACE_DAEMON = "Run: holdfast daemon restart"
UNKNOWN_TO_DAEMON = ("there is no view", "there is no command")
"""In what a daemon answers that does not know a question."""

app = typer.Typer(
    name="holdfast",
    cls=RootGroup,
    help="Keeps the state of AI coding sessions. With no command: what is running, and what to do next.",
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
        from holdfast.cli.status import show_board

        show_board()


def build_command() -> Command:
    """Every command, loaded: what the warm CLI server keeps."""
    command = typer.main.get_command(app)
    if isinstance(command, RootGroup):
        command.load_all()
    return command


def run_cli(command: Command | None = None) -> None:
    """Exit codes: 0 done, 1 refused or failed (said in one line), 2 wrong usage, 130 interrupted."""
    if "--version" in sys.argv[1:2]:  # The most asked question needs none of the rest.
        print(f"holdfast {__version__}")
        return
    try:
        _refuse_without_home()
        if command is not None or not _answered_quickly():
            _invoke_command(command or typer.main.get_command(app))
        sys.stdout.flush()
    except HoldfastError as error:
        unknown = any(words in error.message for words in UNKNOWN_TO_DAEMON)
        message = (_other_daemon() if unknown else "") or error.message
        _exit_with_error(strip_controls(message), type(error).__name__, EXIT_ERROR)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            _leave_quietly(0)
        where = f" ({error.filename})" if error.filename else ""
        _exit_with_error(f"{error.strerror or error}{where}. Try: holdfast doctor", type(error).__name__, EXIT_ERROR)
    except (KeyboardInterrupt, typer.Abort):
        _leave_quietly(EXIT_INTERRUPTED)
    except Exception:
        # An answer of another version may lack what this one shows; any other failure is a mistake of ours, and seen.
        if not (message := _other_daemon()):
            raise
        _exit_with_error(message, "OtherVersion", EXIT_ERROR)


def _other_daemon() -> str:
    from holdfast.client import version_difference

    difference = version_difference()
    return f"{difference}. {REPLACE_DAEMON}" if difference else ""


def _invoke_command(command: Command) -> None:
    """Wrong usage is told as click tells it, or as JSON when JSON was asked for."""
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
    """Hooks find everything by HOME: without it what is set up here would not be found again."""
    if not os.environ.get("HOME") and not _asks_for_help():
        raise CommandRefused("HOME is not set, and agents' settings are found by it", fix="Run: export HOME=~")


def _asks_for_help() -> bool:
    return "--help" in sys.argv[1:]


def _wants_json() -> bool:
    return "--json" in sys.argv[1:]


def _exit_with_error(message: str, kind: str, code: int) -> None:
    """On the error stream, so that what a script reads from the other is never half data, half complaint."""
    if _wants_json():
        from holdfast.cli import render

        text = render.json_text({"schema": render.SCHEMA, "error": {"type": kind, "message": message}})
    else:
        text = f"holdfast: {message}"
    print(text, file=sys.stderr)
    sys.exit(code)


def _leave_quietly(code: int) -> None:
    """What is still buffered has nobody to read it; Python would complain about that at its end."""
    # Buffered text is written at exit: it must go somewhere.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    sys.exit(code)


def _answered_quickly() -> bool:
    """Agents and prompts ask for `state show` again and again: its plain form needs no parser of command lines."""
    if sys.argv[1:] not in (["state", "show"], ["state", "show", "--json"]):
        return False
    from holdfast.cli.state import show

    show(json=_wants_json())
    return True
