"""Token use, read a piece at a time from files agents write while we read."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.features.sessions.jobs import transcript
from holdfast.features.sessions.state.documents import TranscriptPosition
from tests.factories import NOON
from tests.features.sessions.story import House


def line(message: str, at: int = NOON, output: int = 5, **usage: int) -> str:
    """As Claude Code 2.1.325 writes it."""
    usage = {"input_tokens": 10, "output_tokens": output, **usage}
    body = {"id": message, "role": "assistant", "model": "claude-opus-5-5", "usage": usage}
    return json.dumps({"type": "assistant", "uuid": f"u-{message}", "timestamp": stamp(at), "message": body}) + "\n"


def stamp(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def total(reading: transcript.Reading | None) -> tuple[int, int]:
    found = [tokens for _, tokens in reading.found] if reading else []
    return sum(t["input"] for t in found), sum(t["output"] for t in found)


def state(reading: transcript.Reading | None) -> TranscriptPosition:
    assert reading
    return TranscriptPosition(path=reading.path, offset=reading.offset, last=reading.last, ids=reading.ids)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def test_only_what_is_new_is_read(file: Path):
    file.write_text(line("m1") + '{"type":"user"}\n' + line("m2"))
    first = transcript.read(str(file), None)
    assert total(first) == (20, 10)
    assert transcript.read(str(file), state(first)) is None
    with file.open("a") as more:
        more.write(line("m3", output=7))
    assert total(transcript.read(str(file), state(first))) == (10, 7)


def test_a_message_in_several_lines_counts_once(file: Path):
    """Each line repeats the use of the message so far; the lines may come in two readings."""
    file.write_text(line("m1", output=1) + line("m1", output=4))
    first = transcript.read(str(file), None)
    assert total(first) == (10, 4)
    with file.open("a") as more:
        more.write(line("m1", output=9))
    assert total(transcript.read(str(file), state(first))) == (0, 5)


def test_half_a_line_waits_for_its_end(file: Path):
    whole = line("m1")
    file.write_text(whole + whole[:40])
    first = transcript.read(str(file), None)
    assert first and first.offset == len(whole)
    file.write_text(whole + line("m2"))
    assert total(transcript.read(str(file), state(first))) == (10, 5)


def test_a_file_written_anew_is_not_counted_twice(file: Path):
    file.write_text(line("m1", at=NOON) * 3 + line("m2", at=NOON + 1000))
    first = transcript.read(str(file), None)
    file.write_text(line("m2", at=NOON + 1000) + line("m9", at=NOON + 2000))
    assert total(transcript.read(str(file), state(first))) == (10, 5)


def test_what_a_fork_copied_is_its_parents(file: Path):
    file.write_text(line("old", at=NOON - 5000) + line("new", at=NOON + 5000))
    assert total(transcript.read(str(file), None, not_before=NOON)) == (10, 5)


RUBBISH = [
    "not json with _tokens\n",
    '{"type":"assistant","message":"input_tokens"}\n',
    '{"type":"assistant","message":{"usage":{"input_tokens":"many"}},"timestamp":"yesterday"}\n',
    '{"type":"assistant","message":{"id":"x","usage":{"input_tokens":-5,"output_tokens":1e99}},'
    f'"timestamp":"{stamp(NOON)}"}}\n',
    '["input_tokens"]\n',
    '"input_tokens"\n',
    "null _tokens\n",
    "[" * 3000 + '"_tokens"' + "]" * 3000 + "\n",
    "\x00\ud7ff_tokens\n",
]


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_unknown_lines_are_kept_out_of_the_way(file: Path, rubbish: str):
    file.write_text(line("m1") + rubbish + line("m2"))
    assert total(transcript.read(str(file), None)) == (20, 10)


@given(st.binary(max_size=2000))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_survived(rubbish: bytes):
    assert isinstance(list(transcript.usages(rubbish + b'\n{"type":"assistant","_tokens":' + rubbish)), list)


def test_codex_counts_its_cached_tokens_in(file: Path):
    usage = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 9, "total_tokens": 109}
    payload = {"type": "token_count", "info": {"last_token_usage": usage, "total_token_usage": usage}}
    file.write_text(json.dumps({"type": "event_msg", "timestamp": stamp(NOON), "payload": payload}) + "\n")
    reading = transcript.read(str(file), None)
    assert reading and reading.found == [(NOON, {"input": 40, "output": 9, "cache_read": 60, "cache_write": 0})]


@pytest.mark.parametrize("path", ["", "/nowhere/at/all", "/dev/zero", "/tmp", "a\0b", "relative.jsonl"])
def test_paths_that_are_no_transcript_are_left_alone(path: str):
    assert transcript.read(path, None) is None


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    assert transcript.read(str(tmp_path / "pipe"), None) is None


def test_an_endless_line_is_passed_over(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(transcript, "MOST_BYTES", 1000)
    file.write_text("x" * 2500 + "\n" + line("m1"))
    reading, seen = None, []
    for _ in range(10):
        after = transcript.read(str(file), state(reading) if reading else None)
        if after is None:
            break
        reading = after
        seen += after.found
    assert sum(tokens["input"] for _, tokens in seen) == 10


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
    assert shown["tokens"] == {"input": 30, "output": 15, "cache_read": 1000, "cache_write": 0}
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
    assert house.doc()["tokens"]["input"] == 20


def test_subagents_write_transcripts_of_their_own(house: House, file: Path, tmp_path: Path):
    """H6: their tokens are the session's, in the turn they were used in; each file counts once."""
    lane = tmp_path / "agent-L.jsonl"
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
