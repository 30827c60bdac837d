"""`holdfast`: every command by name, loaded on demand, and the one place where errors are shown."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from holdfast import __version__, client
from holdfast.core.errors import CommandRefused, HoldfastError
from holdfast.core.text import strip_controls
from holdfast.doors.cli.completion import offer_values
from holdfast.doors.cli.names import (
    ALIASES,
    INNER,
    MODULES,
    MORE,
    OLDER_SPELLINGS,
    SECTIONS,
    WITHOUT_VERB,
    for_help,
    respell,
)
from holdfast.doors.cli.options import ClickException, Command, Context, HelpFormatter

HELP_OPTIONS = ("-h", "--help")
INNER_PATHS = frozenset(f"{group} {name}" for group, names in INNER.items() for name in names)


class RootGroup(TyperGroup):
    """The commands of `names.py`, loaded one by one."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - click names it
        return [name for names in (*SECTIONS.values(), MORE) for name in names]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        if cmd_name not in MODULES:
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = _load_command(cmd_name)
        return self.commands[cmd_name]

    def load_all(self) -> None:
        for name in MODULES:
            self.commands.setdefault(name, _load_command(name))

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        width = max(map(len, MODULES)) + 4
        for title, names in SECTIONS.items():
            with formatter.section(title):
                rows = [(name, _first_sentence(self.get_command(ctx, name))) for name in names]
                formatter.write_dl(rows, col_max=width)
        with formatter.section("More"):
            formatter.write_text(" ".join(MORE))

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, for_help(args))

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        words, older = respell(args)
        if older and not _is_silent(ctx, args):
            print(f"holdfast: `{older}` is now `{OLDER_SPELLINGS[older]}`.", file=sys.stderr)
        path, command, rest = self.find(words, sure=bool(older))
        if command is None:
            if path and not path.startswith("-"):
                ctx.fail(_unknown_command(path))
            return super().resolve_command(ctx, args)
        if ctx is None or ctx.resilient_parsing:  # Completion wants the verbs.
            return path, command, rest
        return path, command, _with_verb(path, command, rest)

    def find(self, words: list[str], *, sure: bool = False) -> tuple[str, Command | None, list[str]]:
        """The command that these words name, by its whole name, and the words that are left."""
        words = [*ALIASES.get(" ".join(words[:2]), " ".join(words[:2])).split(), *words[2:]]
        inner = words[1] if len(words) > 1 and words[1] in INNER.get(words[0], {}) else ""
        if words[:1] == ["search"] and not (sure or self._has_verb(inner, words[2:])):
            inner = ""
        name = inner or (words[0] if words else "")
        command = self.get_command(None, name) if name in MODULES else None  # type: ignore[arg-type]
        if command is None:
            return name, None, words[1:]
        return " ".join(words[: 2 if inner else 1]), command, words[2 if inner else 1 :]

    def _has_verb(self, name: str, rest: list[str]) -> bool:
        """`search` takes words: `search index of books` is no sub-command."""
        group = self.get_command(None, name) if name else None  # type: ignore[arg-type]
        return not rest or rest[0].startswith("-") or rest[0] in getattr(group, "commands", ())


def _is_silent(ctx: Context | None, args: list[str]) -> bool:
    return ctx is None or ctx.resilient_parsing or "--json" in args


def _with_verb(path: str, command: Command, rest: list[str]) -> list[str]:
    """A group without a verb does what `WITHOUT_VERB` says, or shows its help."""
    at = 0
    while isinstance(command, TyperGroup) and at < len(rest) and rest[at] in command.commands:
        path, command, at = f"{path} {rest[at]}", command.commands[rest[at]], at + 1
    if not isinstance(command, TyperGroup) or command.invoke_without_command:
        return rest
    if at < len(rest) and (not rest[at].startswith("-") or rest[at] in HELP_OPTIONS):
        return rest
    short = path.partition(" ")[2] if path in INNER_PATHS else path
    return [*rest[:at], WITHOUT_VERB.get(short, "--help"), *rest[at:]]


def _unknown_command(name: str) -> str:
    from difflib import get_close_matches

    near = [OLDER_SPELLINGS.get(one, one) for one in get_close_matches(name, MODULES, n=1)]
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
    if isinstance(command, TyperGroup):  # Its help lists what is defined elsewhere.
        command.commands.update({inner: _load_command(inner) for inner in INNER.get(name, ())})
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
    epilog="About one of them: holdfast help COMMAND. First time here: holdfast up",
    context_settings={"help_option_names": list(HELP_OPTIONS)},
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
    if sys.argv[1:2] in (["--version"], ["version"]):  # The most asked question needs none of the rest.
        print(f"holdfast {__version__}")
        return
    client.answer_views_by(_look_without_daemon)
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


def _look_without_daemon(name: str, args: Mapping[str, Any]) -> tuple[Any] | None:
    # Loaded only without a daemon: it brings the whole engine.
    from holdfast.doors.cli.without_daemon import answer_view

    return answer_view(name, args)


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
    difference = client.version_difference()
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
    return sys.argv[1:2] == ["help"] or any(word in HELP_OPTIONS for word in sys.argv[1:])


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
