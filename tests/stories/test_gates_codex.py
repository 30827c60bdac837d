"""Proof in Codex, whose hooks tell no exit code: through the real hook and daemon, from a rollout as Codex writes it."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit import World, git, wait_until

WORKERS = 2
"""As many as there are unless the settings say otherwise."""
TESTED = "requirements:\n  tested: {type: evidence, evidence: {command: 'pytest*', after_edit: 'src/**'}}\n"
PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch"


class Codex:
    """One session, in the payloads of Codex 0.166.0; the end of a command is in its rollout before the hook is called."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rollout = world.home / ".codex" / "sessions" / "2026" / "rollout-2026-11-15-c-1.jsonl"
        self.rollout.parent.mkdir(parents=True)
        self.rollout.write_text("")
        self._calls = itertools.count()

    def fire(self, event: str, **fields: Any) -> dict[str, Any]:
        common = {"session_id": "c-1", "turn_id": "t-1", "transcript_path": str(self.rollout), "model": "gpt-5.5"}
        return self.world.reply(event, {**common, "cwd": str(self.world.project), **fields}, agent="codex")

    def tool(self, name: str, command: str, response: str, code: int | None = None) -> None:
        call = f"call_{next(self._calls)}"
        given = {"tool_name": name, "tool_input": {"command": command}, "tool_use_id": call}
        assert self.fire("PreToolUse", **given) == {}
        if code is not None:
            self.write(call, command, code)
        self.fire("PostToolUse", **given, tool_response=response)

    def write(self, call: str, command: str, code: int) -> None:
        item = {"type": "CommandExecution", "id": call, "command": ["bash", "-lc", command], "exit_code": code}
        payload = {"type": "item_completed", "item": item, "completed_at_ms": 1}
        line = {"timestamp": "2026-11-15T15:49:08.977Z", "type": "event_msg", "payload": payload}
        with self.rollout.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def patch(self) -> None:
        """Really, too: proof is compared with what is in the files."""
        source = self.world.project / "src" / "a.py"
        source.parent.mkdir(exist_ok=True)
        with source.open("a") as file:
            file.write(f"# {next(self._calls)}\n")
        self.tool("apply_patch", PATCH, "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.")

    def run(self, command: str, code: int) -> None:
        """And its end is known, as it is before a model has answered."""
        known = len(self.world.events(kinds=("tool.exit_read",)))
        self.tool("Bash", command, "", code)
        wait_until(lambda: len(self.world.events(kinds=("tool.exit_read",))) > known, "the exit code was read")

    def stop(self) -> str:
        """In words of its own each time: the same within a moment would be the same end, told twice."""
        said = f"Done {next(self._calls)}."
        return self.fire("Stop", last_assistant_message=said, stop_hook_active=False).get("reason", "")


@pytest.fixture
def codex(world: World) -> Codex:
    git(world.project, "init", "-q")
    git(world.project, "commit", "-q", "--allow-empty", "-m", "first")
    git(world.project, "checkout", "-q", "-b", "feature/test")
    settings = world.project / ".claude" / "requirements.yaml"
    settings.parent.mkdir()
    settings.write_text(TESTED)
    world.start()
    return Codex(world)


def test_tests_green_before_you_say_done(codex: Codex) -> None:
    codex.patch()
    assert "no `pytest` that passed is on record" in codex.stop()
    codex.run("pytest -q", 1)
    assert "the last `pytest` failed" in codex.stop()
    codex.run("pytest -q", 0)
    assert codex.stop() == ""
    codex.patch()
    assert "src/a.py changed after" in codex.stop()

    read = codex.world.events(kinds=("tool.exit_read",))
    assert [event.data["exit_code"] for event in read] == [1, 0]
    codex.world.cli("verify")  # The state is what the log says, without the file.


def test_no_long_job_stands_before_it(codex: Codex) -> None:
    """Every worker is at something that does not end."""
    world = codex.world
    world.kill()
    world.env |= {"HOLDFAST_FEATURES": "tests.sample_features.lingering", "PYTHONPATH": str(Path(__file__).parents[2])}
    world.start()
    busy = [world.root / f"pids-{n}" for n in range(WORKERS)]
    for file in busy:
        world.hook("Stop", {"session_id": str(file)})
    wait_until(lambda: all(file.exists() for file in busy), "all workers are busy")
    codex.patch()
    codex.run("pytest -q", 0)
    assert codex.stop() == ""


def test_a_rollout_that_is_gone_is_no_proof_and_no_error(codex: Codex, tmp_path: Path) -> None:
    codex.patch()
    codex.rollout = tmp_path / "rollout-nowhere.jsonl"
    codex.tool("Bash", "pytest -q", "")
    assert "run `pytest` so that it passes" in codex.stop()
    wait_until(lambda: not _jobs(codex.world), "nobody looks any more")
    assert codex.world.events(kinds=("tool.exit_read", "job.failed")) == []


def _jobs(world: World) -> list[dict[str, Any]]:
    with world.reader() as reader:
        return [job for job in reader.jobs() if job["kind"] == "sessions.read_exit"]
