"""Copilot's answer, from the file that the real program wrote: of the right turn, once, and in every place that shows it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.event import Event
from holdfast.features.sessions.jobs import read_answers
from holdfast.features.sessions.jobs.read_answers import find_answer
from tests.features.sessions.story import House

SAMPLES = Path(__file__).parents[3] / "usage" / "samples"
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
    monkeypatch.setattr(read_answers, "WAITS_S", (0.0,))
    monkeypatch.setattr(Path, "home", lambda: SAMPLES / "kimi")
    named = {"session": next((SAMPLES / "kimi").rglob("main/wire.jsonl")).parents[2].name, "agent": "kimi"}
    house.take([
        Event(key="k1", kind="prompt.submitted", at=1794777602510, data={"prompt": "please do it"}, **named),
        Event(key="k2", kind="turn.ended", at=1794777605712, **named),
    ])  # fmt: skip
    (read,) = house.run(read_answers.READ, of=house.reader.head())
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
    monkeypatch.setattr(read_answers, "WAITS_S", (0.0, 0.001))
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
        house.run(read_answers.READ, of=of)
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
        copilot.house.run(read_answers.READ, of=of)
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
    assert list(read_answers.answer_jobs(event)) == []


@pytest.mark.parametrize("path", ["/nowhere/events.jsonl", "a\0b"])
def test_a_file_that_cannot_be_opened_leaves_the_answer_unknown(copilot: Copilot, path: str) -> None:
    copilot.hook("prompt.submitted", 1, prompt="please")
    ended = copilot.hook("turn.ended", 2, transcript=path)
    assert copilot.house.run(read_answers.READ, of=ended) == []
