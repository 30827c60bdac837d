"""The command line: it asks the daemon and shows the answer, with one file per group of verbs."""

import sys


def main() -> None:
    """The console script. Commands that only ask the daemon go to the warm CLI server; the others load the command
    line here."""
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
    """Start the warm server, so that the next such command need not load everything."""
    from holdfast import client
    from holdfast.core.errors import HoldfastError

    try:
        client.ask_daemon("warm_cli", start=False, prefix=sys.prefix)
    except HoldfastError:
        pass  # no daemon, or an older one
