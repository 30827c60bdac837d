"""Whatever keeps Holdfast from its work is reported where people look, with the reason and since when."""

import json
from pathlib import Path

import apsw
import pytest

from tests.kit import World, wait_until


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
    for python in (False, True):
        line = world.hook("statusline", {}, mode="show", python=python).stdout
        assert line == b"Holdfast cannot start: holdfast status\n"


@pytest.mark.quick
def test_a_cause_that_is_gone_is_found_gone_and_the_gap_is_shown(world: World) -> None:
    world.start()
    world.cli("daemon", "stop")
    link_the_log(world)
    world.cli("daemon", "start", code=1)
    world.paths.log_file.unlink()
    told = world.cli("status")
    assert "pid" in told
    assert "Holdfast could not start for 0 min: hooks were spooled, gates were not asked" in " ".join(told.split())
    assert "Holdfast could not start for 1 min, until" in world.session("s1").start()["systemMessage"]


def test_a_trouble_is_told_wherever_people_look_until_it_is_mended(world: World) -> None:
    world.start()
    world.paths.quarantine.mkdir()
    (world.paths.quarantine / "torn").write_bytes(b"x" * 40)
    trouble = "40 B that could not be read are set aside in"
    wait_until(lambda: world.events(kinds=("health.changed",)), "the daemon notices")
    assert trouble in world.session("s1").start()["systemMessage"]
    assert trouble in world.hook("statusline", {}, mode="show").stdout.decode()
    shown = [(), ("status",), ("who",), ("statusline",), ("doctor",)]
    assert [words for words in shown if trouble not in one_line(world, *words)] == []
    (world.paths.quarantine / "torn").unlink()
    wait_until(lambda: len(world.events(kinds=("health.changed",))) == 2, "the daemon notices again")
    assert "systemMessage" not in world.session("s2").start()
    assert [words for words in shown if trouble in one_line(world, *words)] == []


def one_line(world: World, *words: str) -> str:
    return " ".join(world.cli(*words, code=None).split())
