"""What a session's document keeps, and how seldom it is written: every hook waits for it."""

from holdfast.core.state import encode
from holdfast.features.memory.state.documents import session_ref
from tests.features.memory.harness import MemoryHarness


def document(house: MemoryHarness) -> bytes:
    return encode(house.load_document(session_ref("s-1")))


def test_repetition_leaves_the_document_alone(house: MemoryHarness) -> None:
    house.prompt("clean up")
    for _ in range(8):
        house.edited("/home/ada/engine/a.py")
        house.ran("make test")
    before = document(house)
    for _ in range(20):
        house.ran("make test")
        house.edited("/home/ada/engine/a.py")
    assert document(house) == before
    assert len(before) < 1000


def test_the_document_is_bounded(house: MemoryHarness) -> None:
    for n in range(200):
        house.prompt(f"never touch module{n}, {'word ' * 300} and other{n}")
        house.ran(f"python script{n}.py {'x' * 100}")
        house.edited(f"/home/ada/engine/{'deep/' * 20}file{n}.py")
        house.ran(f"serve {n}", detached=True)
    assert len(document(house)) < 50_000


def test_what_a_compaction_needed_goes_with_the_next_prompt(house: MemoryHarness) -> None:
    house.turn("Always use tabs.")
    house.hook("compact.started")
    house.hook("compact.ended", summary="talk " * 1000)
    assert len(document(house)) > 5000
    house.prompt("go on")
    assert len(document(house)) < 2000
