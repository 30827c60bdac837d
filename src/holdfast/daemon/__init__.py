"""The daemon: the one writer. Hooks, commands and jobs all end here."""


def main() -> None:
    """The console script `holdfast-daemon`: what a hook client starts."""
    import os

    # Looking for pydantic's plugins reads the metadata of every installed package: a tenth of a cold start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from holdfast.daemon.run import main as run

    run()
