"""With the log on a server, what is erased is in no table of it and nowhere in the state folder."""

from collections.abc import Callable
from pathlib import Path

import psycopg

from holdfast.paths import plain_files
from tests.kit import World

TEXT = "The codename of the merger is Zebrafinch, tell nobody"


def test_a_text_and_then_everything(tmp_path: Path, new_schema: Callable[[], str]) -> None:
    url = new_schema()
    world = World(tmp_path, HOLDFAST_STORE__URL=url)
    try:
        agent = world.session("session-secret-1")
        agent.start()
        agent.prompt(f"We decided: {TEXT}.")
        agent.stop(f"Understood: {TEXT.lower()}.")
        receipt = world.json("erase", "--text", TEXT, "--yes")
        assert receipt["rows"] >= 2
        assert _rows_with(url, "zebrafinch") == 0
        assert [p for p in plain_files(world.paths.state) if b"zebrafinch" in p.read_bytes().lower()] == []
        world.cli("erase", "--session", "session-secret-1", "--yes")
        assert _rows_with(url, "session-secret-1") == 0
        world.cli("erase", "--everything", "--yes")
        with psycopg.connect(url) as db:
            assert db.execute("select to_regclass('facts')").fetchone() == (None,)
    finally:
        world.close()


def _rows_with(url: str, word: str) -> int:
    tables = {"facts": "data", "bodies": "body", "states": "doc", "jobs": "payload"}
    with psycopg.connect(url) as db:
        found = [
            db.execute(
                f"select count(*) from {table} where position(%s in lower(encode({column}, 'escape'))) > 0", (word,)
            )
            for table, column in tables.items()
        ]
        names = db.execute("select count(*) from names where position(%s in lower(name)) > 0", (word,))
        return sum(cursor.fetchone()[0] for cursor in [*found, names])
