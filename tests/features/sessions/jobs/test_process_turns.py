"""Token use of a live session: every agent's files, its subagents' too, each call once and in its turn."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.analysis.usage.events import usage_record
from holdfast.core.event import Event
from holdfast.core.replay import fold_events
from holdfast.features.sessions import FEATURE
from holdfast.features.sessions.jobs.process_turns import UsagePositions, usage_events
from holdfast.features.sessions.state.documents import SESSION
from tests.analysis.usage.kit import EXPECTED, sample_home, scan_usage, total_of
from tests.factories import NOON
from tests.features.sessions.story import House, Story


def line(message: str, at: int = NOON, output: int = 5, **usage: int) -> str:
    """As Claude Code 2.1.325 writes it."""
    usage = {"input_tokens": 10, "output_tokens": output, **usage}
    body = {"id": message, "role": "assistant", "model": "claude-opus-5-5", "usage": usage}
    return json.dumps({"type": "assistant", "uuid": f"u-{message}", "timestamp": stamp(at), "message": body}) + "\n"


def stamp(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


# ---- every agent's files

TRANSCRIPTS = {
    "claude-code": ".claude/projects/*/{id}.jsonl", "codex": ".codex/sessions/**/rollout-*{id}.jsonl",
    "gemini": ".gemini/tmp/*/chats/session-*.jsonl", "copilot": ".copilot/session-state/{id}/events.jsonl",
    "qwen": ".qwen/projects/*/chats/{id}.jsonl", "droid": ".factory/sessions/**/{id}.jsonl",
}  # fmt: skip
"""What hooks name, below the home folder; the other agents' name nothing."""


def told_live(house: House, home: Path, agent: str) -> list[Event]:
    """As the job reads each of the sample's sessions, with what hooks tell of it."""
    records = list(scan_usage(home, [agent]))
    found: list[Event] = []
    for id_ in sorted({record.session for record in records}):
        transcript = (
            next(iter(sorted(home.glob(TRANSCRIPTS[agent].format(id=id_)))), "") if agent in TRANSCRIPTS else ""
        )
        story = Story().start(session=id_, transcript=str(transcript), after=-(10**10))
        for lane in {record.lane for record in records if record.session == id_ and record.lane}:
            own = next(iter(home.glob(f".codex/sessions/**/rollout-*{lane}.jsonl")), "")
            story.tell("subagent.ended", session=id_, lane=lane, lane_transcript=str(own))
        session = fold_events(FEATURE, story.events)[SESSION.ref(id_)]
        session.agent = agent
        found += usage_events(session, house.reader, UsagePositions(), home)
    return found


@pytest.mark.parametrize("agent", sorted(set(EXPECTED) - {"droid"}))
def test_what_is_read_live_is_what_the_model_said(house: House, tmp_path: Path, agent: str) -> None:
    home = sample_home(tmp_path, agent)
    events = told_live(house, home, agent)
    records = [record for event in events if (record := usage_record(event))]
    assert total_of([record.spent for record in records]) == EXPECTED[agent]
    assert {event.key for event in events} == {record.key for record in scan_usage(home, [agent])}


def test_droid_subagents_are_sessions_of_their_own(house: House, tmp_path: Path) -> None:
    home = sample_home(tmp_path, "droid")
    files = sorted(home.glob(".factory/sessions/**/*.jsonl"))
    spent = []
    for path in files:
        session = fold_events(FEATURE, Story().start(session=path.stem, transcript=str(path)).events)[
            SESSION.ref(path.stem)
        ]
        session.agent = "droid"
        events = list(usage_events(session, house.reader, UsagePositions(), home))
        assert all(event.session == path.stem and not event.data.lane for event in events)
        spent += [record.spent for event in events if (record := usage_record(event))]
    assert total_of(spent) == EXPECTED["droid"]


