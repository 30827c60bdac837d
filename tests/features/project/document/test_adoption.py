"""Documents that are not of our writing come in whole (S1-16, S1-18): version 3, other tools' version 4, hand-made additions."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.features.project.document.old_formats import adopt_document, describe_adoption, read_adoption
from holdfast.features.project.document.v4 import project_document
from holdfast.features.project.events import reduce
from holdfast.features.project.files import document_text, seal_text
from holdfast.features.project.state import PROJECT, OwnTask, Project
from holdfast.features.project.task_list import update_tasks
from tests.factories import NOON

V3 = """
LAST_UPDATED: 2025-11-16T10:00:00Z
CURRENT_FOCUS: {description: moving to the new parser}
BLOCKERS: [The build machine is down]
RECENT_WORK:
  - {agent: builder, action: Analyzed git status, timestamp: 2025-11-16T09:00:00Z}
  - Wrote the first draft
NEXT_ACTIONS:
  P1: [{action: "Delegate to validator: validate the agents", assigned_to: validator}]
  later: {action: Write the manual, priority: low}
MOOD: good
"""
PATH = Path("/h/SESSION_STATE.md")


def ours(*own: str) -> Project:
    doc = Project(project="/p", own_tasks=[OwnTask(key=text, description=text, priority="P2") for text in own])
    return update_tasks(doc, doc, NOON)


def text_of(doc: Project) -> str:
    return seal_text(document_text(project_document(doc, NOON))).decode()


def described(text: str | bytes, doc: Project | None = None) -> list[tuple[str, str]]:
    found = read_adoption(text.encode() if isinstance(text, str) else text, doc)
    return [(task.priority, task.description) for task in found.tasks]


def test_a_version_3_document_comes_in_whole() -> None:
    """S1-16, issue 17.10: blockers, the focus, work without a time, actions by name; what is unknown is named."""
    found = read_adoption(V3.encode())
    assert [(t.priority, t.description) for t in found.tasks] == [
        ("P0", "The build machine is down"), ("P1", "validate the agents"), ("P3", "Write the manual"),
    ]  # fmt: skip
    assert [(line.at, line.summary) for line in found.history] == [
        (1763287200000, "Wrote the first draft"),
        (1763283600000, "Git status analyzed"),
    ]
    assert found.focus == "moving to the new parser"
    assert found.left == ["MOOD (an unknown section)"]


def test_it_becomes_part_of_the_project_and_a_line_says_what_was_taken() -> None:
    doc: Project | None = None
    for n, event in enumerate(adopt_document(Project(project="/p"), PATH, V3.encode(), NOON), 1):
        doc = reduce(doc, replace(event, seq=n), PROJECT.ref("/p"))
    assert doc
    assert [task.description for task in doc.tasks][0] == "The build machine is down"
    assert doc.history[0].summary == (
        "SESSION_STATE.md, version 3.0.0: 3 tasks, 2 lines of history, the focus (moving to the new parser) taken over; "
        "not taken: MOOD (an unknown section)"
    )
    assert doc.history[-1].summary == "Git status analyzed"
    assert project_document(doc, NOON)["WORK_CONTEXT"]["current_phase"] == "moving to the new parser"


def test_hand_made_additions_to_our_document_become_tasks() -> None:
    """Each in the place where a person would write it; what we wrote ourselves does not come back as a task."""
    doc = ours("mine already")
    text = text_of(doc)
    assert described(text, doc) == []
    added = text.replace("  P1_urgent: []", '  P1_urgent:\n    - "call Ada"\n    - {description: fix it}')
    assert described(added, doc) == [("P1", "call Ada"), ("P1", "fix it")]
    assert described(text + "NEXT_ACTIONS: [write the manual]\n", doc) == [("P2", "write the manual")]
    assert described(text + "NOTES:\n  - look at the logs\n", doc) == [("P2", "look at the logs")]
    markdown = text + "\n## Also\n- [ ] buy milk: two\n- [x] done already\n* another: [\n"
    assert described(markdown, doc) == [("P2", "buy milk: two"), ("P2", "another: [")]


def test_a_task_of_ones_own_that_is_marked_done_is_done() -> None:
    doc = ours("mine")
    edited = text_of(doc).replace('description: "mine"', 'description: "mine"\n      status: done')
    kinds = [event.kind for event in adopt_document(doc, PATH, edited.encode(), NOON)]
    assert kinds == ["project.task_done", "project.document_adopted"]


def test_the_same_file_twice_is_once_and_a_later_addition_of_the_same_text_counts() -> None:
    doc = ours()
    first, second = (text_of(doc) + f"NOTES: [buy milk]\n# {n}\n" for n in (1, 2))
    one, again, other = (adopt_document(doc, PATH, text.encode(), NOON)[0] for text in (first, first, second))
    assert one.key == again.key != other.key
    held = ours("buy milk")
    assert [e.kind for e in adopt_document(held, PATH, second.encode(), NOON)] == ["project.document_adopted"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_encodings_are_kept(encoding: str) -> None:
    assert described("NEXT_ACTIONS: [größer]\n".encode(encoding)) == [("P2", "größer")]


def test_windows_quotes_are_quotes() -> None:
    assert described("NEXT_ACTIONS: [the “big” one]\n".encode("cp1252")) == [("P2", "the “big” one")]


@pytest.mark.parametrize("content", [b"\x00\x01\x02", b"", b"[" * 5000, b"a: &x 1\nb: *x\n", b"SCHEMA_VERSION: 9\n"])
def test_what_cannot_be_read_is_named_and_nothing_is_taken(content: bytes) -> None:
    events = adopt_document(ours(), PATH, content, NOON)
    assert [event.kind for event in events] == ["project.document_adopted"]
    assert "nothing to take over; not taken:" in describe_adoption(events[0].data)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda t: f"TASKS:\n{t}".encode()))
def test_any_bytes_are_read(content: bytes) -> None:
    for event in adopt_document(ours(), PATH, content, NOON):
        assert len(event.key) == 64 or event.kind == "project.task_done"
