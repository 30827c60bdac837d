"""The same with PostgreSQL under the daemon, near and far: what was promised is in the server's log, once.

Behind a long way most of what is killed was answered from the daemon's journal and is on its way to the server.
"""

from pathlib import Path

from tests.campaign import kills
from tests.stores import server
from tests.stores.proxy import DatabaseProxy

FULL = 300
FAR_S = 0.015
"""Each way."""


def run(folder: Path, size: int) -> str:
    with server.postgres() as url, DatabaseProxy(url, folder, FAR_S) as way:
        near = kills.run(folder / "near", size - size // 2, HOLDFAST_STORE__URL=f"{url}&{_in_schema('near')}")
        far = kills.run(folder / "far", size // 2, HOLDFAST_STORE__URL=f"{way.url}&{_in_schema('far')}")
        return f"PostgreSQL: {near}; 30 ms away: {far}"


def _in_schema(name: str) -> str:
    return f"options=-c%20search_path%3D{name}"
