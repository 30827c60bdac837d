"""The daemon: the one writer. Hooks, commands and jobs all end here."""


def main() -> None:
    """The console script `holdfast-daemon`: what a hook client starts."""
    from holdfast.daemon.run import main as run

    run()
