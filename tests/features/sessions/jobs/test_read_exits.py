"""Exit codes that stand only in the transcript: found there once, of the right call, and reported as of their command."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.core.event import Event
from holdfast.features.sessions.jobs import read_exits as exits
from tests.features.sessions.story import House
from tests.kit import PAYLOADS

OUTPUT = "Chunk ID: 1\nProcess exited with code 0\nOutput:\n"


def ended(call: str, code: Any, at: int = 0, command: str = "pytest -q") -> str:
    """As Codex 0.166.0 writes it, before it calls the hook."""
    item = {"type": "CommandExecution", "id": call, "command": ["/bin/bash", "-lc", command], "exit_code": code}
    return record("event_msg", {"type": "item_completed", "item": item, "completed_at_ms": at})


def record(kind: str, payload: Any) -> str:
    return json.dumps({"timestamp": "2026-11-15T15:49:08.977Z", "type": kind, "payload": payload}) + "\n"


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exits, "WAITS_S", (0.0, 0.001))


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    file = tmp_path / "rollout-1.jsonl"
    file.write_text(record("session_meta", {"id": "s-1"}))
    return file


class Codex:
    """A session of Codex in the house; `run` is the hook after a command."""

    def __init__(self, house: House, rollout: Path) -> None:
        self.house, self.rollout = house, rollout

    def run(self, call: str = "call_1", command: str = "pytest -q", **data: Any) -> Event:
        told = {"action": "shell", "call": call, "command": command, "ok": True, "transcript": str(self.rollout)}
        event = Event(
            key=f"k{self.house.clock.tick(1000)}", kind="tool.finished", at=self.house.clock(), session="s-1",
            project="/home/ada/engine", agent="codex", tool="Bash", data={**told, "branch": "main", **data},
        )  # fmt: skip
        self.house.take([event])
        return msgspec.structs.replace(event, seq=self.house.reader.head())

    def write(self, text: str) -> None:
        with self.rollout.open("a") as file:
            file.write(text)

    def looked_up(self, event: Event) -> list[int]:
        return [found.data["exit_code"] for found in self.house.run(exits.READ, of=event.seq)]


@pytest.fixture
def codex(house: House, rollout: Path) -> Codex:
    return Codex(house, rollout)


def test_what_is_found_is_of_the_time_of_the_command(codex: Codex) -> None:
    event = codex.run()
    codex.write(ended("call_1", 3))
    codex.house.clock.tick(60_000)
    (found,) = codex.house.run(exits.READ, of=event.seq)
    assert (found.kind, found.at, found.session, found.project) == ("tool.exit_read", event.at, "s-1", event.project)
    told = {"call": "call_1", "action": "shell", "command": "pytest -q", "branch": "main"}
    assert found.data.as_dict() == {**told, "ok": False, "exit_code": 3, "of": event.seq}
    codex.house.run(exits.READ, of=event.seq)
    assert [e.kind for e in codex.house.reader.replay(session="s-1")].count("tool.exit_read") == 1
    assert codex.house.replayed() == []


def test_a_command_that_failed_is_shown_and_counted_as_failed(codex: Codex) -> None:
    failed, passed = codex.run("call_1"), codex.run("call_2")
    codex.write(ended("call_1", 3) + ended("call_2", 0))
    for event in (failed, passed):
        codex.house.run(exits.READ, of=event.seq)
    told = codex.house.view("timeline", id="s-1")["entries"]
    assert [(e["call"], e["ok"], e["exit_code"]) for e in told] == [("call_1", False, 3), ("call_2", True, 0)]
    rows = codex.house.view("rows", id="s-1")["rows"]
    assert [(r["call"], r["ok"], r["exit_code"]) for r in rows] == [("call_1", False, 3), ("call_2", True, 0)]
    shown = codex.house.view("show", id="s-1")
    assert (shown["tools"], shown["failed"]) == (2, 1)
    assert codex.house.replayed() == []


def test_a_look_is_asked_for_at_once_and_only_where_it_can_tell_something(codex: Codex) -> None:
    event = codex.run()
    (job,) = [job for job in codex.house.reader.jobs() if job["kind"] == exits.READ]
    assert job["run_at"] == event.at
    for data in ({"exit_code": 1}, {"action": "edit"}, {"transcript": ""}, {"call": ""}):
        codex.run(**data)
    codex.house.hook("tool.finished", action="shell", call="c", command="ls", transcript="/t")  # Claude Code's.
    assert codex.house.waiting().count(exits.READ) == 1


@pytest.mark.parametrize("name", ["PostToolUse.Bash", "PostToolUse.Bash_in_subagent"])
def test_codexs_own_payloads_ask_for_it(house: House, name: str) -> None:
    from holdfast.agents.codex import CODEX
    from holdfast.core.decision import Delivery

    payload = json.loads((PAYLOADS / "codex" / f"{name}.json").read_text())
    event = CODEX.read(Delivery(key="k", at=1, mode="ask", agent="codex", event="PostToolUse", body=b""), payload)
    house.take([event])
    assert exits.READ in house.waiting()


def test_only_the_very_call(codex: Codex) -> None:
    event = codex.run()
    codex.write(ended("call_10", 0) + ended("call_2", 0))
    codex.write(record("response_item", {"type": "function_call_output", "call_id": "call_1", "output": OUTPUT}))
    codex.write(
        record("event_msg", {"type": "item_completed", "item": {"type": "Note", "id": "call_1", "exit_code": 0}})
    )
    codex.write(record("event_msg", {"type": "agent_message", "message": ended("call_1", 0)}))
    assert codex.looked_up(event) == []
    codex.write(ended("call_1", 2))
    assert codex.looked_up(event) == [2]


def test_a_model_that_counts_its_calls_from_0_again(codex: Codex) -> None:
    first = codex.run("call_0")
    codex.write(ended("call_0", 1, at=first.at - 10))
    second = codex.run("call_0")
    codex.write(ended("call_0", 0, at=second.at - 10))
    assert (codex.looked_up(first), codex.looked_up(second)) == ([1], [0])


def test_it_is_looked_for_again_a_moment_later(codex: Codex, monkeypatch: pytest.MonkeyPatch) -> None:
    event = codex.run()
    waits = iter((0.0, 0.1, 0.2))
    monkeypatch.setattr(exits, "WAITS_S", waits)
    monkeypatch.setattr(exits.time, "sleep", lambda wait: codex.write(ended("call_1", 0)) if wait == 0.1 else None)
    assert codex.looked_up(event) == [0]
    assert list(waits) == [0.2]


def test_a_file_that_is_not_there_is_not_waited_for(codex: Codex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exits, "WAITS_S", iter((0.0, 60.0)))
    assert codex.looked_up(codex.run(transcript="/nowhere/rollout-1.jsonl")) == []


def test_only_the_end_is_read(codex: Codex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exits, "LOOKS", (200, 2000))
    event, line = codex.run(), record("response_item", {"text": "x" * 60})
    codex.write(ended("call_1", 7) + line * 5)
    assert codex.looked_up(event) == [7]
    codex.write(line * 50)
    assert codex.looked_up(codex.run()) == []


@pytest.mark.parametrize("code", [None, "0", True, 1 << 40, {}])
def test_what_is_no_exit_code_is_none(codex: Codex, code: Any) -> None:
    codex.write("[" * 5000 + '"call_1"\n' + ended("call_1", code) + '"call_1"\n{"call_1": ' + ended("call_1", 0)[:-5])
    assert codex.looked_up(codex.run()) == []


def test_only_a_plain_file_is_opened(codex: Codex, tmp_path: Path) -> None:
    pipe = tmp_path / "rollout-pipe.jsonl"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, "/dev/zero", "/proc/self/mem", "bad\0path"):
        assert codex.looked_up(codex.run(transcript=str(path))) == []


def test_who_wants_no_transcript_read_gets_none_read(tmp_path: Path, rollout: Path) -> None:
    house = House(tmp_path, transcripts=False)
    codex = Codex(house, rollout)
    event = codex.run()
    codex.write(ended("call_1", 0))
    assert codex.looked_up(event) == []
    house.close()


def test_a_call_that_is_not_in_the_log_is_nothing(codex: Codex) -> None:
    assert codex.house.run(exits.READ, of=999) == []
