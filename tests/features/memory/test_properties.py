"""Whatever is told in whatever order: no error, bounded documents, and replay gives the same (P5)."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.ports import StateQuery
from holdfast.core.replay import fold_events
from holdfast.core.state import encode
from holdfast.features.memory import FEATURE
from holdfast.features.memory.state.documents import MOST_ITEMS
from holdfast.features.memory.state.reducer import SUBSCRIBED_KINDS
from tests.features.memory.harness import MemoryHarness

LARGEST = 120_000
odd = st.one_of(st.none(), st.text(max_size=30), st.integers(), st.lists(st.text(max_size=5), max_size=3))
words = st.sampled_from(
    ("Always use tabs.", "No, always use spaces in main.py", "x" * 9000, "", "I found that it broke", "\x00<b>")
)
data = st.fixed_dictionaries(
    {},
    optional={
        "prompt": words, "message": words, "summary": words, "text": words | odd, "error": words, "output": words,
        "source": st.sampled_from(("startup", "resume", "clear", "compact", "fork", "odd")),
        "action": st.sampled_from(("edit", "shell", "ask", "todo", "read")), "command": words, "ok": st.booleans(),
        "paths": st.lists(st.sampled_from(("/p/main.py", "a")), max_size=3),
        "input": odd, "task": odd, "subject": words,
        "requirements": odd | st.lists(st.fixed_dictionaries({"name": st.text(max_size=3)}), max_size=2),
        "id": st.sampled_from(("m1", "m2")) | odd, "supersedes": odd, "evidence": odd, "type": odd, "origin": odd,
        "contexts": st.lists(st.fixed_dictionaries({"source": st.just("memory"), "text": words}), max_size=2) | odd,
        "parent": st.sampled_from(("s-1", "s-2", "")), "reason": st.sampled_from(("fork", "clear")),
        "synthetic": st.booleans(), "lane": st.sampled_from(("", "l")), "pinned": odd, "files": odd,
    },
)  # fmt: skip
happenings = st.tuples(st.sampled_from(sorted(SUBSCRIBED_KINDS)), st.sampled_from(("s-1", "s-2")), data)


@settings(max_examples=60, deadline=None)
@given(st.lists(happenings, max_size=25))
def test_anything_in_any_order(told: list) -> None:
    with tempfile.TemporaryDirectory() as folder:
        house = MemoryHarness(Path(folder))
        house.engine.ports = _forgiving(house)
        for kind, session, given_data in told:
            house.ask(kind, session=session, **given_data)
        assert house.replayed() == []
        assert all(len(row.doc) < LARGEST for row in house.reader.rows("memory"))
        house.close()


def _forgiving(house: MemoryHarness):
    """A room may refuse nonsense by raising: the engine leaves the document as it was, now and in every replay."""
    import msgspec

    return msgspec.structs.replace(house.engine.ports, report=lambda *_: None)


def test_a_long_life_stays_bounded(tmp_path: Path) -> None:
    house = MemoryHarness(tmp_path)
    words = "Always use library{n} for the part component{n} of engine{n}."
    # Learned before: as events, because a turn holds what was said against all that is known.
    for n in range(MOST_ITEMS):
        about = {"id": f"m{n:012x}", "type": "decision", "origin": "user", "importance": 8}
        house.hook("memory.observed", session=f"s-{n % 7}", text=words.format(n=n), **about)
    for n in range(MOST_ITEMS, MOST_ITEMS + 4):
        house.turn(words.format(n=n), session=f"s-{n % 7}")
    sizes = {row.ref.kind: len(row.doc) for row in house.reader.rows("memory")}
    [(_, project)] = house.reader.states(StateQuery(kind="memory.project"))
    assert len(project["items"]) == MOST_ITEMS
    assert sizes["memory.project"] < LARGEST
    assert sizes["memory.session"] < 30_000
    house.close()


def test_reducing_changes_nothing_it_was_given(tmp_path: Path) -> None:
    house = MemoryHarness(tmp_path)
    house.turn("Always use tabs.")
    house.ran("make test")
    events = list(house.reader.replay())
    docs = fold_events(FEATURE, events[:-1])
    before = {ref: encode(doc) for ref, doc in docs.items()}
    fold_events(FEATURE, events[-1:], dict(docs))
    assert {ref: encode(doc) for ref, doc in docs.items()} == before
    house.close()
