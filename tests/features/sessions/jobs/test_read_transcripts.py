"""Exit codes and answers that only a transcript tells."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.core.event import Event
from holdfast.features.sessions.jobs import read_transcripts
from holdfast.features.sessions.jobs.read_transcripts import find_answer
from tests.features.sessions.story import House
from tests.kit import PAYLOADS

# Exit codes that stand only in the transcript: found there once, of the right call, and reported as of their command.

OUTPUT = "Chunk ID: 1\nProcess exited with code 0\nOutput:\n"


def ended(call: str, code: Any, at: int = 0, command: str = "pytest -q") -> str:
    """As Codex 0.166.0 writes it, before it calls the hook."""
    item = {"type": "CommandExecution", "id": call, "command": ["/bin/bash", "-lc", command], "exit_code": code}
    return record("event_msg", {"type": "item_completed", "item": item, "completed_at_ms": at})


def record(kind: str, payload: Any) -> str:
    return json.dumps({"timestamp": "2026-11-15T15:49:08.977Z", "type": kind, "payload": payload}) + "\n"


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_transcripts, "EXIT_WAITS_S", (0.0, 0.001))


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
        return [found.data["exit_code"] for found in self.house.run(read_transcripts.READ_EXIT, of=event.seq)]


@pytest.fixture
def codex(house: House, rollout: Path) -> Codex:
    return Codex(house, rollout)


def test_what_is_found_is_of_the_time_of_the_command(codex: Codex) -> None:
    event = codex.run()
    codex.write(ended("call_1", 3))
    codex.house.clock.tick(60_000)
    (found,) = codex.house.run(read_transcripts.READ_EXIT, of=event.seq)
    assert (found.kind, found.at, found.session, found.project) == ("tool.exit_read", event.at, "s-1", event.project)
    told = {"call": "call_1", "action": "shell", "command": "pytest -q", "branch": "main"}
    assert found.data.as_dict() == {**told, "ok": False, "exit_code": 3, "of": event.seq}
    codex.house.run(read_transcripts.READ_EXIT, of=event.seq)
    assert [e.kind for e in codex.house.reader.replay(session="s-1")].count("tool.exit_read") == 1
    assert codex.house.replayed() == []


def test_a_command_that_failed_is_shown_and_counted_as_failed(codex: Codex) -> None:
    failed, passed = codex.run("call_1"), codex.run("call_2")
    codex.write(ended("call_1", 3) + ended("call_2", 0))
    for event in (failed, passed):
        codex.house.run(read_transcripts.READ_EXIT, of=event.seq)
    told = codex.house.view("timeline", id="s-1")["entries"]
    assert [(e["call"], e["ok"], e["exit_code"]) for e in told] == [("call_1", False, 3), ("call_2", True, 0)]
    rows = codex.house.view("rows", id="s-1")["rows"]
    assert [(r["call"], r["ok"], r["exit_code"]) for r in rows] == [("call_1", False, 3), ("call_2", True, 0)]
    shown = codex.house.view("show", id="s-1")
    assert (shown["tools"], shown["failed"]) == (2, 1)
    assert codex.house.replayed() == []


def test_a_look_is_asked_for_at_once_and_only_where_it_can_tell_something(codex: Codex) -> None:
    event = codex.run()
    (job,) = [job for job in codex.house.reader.jobs() if job["kind"] == read_transcripts.READ_EXIT]
    assert job["run_at"] == event.at
    for data in ({"exit_code": 1}, {"action": "edit"}, {"transcript": ""}, {"call": ""}):
        codex.run(**data)
    codex.house.hook("tool.finished", action="shell", call="c", command="ls", transcript="/t")  # Claude Code's.
    assert codex.house.waiting().count(read_transcripts.READ_EXIT) == 1


@pytest.mark.parametrize("name", ["PostToolUse.Bash", "PostToolUse.Bash_in_subagent"])
def test_codexs_own_payloads_ask_for_it(house: House, name: str) -> None:
    from holdfast.agents.codex import AGENT as CODEX
    from holdfast.core.decision import Delivery

    payload = json.loads((PAYLOADS / "codex" / f"{name}.json").read_text())
    event = CODEX.read(Delivery(key="k", at=1, mode="ask", agent="codex", event="PostToolUse", body=b""), payload)
    house.take([event])
    assert read_transcripts.READ_EXIT in house.waiting()


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
    monkeypatch.setattr(read_transcripts, "EXIT_WAITS_S", waits)
    monkeypatch.setattr(
        read_transcripts.time, "sleep", lambda wait: codex.write(ended("call_1", 0)) if wait == 0.1 else None
    )
    assert codex.looked_up(event) == [0]
    assert list(waits) == [0.2]


def test_a_file_that_is_not_there_is_not_waited_for(codex: Codex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_transcripts, "EXIT_WAITS_S", iter((0.0, 60.0)))
    assert codex.looked_up(codex.run(transcript="/nowhere/rollout-1.jsonl")) == []


def test_only_the_end_is_read(codex: Codex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_transcripts, "LOOKS", (200, 2000))
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
    assert codex.house.run(read_transcripts.READ_EXIT, of=999) == []


# Copilot's answer, from the file that the real program wrote: of the right turn, once, and in every place that shows
# it.

SAMPLES = Path(__file__).parents[3] / "analysis" / "usage" / "samples"
EVENTS = next((SAMPLES / "copilot").rglob("events.jsonl")).read_bytes()
SUBAGENT = "c0d6c91d-c95d-418c-a1ac-54b49aad686b"
FIRST_END, SECOND_END = 1794777208264, 1794777209953
"""When the two turns of the sample ended (2026-11-15T21:13:28.264Z and :29.953Z)."""


def test_each_turn_has_its_own_answer() -> None:
    assert find_answer("copilot", EVENTS, SECOND_END) == "again done"
    assert find_answer("copilot", EVENTS, FIRST_END) == "all done", "a later turn is in the file already"
    assert find_answer("copilot", EVENTS, FIRST_END, SUBAGENT) == "looked"
    assert find_answer("copilot", EVENTS, SECOND_END, "somebody-else") == ""


def test_the_answers_of_droid_and_kimi() -> None:
    droid = next((SAMPLES / "droid").rglob("8c74e71d*.jsonl")).read_bytes()
    assert find_answer("droid", droid, 1794777623139) == "all done", "a finished task came as a message later"
    assert find_answer("droid", droid, 1794777623566) == "done"
    kimi = next((SAMPLES / "kimi").rglob("main/wire.jsonl")).read_bytes()
    assert find_answer("kimi", kimi, 1794777605712) == "all done"
    assert find_answer("kimi", kimi[: kimi.index(b'"all done"')], 1794777605712) == ""


def test_kimis_file_is_found_by_the_name_of_the_session(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_transcripts, "ANSWER_WAITS_S", (0.0,))
    monkeypatch.setattr(Path, "home", lambda: SAMPLES / "kimi")
    named = {"session": next((SAMPLES / "kimi").rglob("main/wire.jsonl")).parents[2].name, "agent": "kimi"}
    house.take([
        Event(key="k1", kind="prompt.submitted", at=1794777602510, data={"prompt": "please do it"}, **named),
        Event(key="k2", kind="turn.ended", at=1794777605712, **named),
    ])  # fmt: skip
    (read,) = house.run(read_transcripts.READ_ANSWER, of=house.reader.head())
    assert (read.data.message, read.data.n) == ("all done", 1)


def test_what_is_not_written_yet_is_not_the_answer_of_the_turn_before() -> None:
    answer = EVENTS.index(b'"again done"')
    assert find_answer("copilot", EVENTS[:answer], SECOND_END) == ""
    with_tool = EVENTS.index(b'"call_217de2133697_0"')
    assert find_answer("copilot", EVENTS[:with_tool], FIRST_END) == "", "words beside a tool call are no answer"


@pytest.mark.parametrize("size", [0, 10, 500, 4000, 9000])
def test_any_tail_will_do(size: int) -> None:
    assert find_answer("copilot", EVENTS[len(EVENTS) - size :], SECOND_END) in ("", "again done")


def test_noise_is_passed_over() -> None:
    noise = b'{"type":"assistant.message","data":[]}\n{"type":"assistant.message"\n\xff"assistant.message"\n'
    assert find_answer("copilot", EVENTS + noise, SECOND_END) == "again done"


@pytest.fixture
def copilot(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["Copilot"]:
    monkeypatch.setattr(read_transcripts, "ANSWER_WAITS_S", (0.0, 0.001))
    file = tmp_path / "events.jsonl"
    file.write_bytes(EVENTS)
    yield Copilot(house, file)


class Copilot:
    """A session of Copilot in the house."""

    def __init__(self, house: House, file: Path) -> None:
        self.house, self.file = house, file

    def hook(self, kind: str, at: int, **data: Any) -> int:
        event = Event(
            key=f"k{self.house.clock.tick(1000)}", kind=kind, at=at, session="s-1", project="/home/ada/engine",
            agent="copilot", data={"transcript": str(self.file), **data},
        )  # fmt: skip
        self.house.take([event])
        return self.house.reader.head()

    def answers(self) -> list[str]:
        rows = self.house.view("rows", id="s-1")["rows"]
        return [row["text"] for row in rows if row["kind"] == "turn.ended"]


def test_an_answer_is_read_once_and_shown_everywhere(copilot: Copilot) -> None:
    house = copilot.house
    copilot.hook("prompt.submitted", FIRST_END - 2000, prompt="please do it")
    first = copilot.hook("turn.ended", FIRST_END)
    copilot.hook("prompt.submitted", SECOND_END - 200, prompt="and again")
    second = copilot.hook("turn.ended", SECOND_END)
    assert copilot.answers() == ["", ""]
    for of in (second, first, first):
        house.run(read_transcripts.READ_ANSWER, of=of)
    assert copilot.answers() == ["all done", "again done"]
    assert [e.kind for e in house.reader.replay(session="s-1")].count("turn.answer_read") == 2
    shown = house.view("show", id="s-1")
    assert [turn["answer"] for turn in shown["turns"]] == ["all done", "again done"]
    exported = house.view("export", id="s-1", format="md")["text"]
    assert "all done" in exported and "again done" in exported
    assert house.replayed() == []


def test_the_last_answer_of_a_turn_that_went_on_stays(copilot: Copilot) -> None:
    """A refused stop ends the same turn twice; reports may come in any order."""
    copilot.hook("prompt.submitted", FIRST_END - 2000, prompt="please do it")
    first = copilot.hook("turn.ended", FIRST_END)
    copilot.hook("decision.made", FIRST_END, verdict="deny", of=first, of_kind="turn.ended", reasons=["not yet"])
    second = copilot.hook("turn.ended", SECOND_END)
    for of in (second, first):
        copilot.house.run(read_transcripts.READ_ANSWER, of=of)
    assert copilot.house.view("show", id="s-1")["turns"][-1]["answer"] == "again done"


@pytest.mark.parametrize(
    ("agent", "data"),
    [
        ("gemini", {}),
        ("copilot", {"message": "told"}),
        ("copilot", {"imported": "copilot"}),
        ("copilot", {"transcript": ""}),
    ],
)
def test_nothing_is_read_where_nothing_is_missing(agent: str, data: dict[str, str]) -> None:
    event = Event(key="k", kind="turn.ended", at=1, agent=agent, data={"transcript": "/t", **data})
    assert list(read_transcripts.answer_jobs(event)) == []


@pytest.mark.parametrize("path", ["/nowhere/events.jsonl", "a\0b"])
def test_a_file_that_cannot_be_opened_leaves_the_answer_unknown(copilot: Copilot, path: str) -> None:
    copilot.hook("prompt.submitted", 1, prompt="please")
    ended = copilot.hook("turn.ended", 2, transcript=path)
    assert copilot.house.run(read_transcripts.READ_ANSWER, of=ended) == []
