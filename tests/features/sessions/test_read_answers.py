"""Copilot's answer, from the end of a file that the real program wrote."""

from pathlib import Path

import pytest

from holdfast.core.event import Event
from holdfast.features.sessions.read_answers import add_answer, answer_in

EVENTS = next((Path(__file__).parents[2] / "usage" / "samples" / "copilot").rglob("events.jsonl")).read_bytes()
SUBAGENT = "c0d6c91d-c95d-418c-a1ac-54b49aad686b"


def test_the_last_answer_of_the_session_and_of_its_subagent():
    assert answer_in(EVENTS) == "again done"
    assert answer_in(EVENTS, SUBAGENT) == "looked"
    assert answer_in(EVENTS, "somebody-else") == ""


@pytest.mark.parametrize("size", [0, 10, 500, 4000, 9000])
def test_any_tail_will_do(size):
    assert answer_in(EVENTS[len(EVENTS) - size :]) in ("", "again done")


def test_noise_is_passed_over():
    noise = b'{"type":"assistant.message","data":[]}\n{"type":"assistant.message"\n\xff"assistant.message"\n'
    assert answer_in(EVENTS + noise) == "again done"


def test_the_end_of_a_turn_gets_the_answer(tmp_path: Path):
    file = tmp_path / "events.jsonl"
    file.write_bytes(EVENTS)

    def ended(agent: str = "copilot", **data: str) -> Event:
        return Event(key="k", kind="turn.ended", at=1, agent=agent, data={"transcript": str(file), **data})

    for event, wanted in (
        (ended(), "again done"), (ended(message="told"), "told"), (ended("gemini"), ""),
        (ended(transcript=str(tmp_path / "none")), ""), (ended(transcript="a\0b"), ""),
    ):  # fmt: skip
        add_answer(event)
        assert event.data.message == wanted
