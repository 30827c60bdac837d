"""Point 8: places in the code that fit a prompt, at most three, told once, and only where that is switched on."""

from pathlib import Path

from holdfast.analysis.search.answer import Hit
from holdfast.core.decision import Decision
from holdfast.features.reindex.jobs import _is_relevant_hit
from holdfast.features.reindex.policy import SUGGEST, decide
from holdfast.features.reindex.settings import Settings
from holdfast.features.reindex.state import SESSION, FlagState, Offer
from tests.factories import an_event
from tests.features.reindex.test_state import Room

ON = Settings(context=True)


class Given:
    def __init__(self, doc: FlagState) -> None:
        self._doc = doc

    def get(self, kind: str, key: str) -> FlagState | None:
        return self._doc if (kind, key) == (SESSION.kind, "s-1") else None


def chunk(number: int) -> dict:
    return {"path": f"m{number}.py", "line": number, "symbol": f"f{number}", "excerpt": "a\nb\nc\nd\ne\nf\ng"}


def suggested(room: Room, count: int) -> None:
    room.tell("reindex.suggested", "s-1", {"of": 2, "chunks": [chunk(n) for n in range(1, count + 1)]})


def test_more_than_three_are_not_kept(tmp_path: Path) -> None:
    room = Room(tmp_path, context=True)
    room.tell("prompt.submitted", "s-1", {"prompt": "x"})
    suggested(room, 9)
    assert len((room.session("s-1") or {})["offer"]["chunks"]) == 3


def test_the_next_prompt_clears_them(tmp_path: Path) -> None:
    room = Room(tmp_path, context=True)
    room.tell("prompt.submitted", "s-1", {"prompt": "x"})
    suggested(room, 1)
    room.tell("prompt.submitted", "s-1", {"prompt": "y"})
    assert (room.session("s-1") or {})["offer"] is None


def test_once_told_they_are_gone_and_what_others_say_does_not_count(tmp_path: Path) -> None:
    """With the next tool's result: tests/stories/test_reindex.py plays it through the real hook."""
    room = Room(tmp_path, context=True)
    room.tell("prompt.submitted", "s-1", {"prompt": "x"})
    suggested(room, 2)
    room.tell("decision.made", "s-1", {"contexts": [{"source": "memory"}]})
    assert (room.session("s-1") or {})["offer"]
    room.tell("decision.made", "s-1", {"contexts": [{"source": "reindex"}]})
    assert (room.session("s-1") or {})["offer"] is None


def test_switched_off_nothing_is_looked_for_nor_told(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.tell("prompt.submitted", "s-1", {"prompt": "where is the wheel turned"})
    offered = FlagState(session_id="s-1", offer=Offer(1, [chunk(7)]))
    assert decide(Given(offered), an_event(kind="tool.finished", session="s-1"), Settings()) is None
    assert SUGGEST not in [job["kind"] for job in room.store.reader().jobs()]


def test_switched_on_the_prompt_is_a_job_of_its_own(tmp_path: Path) -> None:
    room = Room(tmp_path, context=True)
    room.tell("prompt.submitted", "s-1", {"prompt": "where is the wheel turned"})
    assert SUGGEST in [job["kind"] for job in room.store.reader().jobs()]


def hit(*why: str) -> Hit:
    return Hit(path="a.py", line=1, end=2, symbol="f", kind="function", lang="python", score=1.0, why=list(why))


def test_what_really_fits() -> None:
    """Named outright or near in meaning; a shared word alone is no reason to talk to an agent."""
    assert _is_relevant_hit(hit("symbol"), 0.5)
    assert _is_relevant_hit(hit("path", "words: a"), 0.5)
    assert _is_relevant_hit(hit("words: wheel", "meaning 0.61"), 0.5)
    assert not _is_relevant_hit(hit("words: wheel", "meaning 0.31"), 0.5)
    assert not _is_relevant_hit(hit("words: wheel"), 0.5)


def test_the_text_shows_few_lines() -> None:
    doc = FlagState(session_id="s-1", offer=Offer(1, [chunk(7)]))

    told = decide(Given(doc), an_event(kind="tool.finished", session="s-1"), ON)
    assert isinstance(told, Decision)
    assert "m7.py:7 f7" in str(told)
    assert "    f" not in str(told), "five lines of an excerpt at most"
