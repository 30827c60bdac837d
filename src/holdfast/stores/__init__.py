"""The daemon's store: one SQLite file, named by the setting `store.url`."""

import re
from pathlib import Path

from holdfast.core.errors import BadSettings

# Group 1: the user before a password in an address; group 2: `password=` of a connection string.
_PASSWORD = re.compile(r"((?<=://)[^\s:/@]*:)[^\s]*(?=@)|(password\s*=\s*)(?:'[^']*'|[^\s&'\"]+)", re.IGNORECASE)


def hide_password(text: str) -> str:
    """Hide the password of an address, or of an error that quotes one."""
    return _PASSWORD.sub(lambda found: f"{found[1] or found[2]}…", text)


def sqlite_path(url: str) -> Path:
    if not url.startswith("sqlite:///"):
        raise BadSettings(
            f"store.url is {hide_password(url)!r}, but a machine keeps its log in SQLite",
            fix="Unset store.url, or use sqlite:///PATH. To share work between machines, see: holdfast team --help",
        )
    return Path(url.removeprefix("sqlite:///"))
