"""Which memories fit a prompt."""

from holdfast.features.memory.policy.recall import Memory, Next, select_memories

KNOWN = [
    Memory("m1", "use PostgreSQL for the event store", "2026-04-01"),
    Memory("m2", "run make lint before a commit", "2026-04-01"),
    Memory("m3", "the lock of src/store.py is not reentrant", "2026-04-01"),
]


def selected(prompt: str) -> list[str]:
    return select_memories(KNOWN, Next(at="2026-04-21", prompt=prompt))


def test_shared_rare_words_or_a_name() -> None:
    assert selected("make the PostgreSQL event store faster") == ["m1"]
    assert selected("why does src/store.py hang") == ["m3"]
    assert selected("paint the settings page blue") == selected("go on") == selected("") == []


def test_the_agents_own_words_are_never_selected() -> None:
    said = [Memory("m1", "orders must be filtered by tenant", "2026-04-01", "agent")]
    assert select_memories(said, Next(at="2026-04-21", prompt="add a filter to the tenant orders")) == []


def test_one_that_was_replaced_is_not_selected() -> None:
    newer = Memory("m4", "use SQLite instead of PostgreSQL for the event store", "2026-04-02")
    assert select_memories([*KNOWN, newer], Next(at="2026-04-21", prompt="make the event store faster")) == ["m4"]
