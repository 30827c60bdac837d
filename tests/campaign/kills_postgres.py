"""The same with PostgreSQL under the daemon: what was promised is in the server's log, once."""

from pathlib import Path

from tests.campaign import kills
from tests.stores import server

FULL = 300


def run(folder: Path, size: int) -> str:
    with server.postgres() as url:
        return f"PostgreSQL: {kills.run(folder, size, HOLDFAST_STORE__URL=url)}"