def test_a_session_id_names_no_file_elsewhere(house: House, tmp_path: Path) -> None:
    session = fold_events(FEATURE, Story().start(session="../../x").events)[SESSION.ref("../../x")]
    for agent in ("kimi", "gemini"):
        session.agent, session.transcript = agent, ""
        assert list(usage_events(session, house.reader, UsagePositions(), tmp_path)) == []


@pytest.mark.parametrize("path", ["", "/nowhere/at/all.jsonl", "/dev/zero", "/tmp", "a\0b.jsonl", "relative.jsonl"])
def test_paths_that_are_no_transcript_are_left_alone(house: House, path: str) -> None:
    house.hook("prompt.submitted", prompt="one", transcript=path)
    house.hook("turn.ended", message="ok")
    assert [event.kind for event in house.run("sessions.process", session="s-1")] == ["turn.processed"]


def test_a_pipe_is_not_waited_for(house: House, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    house.hook("prompt.submitted", prompt="one", transcript=str(tmp_path / "pipe.jsonl"))
    house.hook("turn.ended", message="ok")
    assert len(house.run("sessions.process", session="s-1")) == 1


def test_after_a_restart_only_what_the_log_has_not_is_told(house: House, file: Path) -> None:
    """Recovery takes a hundred at a time: what is known must not take their place."""
    house.hook("prompt.submitted", prompt="one", transcript=str(file))
    file.write_text("".join(line(f"m{n}", at=house.clock() + n) for n in range(300)))
    house.hook("turn.ended", message="ok")
    house.run("sessions.process", session="s-1")
    with file.open("a") as more:
        more.write(line("new", at=house.clock() + 400))
    session = SESSION.load(house.reader, "s-1")
    assert session
    (event,) = usage_events(session, house.reader, UsagePositions())
    assert event.data.answer == "new:"


def test_a_call_of_long_ago_is_in_its_turn(house: House, file: Path) -> None:
    """The session's document holds the latest turns only."""
    began = []
    for n in range(12):
        house.hook("prompt.submitted", prompt=f"prompt {n}", transcript=str(file))
        began.append(house.clock())
        house.hook("turn.ended", message="ok")
        house.run("sessions.process", session="s-1")
    file.write_text(line("old", at=began[1] + 1) + line("before", at=began[0] - 5000) + line("last", at=began[-1] + 1))
    house.run("sessions.process", session="s-1")
    events: list[Any] = [e for e in house.reader.replay(session="s-1") if e.kind == "model.answered"]
    assert {e.data.answer: e.data.turn_n for e in events} == {"old:": 2, "before:": 0, "last:": 12}


def test_a_clock_far_ahead_is_not_believed(house: House, file: Path) -> None:
    house.hook("prompt.submitted", prompt="one", transcript=str(file))
    file.write_text(line("far", at=250_000_000_000_000) + line("zone", at=house.clock() + 3_600_000))
    house.hook("turn.ended", message="ok")
    house.run("sessions.process", session="s-1")
    session = SESSION.load(house.reader, "s-1")
    events: list[Any] = [e for e in house.reader.replay(session="s-1") if e.kind == "model.answered"]
    assert session and {e.data.answer: e.at - session.at for e in events} == {"far:": 0, "zone:": 3_600_000 - 1000}


def test_a_file_of_many_portions_is_read_to_its_end_at_one_look(
    house: House, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of it would be shown as all of it. One line is longer than any that is kept."""
    monkeypatch.setattr("holdfast.analysis.usage.reader.CHUNK", 1 << 10)
    monkeypatch.setattr("holdfast.analysis.usage.reader.MOST_PER_READ", 1 << 11)
    monkeypatch.setattr("holdfast.analysis.usage.reader.LONGEST_LINE", 1 << 12)
    house.hook("prompt.submitted", prompt="one", transcript=str(file))
    file.write_text(line("first") + '{"usage": "' + "x" * (60 << 10) + '"}\n' + line("last"))
    house.hook("turn.ended", message="ok")
    house.run("sessions.process", session="s-1")
    events: list[Any] = [e for e in house.reader.replay(session="s-1") if e.kind == "model.answered"]
    assert [e.data.answer for e in events] == ["first:", "last:"]


# ---- into the session


def test_token_use_is_told_by_turn_and_session(house: House, file: Path):
    """A line may be written after the next prompt: its own time decides whose it is."""
    house.hook("prompt.submitted", prompt="one", transcript=str(file))
    file.write_text(line("m1", at=house.clock() + 10))
    house.hook("turn.ended", message="ok")
    house.run("sessions.process", session="s-1")
    late = house.clock() + 10
    house.hook("prompt.submitted", prompt="two", transcript=str(file))
    with file.open("a") as more:
        more.write(line("m2", at=late) + line("m3", at=house.clock() + 10, cache_read_input_tokens=1000))
    house.hook("turn.ended", message="ok")
    house.run("sessions.process", session="s-1")
    shown = house.view("show")
    assert shown["tokens"] == {"input": 30, "output": 15, "cache_read": 1000}
    assert [(t["n"], t["tokens"]["input"]) for t in shown["turns"]] == [(1, 20), (2, 10)]
    assert house.replayed() == []


def test_a_resumed_session_is_not_counted_twice(house: House, file: Path):
    house.hook("prompt.submitted", prompt="one", transcript=str(file))
    file.write_text(line("m1", at=house.clock() + 10))
    house.hook("session.ended", reason="other")
    house.run("sessions.process", session="s-1")
    house.hook("session.started", source="resume", transcript=str(file))
    house.hook("prompt.submitted", prompt="two", transcript=str(file))
    with file.open("a") as more:
        more.write(line("m2", at=house.clock() + 10))
    house.hook("session.ended", reason="other")
    house.run("sessions.process", session="s-1")
    assert house.view("show")["tokens"]["input"] == 20


def test_what_a_fork_copied_is_its_parents(house: House, file: Path) -> None:
    house.hook("session.started", source="fork", transcript=str(file))
    file.write_text(line("old", at=house.clock() - 5000) + line("new", at=house.clock() + 5000))
    house.hook("prompt.submitted", prompt="one", transcript=str(file))
    house.hook("turn.ended", message="ok")
    house.run("sessions.process", session="s-1")
    assert house.view("show")["tokens"]["input"] == 10


def test_subagents_write_transcripts_of_their_own(house: House, file: Path, tmp_path: Path):
    """H6: their tokens are the session's, in the turn they were used in; each file counts once."""
    lane = tmp_path / "session" / "subagents" / "agent-L.jsonl"
    lane.parent.mkdir(parents=True)
    house.hook("prompt.submitted", prompt="one", transcript=str(file))
    file.write_text(line("m1", at=house.clock() + 10))
    lane.write_text(line("sub1", at=house.clock() + 20) + line("sub2", at=house.clock() + 30))
    house.hook("subagent.started", lane="L")
    house.hook("subagent.ended", lane="L", lane_transcript=str(lane))
    house.hook("turn.ended", message="ok")
    house.clock.tick(2000)
    house.run("sessions.process", session="s-1")
    house.hook("subagent.ended", lane="L", lane_transcript=str(lane))
    house.clock.tick(2000)
    house.run("sessions.pending")
    shown = house.view("show")
    assert (shown["tokens"]["input"], shown["turns"][0]["tokens"]["input"]) == (30, 30)
    assert house.replayed() == []


def test_transcripts_may_be_left_unread(tmp_path: Path, file: Path):
    house = House(tmp_path, transcripts=False)
    try:
        file.write_text(line("m1"))
        house.hook("prompt.submitted", prompt="one", transcript=str(file))
        house.hook("turn.ended", message="ok")
        assert [e.kind for e in house.run("sessions.process", session="s-1")] == ["turn.processed"]
    finally:
        house.close()
