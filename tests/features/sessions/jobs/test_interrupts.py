"""What Esc leaves behind: a line in the transcript, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.features.sessions.jobs import recovery
from holdfast.features.sessions.jobs.recovery import MOST_FILES, Interrupts
from holdfast.features.sessions.state.documents import Turn
from holdfast.usage.model import parse_milliseconds
from tests.features.sessions.jobs.test_read_usage import line, stamp
from tests.features.sessions.story import House

MARK = "[Request interrupted by user for tool use]"


def interrupted(at: int, prompt: str = "p1", content: Any = None) -> str:
    """As Claude Code 2.1.325 writes it."""
    content = [{"type": "text", "text": MARK}] if content is None else content
    message = {"role": "user", "content": content}
    return json.dumps({"type": "user", "promptId": prompt, "timestamp": stamp(at), "message": message}) + "\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


@pytest.fixture
def working(house: House, file: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A session of a known process in the middle of a tool."""
    monkeypatch.setattr(recovery, "INTERRUPTS", Interrupts())
    file.write_text(line("m0", at=house.clock()))
    house.hook("prompt.submitted", prompt="go", turn="p1", transcript=str(file))
    house.hook("session.process", pid=1, start=1, boot="b", host="h", name="claude")
    house.hook("tool.started", tool="Bash", call="c1", command="make")
    return house


def add(file: Path, text: str) -> None:
    with file.open("a") as more:
        more.write(text)


def test_it_ends_the_turn_once(working: House, file: Path):
    assert working.run("sessions.interrupted") == []
    add(file, interrupted(working.clock.tick(500)))
    assert [e.kind for e in working.run("sessions.interrupted")] == ["turn.escaped"]
    doc = working.doc()
    assert (doc["state"], doc["turn"]["how"], doc["running"]) == ("waiting", "interrupted", {})
    assert working.run("sessions.interrupted") == []
    assert working.replayed() == []


def test_a_turn_that_goes_on_is_not_ended_by_an_older_mark(working: House, file: Path):
    add(file, interrupted(working.clock.tick(500), prompt="p0"))
    assert working.run("sessions.interrupted") == []
    add(file, interrupted(working.clock()))
    working.clock.tick(20_000)
    working.hook("tool.finished", tool="Bash", call="c1", ok=True, turn="p1")
    assert [e.kind for e in working.run("sessions.interrupted")] == ["turn.escaped"]
    assert working.doc()["state"] == "working"


@pytest.mark.parametrize("content", [MARK, [{"type": "text", "text": f"He said {MARK}"}], [MARK], {}, None])
def test_the_same_words_from_a_person_are_no_mark(working: House, file: Path, content: Any):
    text = interrupted(working.clock(), content=content if content is not None else "")
    add(file, text + f'{MARK} is not JSON\n{{"message": "{MARK}"}}\n["{MARK}"]\n')
    assert working.run("sessions.interrupted") == []


def test_half_a_line_is_read_when_it_is_whole(working: House, file: Path):
    text = interrupted(working.clock.tick(500))
    add(file, text[:-9])
    assert working.run("sessions.interrupted") == []
    add(file, text[-9:])
    assert len(working.run("sessions.interrupted")) == 1


def test_only_so_many_files_are_remembered(working: House, tmp_path: Path):
    reader = Interrupts()
    for n in range(MOST_FILES + 20):
        path = tmp_path / f"{n}.jsonl"
        path.write_text("{}\n")
        reader.latest(str(path), Turn(n=1))
    assert len(reader._offsets) == MOST_FILES


def test_times_are_read_as_agents_write_them():
    assert parse_milliseconds("1970-01-01T00:00:01.500Z") == 1500
