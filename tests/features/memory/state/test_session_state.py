"""What a session's document keeps, and how seldom it is written: every hook waits for it."""

from holdfast.core.state import encode
from holdfast.features.memory.state.documents import session_ref
from tests.features.memory.harness import MemoryHarness


def document(house: MemoryHarness) -> bytes:
    return encode(house.load_document(session_ref("s-1")))


def test_tools_that_teach_nothing_leave_the_document_alone(house: MemoryHarness) -> None:
    house.prompt("clean up")
    house.edited("/home/ada/engine/a.py")
    house.ran("make test")
    before = document(house)
    for _ in range(20):
        house.ran("ls -l")
        house.ran("make test")
        house.edited("/home/ada/engine/a.py")
    assert document(house) == before
    assert len(before) < 1000


def test_after_a_failure_only_what_could_explain_it_is_kept(house: MemoryHarness) -> None:
    house.prompt("fix it")
    house.ran("pytest -x", ok=False, output="boom")
    for n in range(40):
        house.ran(f"python script{n}.py")
        house.edited("/home/ada/engine/a.py")
    assert len(house.load_document(session_ref("s-1")).acts) == 1 + 4 + 1  # it, the next four, one edit
    house.ran("pytest -x")
    house.stop()
    assert len(house.memories("bug_fix")) == 1


def test_a_turn_is_kept_once(house: MemoryHarness) -> None:
    words = "please look at the importer " * 100
    house.turn(words, "I looked.")
    assert document(house).count(words.strip().encode()) == 1


def test_what_a_compaction_needed_goes_with_the_next_prompt(house: MemoryHarness) -> None:
    house.turn("Always use tabs.")
    house.hook("compact.started")
    house.hook("compact.ended", summary="talk " * 1000)
    assert len(document(house)) > 5000
    house.prompt("go on")
    assert len(document(house)) < 2000
