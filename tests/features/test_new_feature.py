"""Adding a feature is one folder (tests/sample_features/refusing) and one line (here: HOLDFAST_FEATURES). All of its doors work."""

from pathlib import Path

import pytest

from holdfast.core.ports import Ref
from tests.kit import World, wait_until


@pytest.fixture
def world(tmp_path: Path):
    made = World(
        tmp_path, HOLDFAST_FEATURES="tests.sample_features.refusing", PYTHONPATH=str(Path(__file__).parents[2])
    )
    yield made
    made.close()


def document(world: World, session: str = "s1") -> dict:
    with world.reader() as reader:
        return reader.state(Ref("refusing", session)) or {}


def test_it_tells_refuses_counts_and_remembers(world: World) -> None:
    agent = world.session("s1")
    told = agent.start()["hookSpecificOutput"]["additionalContext"]
    assert "<holdfast-context" in told
    assert "are refused" in told
    assert agent.tool("Bash", command="echo fine") == {}
    refusal = agent.tool("Bash", command="echo forbidden")["hookSpecificOutput"]
    assert refusal["permissionDecision"] == "deny"
    assert refusal["permissionDecisionReason"] == "“forbidden” is not allowed (call 2)."
    made = [e.data["verdict"] for e in world.events(kinds=("decision.made",))]
    assert made == ["none", "deny"]
    assert document(world)["calls"] == 2
    assert document(world)["refused"] == 1


def test_its_job_runs_a_program_and_reports_by_an_event(world: World) -> None:
    agent = world.session("s1")
    agent.start()
    agent.stop()
    wait_until(lambda: document(world).get("echoed") == 1, "the job has reported")


def test_its_file_is_a_view(world: World) -> None:
    agent = world.session("s1")
    agent.start()
    agent.tool("Bash", command="true")
    file = world.project / "refusing.txt"
    wait_until(lambda: file.exists() and file.read_text() == "s1: 1 calls\n", "the file shows the state")


def test_its_settings_are_layered_and_seen_at_once(world: World) -> None:
    agent = world.session("s1")
    agent.start()
    settings = world.project / ".holdfast" / "settings.yaml"
    settings.parent.mkdir()
    settings.write_text("refusing:\n  word: fine\n")
    wait_until(lambda: agent.before("Bash", command="echo fine") != {}, "the project's word counts")


def test_state_is_replay_and_a_rebuild_proves_it(world: World) -> None:
    agent = world.session("s1")
    agent.start()
    agent.tool("Bash", command="forbidden")
    told = world.json("rebuild")
    assert told["differences"] == []
    assert told["documents"] >= 1
    before = document(world)
    world.json("rebuild", "--write")
    assert document(world) == before


def test_a_spooled_event_counts_but_is_not_decided(world: World) -> None:
    """Nobody waits for that answer any more; a refusal that was never given must not be on record."""
    # Where versions of files are kept, a hook waits for a daemon.
    world.cli("config", "set", "workspace.snapshots", "false")
    world.cli("daemon", "restart")
    agent = world.session("s1")
    agent.start()
    world.kill()
    (world.paths.state / "workspace" / "content.sqlite").unlink(missing_ok=True)
    assert agent.before("Bash", command="forbidden") == {}
    world.drained()
    wait_until(lambda: document(world).get("calls") == 1, "the spooled call is counted")
    assert document(world)["refused"] == 0
