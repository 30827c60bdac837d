"""An imported call of a model is in the turn that a live session would have put it in."""

from pathlib import Path

import pytest

from holdfast.analysis.transcripts import ImportLocation
from holdfast.core.event import Event
from holdfast.setup.imports import IMPORTERS
from holdfast.setup.imports.turns import number_turns
from tests.analysis.usage.kit import EXPECTED, sample_home


def imported(home: Path, agent: str) -> list[Event]:
    place, importer = ImportLocation(home, home), IMPORTERS[agent]
    found = (one for file in importer.find_files(place) for one in importer.read(file, place))
    return list(number_turns(one for one in found if isinstance(one, Event)))


@pytest.mark.parametrize("agent", sorted(set(EXPECTED) & set(IMPORTERS)))
def test_every_call_of_a_recorded_session_has_its_turn(tmp_path: Path, agent: str) -> None:
    """The samples are two prompts; droid writes one sum for the whole session."""
    events = imported(sample_home(tmp_path, agent), agent)
    numbers = {event.data.turn_n for event in events if event.kind == "model.answered"}
    prompts = sum(event.kind == "prompt.submitted" and not event.data.lane for event in events)
    assert numbers and numbers <= set(range(prompts + 1))
    if agent != "droid":
        assert 0 not in numbers


def test_a_turn_is_counted_as_the_sessions_feature_counts() -> None:
    def event(kind: str, n: int, **data: object) -> Event:
        return Event(key=f"{kind}{n}", kind=kind, at=n, session="s", agent="codex", data=data)

    told = [
        event("session.started", 1), event("model.answered", 2), event("prompt.submitted", 3, prompt="one"),
        event("model.answered", 4), event("prompt.submitted", 5, prompt="", synthetic=True), event("model.answered", 6),
        event("turn.ended", 7), event("prompt.submitted", 8, prompt="two"), event("model.answered", 9, lane="sub"),
    ]  # fmt: skip
    assert [e.data.turn_n for e in number_turns(told) if e.kind == "model.answered"] == [0, 1, 1, 2]


def test_every_session_of_an_imported_file_ends_once() -> None:
    """A file may begin with a record of another session, or be a subagent's whose session has none."""

    def event(session: str, kind: str, n: int, **data: object) -> Event:
        return Event(key=f"{kind}{n}", kind=kind, at=n, session=session, agent="codex", data=data)

    told = [
        event("old", "prompt.submitted", 1, prompt="plan"), event("new", "prompt.submitted", 2, prompt="build"),
        event("new", "session.ended", 3, reason="import"), event("parent", "tool.started", 4, lane="sub"),
    ]  # fmt: skip
    ended = [(e.session, e.at) for e in number_turns(told, whole_sessions=True) if e.kind == "session.ended"]
    assert ended == [("new", 3), ("old", 1), ("parent", 4)]
    assert [e.session for e in number_turns(told) if e.kind == "session.ended"] == ["new"]
