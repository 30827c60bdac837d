"""Calls that failed without a hook: found in droid's own file, of the right call, and counted once."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.core.event import Event
from holdfast.features.sessions.jobs import read_failures
from tests.features.sessions.story import House

FAILED = "Error: Command failed (exit code: 3)\nbroken\n\n\n[Process exited with code 3]"


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_failures, "WAITS_S", (0.0,))


class Droid:
    """A session of droid in the house: `tell` is a hook, `write` what stands in its file."""

    def __init__(self, house: House, file: Path) -> None:
        self.house, self.file = house, file
        file.write_text('{"type":"session_start","id":"s-1"}\n')
        self.tell("session.started", source="startup")
        self.tell("prompt.submitted", prompt="please do it")

    def tell(self, kind: str, tool: str = "", **data: Any) -> Event:
        event = Event(
            key=f"k{self.house.clock.tick(1000)}", kind=kind, at=self.house.clock(), session="s-1", project="/p",
            agent="droid", tool=tool, data={"transcript": str(self.file), **data},
        )  # fmt: skip
        self.house.take([event])
        return msgspec.structs.replace(event, seq=self.house.reader.head())

    def begin(self, command: str) -> Event:
        return self.tell("tool.started", "Execute", action="shell", command=command, input={"command": command})

    def write(self, call: str, command: str, text: str, *, failed: bool = True) -> None:
        """As 0.225.2 writes it, before it calls its next hook."""
        use = {"type": "tool_use", "id": call, "name": "Execute", "input": {"command": command}}
        result = {"type": "tool_result", "tool_use_id": call, "is_error": failed, "content": text}
        at = datetime.fromtimestamp((self.house.clock() + 500) / 1000, UTC).isoformat()
        for role, part in (("assistant", use), ("user", result)):
            line = {"type": "message", "timestamp": at, "message": {"role": role, "content": [part]}}
            self.file.write_text(self.file.read_text() + json.dumps(line) + "\n")

    def look(self, following: Event) -> list[Event]:
        return self.house.run(read_failures.READ, of=following.seq)

    def shown(self) -> tuple[list[Any], list[Any]]:
        rows = self.house.view("timeline", id="s-1")["entries"]
        told = self.house.view("show", id="s-1")
        return (
            [(row["text"], row["outcome"], row["exit_code"]) for row in rows if row["tool"]],
            [told["turn_n"], told["tools"], told["failed"]],
        )


@pytest.fixture
def droid(house: House, tmp_path: Path) -> Droid:
    return Droid(house, tmp_path / "s-1.jsonl")


@pytest.mark.parametrize("following", ["tool.started", "turn.ended"])
def test_a_command_that_failed_is_told_when_the_next_hook_comes(droid: Droid, following: str) -> None:
    started = droid.begin("make")
    droid.write("c1", "make", FAILED)
    after = droid.begin("ls") if following == "tool.started" else droid.tell("turn.ended")
    assert read_failures.READ in droid.house.waiting()
    (failed,) = droid.look(after)
    assert (failed.kind, failed.data.exit_code, failed.data.ok) == ("tool.failed", 3, False)
    assert (failed.at, failed.data.command) == (started.at + 500, "make")
    droid.look(after)
    assert [e.kind for e in droid.house.reader.replay(session="s-1")].count("tool.failed") == 1
    if following == "tool.started":
        droid.tell("tool.finished", "Execute", action="shell", command="ls", input={"command": "ls"}, ok=True)
        droid.tell("turn.ended")
        assert droid.shown() == ([("make", "failed", 3), ("ls", "ok", None)], [1, 2, 1])
    else:
        assert droid.shown() == ([("make", "failed", 3)], [1, 1, 1]), "no turn came of it"
    assert droid.house.replayed() == []


def test_only_what_failed_and_was_not_refused(droid: Droid) -> None:
    refused = droid.begin("rm x")
    denial = {"of": refused.seq, "of_kind": "tool.started", "verdict": "deny", "reasons": ["no"]}
    droid.tell("decision.made", "Execute", **denial)
    droid.write("c1", "rm x", "Error: no")
    droid.begin("sleep 9")
    droid.write("c2", "sleep 8", FAILED)
    droid.write("c3", "sleep 9", "fine", failed=False)
    assert droid.look(droid.tell("turn.ended")) == []


def test_an_older_run_of_the_same_command_says_nothing(droid: Droid) -> None:
    droid.write("c1", "make", FAILED)
    droid.begin("make")
    assert droid.look(droid.tell("turn.ended")) == []


def test_a_file_that_is_no_transcript(droid: Droid) -> None:
    droid.begin("make")
    droid.file.write_text('{"message":5}\n\x00\n[]\n{"message":{"content":[{"type":"tool_result","is_error":true}]}}')
    assert droid.look(droid.tell("turn.ended")) == []
    droid.file.unlink()
    assert droid.look(droid.tell("turn.ended")) == []
