"""Every command by name: which module has it, under which heading of `--help` it stands, and its older spellings.

A command's module is imported when the command is asked for, so that one command does not load the others.
"""

from importlib import import_module

import typer
from typer.core import TyperGroup

from holdfast.cli.completion import offer_values
from holdfast.cli.options import Command, Context, HelpFormatter

SECTIONS: dict[str, dict[str, str]] = {
    "See what your agents do": {
        "who": "sessions", "status": "status", "session": "sessions", "search": "search", "history": "history",
        "cost": "cost", "blame": "blame", "statusline": "sessions", "dashboard": "dashboard",
    },
    "Work in a team": {"team": "team"},
    "Work in a project": {
        "gate": "gate", "task": "task", "state": "state", "resolve": "state", "check": "checks", "uat": "uat",
        "memory": "memory", "handoff": "memory", "index": "index", "lease": "lease",
    },
    "Set up": {
        "up": "up", "doctor": "doctor", "install": "installing", "uninstall": "installing", "import": "importing",
        "config": "config", "price": "prices", "mcp": "mcp", "demo": "demo",
    },
    "Look after the data": {
        "event": "events", "verify": "store", "rebuild": "store", "backup": "store", "restore": "store",
        "erase": "erase", "redact": "redact", "daemon": "daemon", "serve": "serve",
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
    module = import_module(f"holdfast.cli.{MODULES[name]}")
    holder = typer.Typer(rich_markup_mode=None)
    holder.callback()(lambda: None)  # With one command and no callback typer would make no group of it.
    if hasattr(module, "register"):
        module.register(holder)
    else:
        # A module without `register` has one group of commands, under the module's own name.
        holder.add_typer(module.app, name=MODULES[name])
    commands = typer.main.get_group(holder).commands
    command = commands.get(name) or commands[MODULES[name]]
    command.name = name
    offer_values(name, command)
    _show_whole_sentences(command)
    return command


def _first_sentence(command: Command | None) -> str:
    """Whole: a line of help that ends in … makes people open another page to read its end."""
    text = (command.help or "").strip().partition("\n\n")[0] if command else ""
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


def _show_whole_sentences(command: Command) -> None:
    """Click cuts what stands in the help of a group, unless it is named a short help."""
    for inner in getattr(command, "commands", {}).values():
        inner.short_help = _first_sentence(inner)
        _show_whole_sentences(inner)
