"""Options and checks shared by commands around the web server."""

from holdfast.app import open_settings
from holdfast.core.errors import CommandRefused


def needs_web() -> None:
    try:
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        missing = f"the web part is not installed ({error.name})"
        raise CommandRefused(missing, fix="Install Holdfast again: its web parts are missing.") from None


def port_or_default(port: int) -> int:
    return port or open_settings().for_project("")["dashboard"].port
