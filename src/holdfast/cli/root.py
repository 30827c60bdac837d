"""`holdfast`: the root of the command line, and the one place where its errors are shown."""

import os
import sys
from importlib import import_module
from typing import Annotated

import typer

from holdfast import __version__
from holdfast.core.errors import HoldfastError
from holdfast.core.text import strip_controls

EXIT_ERROR = 1
EXIT_USAGE = 2

app = typer.Typer(
    name="holdfast",
    help="Keeps the state of AI coding sessions. With no command: what is running, and what to do next.",
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
    _version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True)] = False,
) -> None:
    if context.invoked_subcommand is None:
        from holdfast.cli.status import overview

        overview()


def run() -> None:
    """Exit codes: 0 done, 1 refused or failed (said in one line), 2 wrong usage, 130 interrupted."""
    if "--version" in sys.argv[1:2]:  # The most asked question needs none of the rest.
        print(f"holdfast {__version__}")
        return
    try:
        if not _answered_quickly():
            _register()
            app()
    except HoldfastError as error:
        print(f"holdfast: {strip_controls(error.message)}", file=sys.stderr)
        sys.exit(EXIT_ERROR)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)


def _answered_quickly() -> bool:
    """Agents and prompts ask for `state show` again and again: its plain form needs no parser of command lines."""
    if sys.argv[1:] not in (["state", "show"], ["state", "show", "--json"]):
        return False
    from holdfast.cli.state import show

    show(json="--json" in sys.argv)
    return True


ALONE = frozenset(
    ("checks", "config", "daemon", "events", "gate", "index", "lease", "memory", "prices", "state", "task", "uat")
)
"""Groups that are a module of their own: when one is asked for, the others are not loaded (a third of the time)."""


SINGLE = frozenset(("blame", "erase", "redact"))
"""The same for commands that are a module of their own."""


def _register() -> None:
    if sys.argv[1:2] and sys.argv[1] in SINGLE:
        import_module(f"holdfast.cli.{sys.argv[1]}").register(app)
        return
    if sys.argv[1:2] and sys.argv[1] in ALONE:
        group = import_module(f"holdfast.cli.{sys.argv[1]}")
        app.add_typer(group.app, name=sys.argv[1])
        return
    from holdfast.cli import (
        blame,
        checks,
        config,
        cost,
        daemon,
        dashboard,
        demo,
        doctor,
        erase,
        events,
        gate,
        history,
        importing,
        index,
        installing,
        lease,
        mcp,
        memory,
        prices,
        redact,
        search,
        serve,
        sessions,
        state,
        status,
        store,
        task,
        uat,
        up,
    )  # fmt: skip

    for group in (
        up, status, sessions, history, cost, doctor, installing, importing, store, state, search, serve, dashboard, demo,
        memory, mcp, redact, erase, blame,
    ):  # fmt: skip
        group.register(app)
    app.add_typer(daemon.app, name="daemon")
    app.add_typer(events.app, name="events")
    app.add_typer(config.app, name="config")
    app.add_typer(gate.app, name="gate")
    app.add_typer(index.app, name="index")
    app.add_typer(uat.app, name="uat")
    app.add_typer(task.app, name="task")
    app.add_typer(lease.app, name="lease")
    app.add_typer(checks.app, name="checks")
    app.add_typer(prices.app, name="prices")
