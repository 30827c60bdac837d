"""What is told at the next prompt or start: figures on labelled stories."""

import msgspec

from holdfast.features.memory.policy.recall import Memory, Next, select_memories
from holdfast.handover.summary import SessionEvent, build_summary
from tests.features.memory.corpus import read_cases

TODAY = Next(at="2026-04-21", prompt="add a filter to the orders list")


def test_stories() -> None:
    """Of the corpus, and our own."""
    right = told = wanted = harmful = 0
    for row in (*read_cases("sessions"), *read_cases("own_sessions")):
        summary = build_summary([msgspec.convert(e, SessionEvent) for e in row["events"]])
        memories = [msgspec.convert(m, Memory) for m in row["memories"]]
        got = set(select_memories(memories, msgspec.convert(row["next"], Next), summary))
        right, wanted = right + len(got & set(row["told"])), wanted + len(row["told"])
        told += len(got - set(row["may"]))
        harmful += sum(n["id"] in got and n["why"] != "irrelevant" for n in row["not_told"])
    print(f"told: precision {right / told:.2f}, recall {right / wanted:.2f}, harmful {harmful}")
    assert right / told >= 0.85
    assert right / wanted >= 0.9
    assert harmful <= 2


def test_the_agents_own_words_are_told_to_nobody() -> None:
    assert select_memories([Memory("m1", "orders must be filtered by tenant", "2026-04-01", "agent")], TODAY) == []


def test_small_talk_is_left_alone() -> None:
    known = [Memory("m1", "tests have to be run with make test", "2026-04-01")]
    assert select_memories(known, Next(at="2026-04-21", prompt="what's 5 GB in bytes")) == []
