"""A new user's first day: what happened before is there, once, however often it is brought in."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit import World, wait_until

SAMPLES = Path(__file__).parents[1] / "setup" / "imports" / "samples"


@pytest.fixture
def world(tmp_path: Path):
    made = World(tmp_path)
    folder = made.home / ".claude" / "projects" / "-home-dev-project"
    folder.mkdir(parents=True)
    shutil.copy(SAMPLES / "claude.jsonl", folder)
    (made.home / ".codex" / "sessions").mkdir(parents=True)
    shutil.copy(next(SAMPLES.glob("rollout-*.jsonl")), made.home / ".codex" / "sessions")
    yield made
    made.close()


def sources(world: World) -> dict[str, tuple[bytes, int]]:
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in world.home.rglob("*.jsonl")}


@pytest.mark.quick
def test_history_comes_in_once_and_its_sources_stay_as_they_are(world):
    before = sources(world)
    first = world.json("import")
    assert first["taken"] > 20
    assert first["skipped"] == []
    assert first["without_meaning"]
    sessions = {e.session for e in world.events() if e.data.get("imported")}
    assert len(sessions) == 2
    second = world.json("import")
    assert (second["files"], second["unchanged"], second["taken"]) == (0, 2, 0)
    again = world.json("import", "--again")
    assert (again["taken"], again["known"]) == (0, first["taken"])
    assert sources(world) == before
    assert world.json("rebuild")["differences"] == []


def test_no_secret_of_a_transcript_comes_in(world):
    secret = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA2cD4fG6"
    transcript = world.home / ".claude" / "projects" / "-home-dev-project" / "claude.jsonl"
    text = transcript.read_text()
    assert "echo from-main" in text
    transcript.write_text(text.replace("echo from-main", f"echo {secret}"))
    imported = _imported(world, "claude-code")
    assert any("[redacted:" in e.data.get("command", "") for e in imported)
    world.ask(op="settle")
    assert all(secret.encode() not in file.read_bytes() for file in world.paths.state.rglob("*") if file.is_file())


def test_what_a_person_marked_private_stays_out(world):
    transcript = world.home / ".claude" / "projects" / "-home-dev-project" / "claude.jsonl"
    prompt = next(e.data.prompt for e in _imported(world, "claude-code") if e.kind == "prompt.submitted")
    world.close()
    shutil.rmtree(world.paths.state)
    text = transcript.read_text()
    assert prompt in text
    transcript.write_text(text.replace(prompt, f"{prompt} <private>the customer is Kowalski</private>"))
    assert any("[private]" in e.data.get("prompt", "") for e in _imported(world, "claude-code"))
    world.ask(op="settle")
    assert all(b"Kowalski" not in file.read_bytes() for file in world.paths.state.rglob("*") if file.is_file())


def test_a_dry_run_takes_nothing(world):
    assert world.json("import", "--dry-run")["taken"] > 20
    assert [e for e in world.events() if e.data.get("imported")] == []


def test_a_session_that_hooks_told_of_is_left_to_them(world):
    session = next(e for e in _imported(world, "claude-code")).session
    world.close()
    shutil.rmtree(world.paths.state)
    world.session(session).start()
    told = world.json("import", "claude-code")
    assert told["taken"] == 0
    assert told["told_by_hooks"] > 5


def _imported(world: World, name: str):
    world.json("import", name)
    return [e for e in world.events() if e.data.get("imported") == name]


def test_what_is_past_is_summed_up_and_sets_nothing_of_the_present_going(world):
    world.json("import")
    own = ("daemon.started", "state.rebuilt", "turn.processed")
    assert [e.kind for e in world.events() if not e.data.get("imported") and e.kind not in own] == []


def test_a_broken_file_is_told_in_words(world):
    (world.home / ".claude" / "projects" / "-home-dev-project" / "bad.jsonl").write_text("{\n")
    said = world.cli("import")
    assert "bad.jsonl:1: not a record" in said
    assert "events imported" in said


def test_strangers_cannot_bring_in_just_anything(world):
    said = world.cli("import", "what", code=1)
    assert "there is no importer 'what'" in said


def test_a_file_that_holdfast_wrote_itself_is_no_history(world):
    """It writes the state file of an older tool, which an importer reads."""
    subprocess.run(["git", "init", "-q"], cwd=world.project, check=True)
    world.session().start()
    written = world.project / "logs" / "state" / "session-reindex-tracking.json"
    wait_until(written.exists, "the state file is there")
    assert world.json("import", "reindex", "--dry-run")["files"] == 0
    written.write_text('{"session_id": "of-another-tool", "first_semantic_search_shown": true}')
    assert world.json("import", "reindex", "--dry-run")["taken"] == 1
