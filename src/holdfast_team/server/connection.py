"""Parses the address of the team's PostgreSQL."""

import re
from typing import Any

import psycopg
from psycopg import conninfo

from holdfast.core.errors import BadSettings
from holdfast.stores import hide_password

DEFAULT_SCHEMA = "holdfast_team"
PATIENCE = {"connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "tcp_user_timeout": 20_000}
"""A machine that vanished inside a transaction must not hold locks for hours."""

# The first schema of `search_path=...` in the address's options.
_SEARCH_PATH = re.compile(r"search_path\s*=\s*\"?([^\s\",]+)")


def team_schema(url: str) -> str:
    """`?options=-c search_path=NAME` puts the tables into another schema."""
    match = _SEARCH_PATH.search(str(parse_address(url).get("options") or ""))
    return match[1] if match else DEFAULT_SCHEMA


def parse_address(url: str) -> dict[str, Any]:
    """The driver quotes what it does not understand, which may be the password."""
    try:
        return dict(conninfo.conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        raise BadSettings(
            f"the address cannot be read: {hide_password(url)}", fix="Use postgresql://USER@HOST/DATABASE."
        ) from None
