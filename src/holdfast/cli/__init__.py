"""The command line: one file per group of verbs. No logic of its own: it asks the daemon and shows the answer."""

import sys


def main() -> None:
    if sys.argv[1:] == ["mcp"]:  # An agent waits for it at every start: no parser of command lines is loaded.
        from holdfast.mcp.stdio import serve

        serve()
        return
    from holdfast.cli.root import run

    run()
