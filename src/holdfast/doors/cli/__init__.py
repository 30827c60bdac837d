"""The command line: one file per group of verbs. No logic of its own: it asks the daemon and shows the answer."""

import sys


def main() -> None:
    """A command that only asks the daemon goes to the warm CLI server; everything else loads the command line here."""
    try:
        _run_command_line()
    except KeyboardInterrupt:
        sys.exit(130)


def _run_command_line() -> None:
    arguments = sys.argv[1:]
    if arguments == ["mcp"]:  # An agent waits for it at every start: no parser of command lines is loaded.
        from holdfast.doors.mcp.stdio import serve_stdio

        serve_stdio()
        return
    from holdfast.doors.cli import warm_client

    served = warm_client.is_served_warm(arguments)
    if served and (code := warm_client.run_warm(arguments)) is not None:
        sys.exit(code)
    from holdfast.doors.cli.root import run_cli

    try:
        run_cli()
    # After the answer, so that the person does not wait for it.
    finally:
        if served:
            _start_warm_server()


def _start_warm_server() -> None:
    """The next such command need not load everything again."""
    from holdfast import client
    from holdfast.core.errors import HoldfastError

    try:
        client.ask_daemon("warm_cli", start=False, prefix=sys.prefix)
    except HoldfastError:
        pass  # no daemon, or an older one
