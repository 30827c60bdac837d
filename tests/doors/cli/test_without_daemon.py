"""Looking starts no daemon: views are answered from the store, or from nothing where nothing was recorded."""

from pathlib import Path

import pytest

from tests.kit import World

LOOKING = ("who", "status", "gate status", "session list --all", "event list", "check list", "memory list", "cost",
           "lease list", "uat list", "history words", "statusline", "search index", "state", "state show", "task", "task next",
           "search", "files", "data", "team", "notify", "quirks", "cost price", "config")  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("words", LOOKING)
def test_looking_at_nothing_starts_nothing(world: World, words: str) -> None:
    world.cli(*words.split())
    assert world.pid == 0
    assert not world.paths.state.exists()


def test_what_was_recorded_is_shown_without_a_daemon(world: World) -> None:
    agent = world.session("44444444-aaaa-4bbb-8ccc-000000000001")
    agent.start()
    agent.prompt("Write a greeting")
    world.cli("daemon", "stop")
    assert "Write a greeting" in world.cli("session", "list", "--all")
    assert "prompt.submitted" in world.cli("event", "list")
    assert world.pid == 0


def test_events_that_wait_are_taken_in_first(world: World) -> None:
    """What a hook could not deliver is shown, too: only a daemon can take it in."""
    world.start()
    world.cli("daemon", "stop")
    world.paths.spool.mkdir(exist_ok=True)
    (world.paths.spool / "spool.log").write_bytes(b"x")
    world.cli("who")
    assert world.pid > 0
    world.close()


def test_after_a_kill_the_journal_is_read_first(world: World) -> None:
    agent = world.session("44444444-aaaa-4bbb-8ccc-000000000002")
    agent.start()
    agent.prompt("Write another greeting")
    world.kill()
    assert "Write another greeting" in world.cli("session", "list", "--all")
    world.close()
