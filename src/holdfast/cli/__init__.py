"""The command line: one file per group of verbs. No logic of its own: it asks the daemon and shows the answer."""


def main() -> None:
    from holdfast.cli.root import run

    run()
