"""The daemon, the only writer of the log."""


def main() -> None:
    """The console script `holdfast-daemon`, which hook clients start."""
    from holdfast.daemon.run import main as run

    run()
