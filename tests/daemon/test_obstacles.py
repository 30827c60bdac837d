"""A daemon that cannot start is reported where people look, with the reason and since when."""

import json
from pathlib import Path

import apsw
import pytest

from tests.kit import World


@pytest.fixture
def world(tmp_path: Path):
    world = World(tmp_path)
    yield world
    world.close()


def poison_schema(world: World) -> None:
    database = apsw.Connection(str(world.paths.database))
    database.pragma("user_version", 9_999)
    database.close()


def link_the_log(world: World) -> None:
    world.paths.log_file.unlink()
    world.paths.log_file.symlink_to(world.root / "elsewhere")


@pytest.mark.parametrize(("spoil", "reason"), [(poison_schema, "schema 9999"), (link_the_log, "is a link")])
def test_status_fails_and_says_why_nothing_can_start(world: World, spoil, reason: str) -> None:
    agent = world.session("s1")
    agent.start()
    world.cli("daemon", "stop")
    assert "not running (hooks start it automatically)" in world.cli("status")
    spoil(world)
    for words in ((), ("status",)):
        told = " ".join(world.cli(*words, code=1).split())
        assert "not running and cannot start" in told, words
        assert reason in told
        assert "hooks are spooled; gates are not asked" in told
    agent.prompt("Is anybody there?")
    assert "(since" in " ".join(world.cli("status", code=1).split())
    assert reason in json.loads(world.cli("status", "--json", code=1))["data"]["obstacle"]
    assert "The daemon does not answer" in world.cli("who", code=1)


def test_a_cause_that_is_gone_is_found_gone_and_the_gap_is_shown(world: World) -> None:
    world.start()
    world.cli("daemon", "stop")
    link_the_log(world)
    world.cli("daemon", "start", code=1)
    world.paths.log_file.unlink()
    told = world.cli("status")
    assert "pid" in told
    assert "Holdfast could not start for 0 min: hooks were spooled, gates were not asked" in " ".join(told.split())
