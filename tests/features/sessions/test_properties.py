"""Any hooks in any order leave only legal states (the seed's diagram), and replay gives the same documents (P5)."""

import copy
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.event import Event
from holdfast.core.kinds import HOOK_KINDS, SESSION_ENDS, SESSION_KINDS
from holdfast.core.ports import Doc, Ref
from holdfast.core.state import encode
from holdfast.features.sessions import FEATURE
from holdfast.features.sessions.jobs.recovery import FINDERS
from holdfast.features.sessions.state.documents import (
    DOCUMENTS,
    END_REASONS,
    MAX_ASKS,
    MAX_CHILDREN,
    MAX_LANES,
    MAX_RUNNING,
    SESSION,
    SUBSCRIBED_KINDS,
    Session,
)  # fmt: skip
from tests.factories import NOON

from .story import House, an

SESSIONS = ("s-1", "s-2", "a/1", "x" * 500, "\N{SNOWMAN} '; drop table events; --")
COMMON_KINDS = (
    "session.started", "session.ended", "prompt.submitted", "tool.started", "tool.finished", "tool.failed",
    "turn.ended", "permission.requested", "subagent.started", "subagent.ended", "notification",
    "session.lost", "session.process",
)  # fmt: skip

ids = st.sampled_from(("", "a", "b", "c"))
small = st.integers(0, 6)
data = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from(("startup", "resume", "clear", "compact", "fork", "", "whatever")),
        "reason": st.sampled_from(("clear", "other", "")),
        "prompt": st.sampled_from(("do it", "", "<task-notification>", "x" * 9000)),
        "synthetic": st.booleans(),
        "call": ids, "lane": ids, "lane_type": ids, "turn": ids, "command": ids,
        "topic": st.sampled_from(("idle_prompt", "permission_prompt")),
        "action": st.sampled_from(("edit", "shell", "ask", "todo")),
        "ok": st.booleans(), "pid": small, "pid_start": small, "start": small, "n": small, "upto": small,
        "message": ids,
        "verdict": st.sampled_from(("deny", "none")),
        "of_kind": st.sampled_from(("tool.started", "turn.ended")), "of": small,
        "calls": st.lists(st.fixed_dictionaries({"call": ids}), max_size=2),
        "parent": st.sampled_from(SESSIONS), "child": st.sampled_from(SESSIONS), "parent_seq": small,
        "last": st.integers(NOON - 9000, NOON + 9000), "compaction": st.booleans(),
        "tokens": st.fixed_dictionaries({"input": small}), "turn_n": small,
        "facts": st.fixed_dictionaries({"at": small, "first": small}),
    },
)  # fmt: skip


@st.composite
def any_event(draw: Any) -> Event:
    kind = draw(st.one_of(st.sampled_from(COMMON_KINDS), st.sampled_from(sorted(SUBSCRIBED_KINDS))))
    at = draw(st.one_of(st.integers(NOON - 9000, NOON + 9000), st.sampled_from((0, -5, 1 << 52))))
    return an(kind, at=at, session=draw(st.sampled_from(SESSIONS)), tool=draw(ids), **draw(data))


TYPES = {document.kind: document for document in DOCUMENTS}
stories = st.lists(any_event(), max_size=60)


def told(events: list[Event]) -> list[Event]:
    return [msgspec.structs.replace(event, seq=n, key=f"k{n}") for n, event in enumerate(events, 1)]


@given(stories)
@settings(max_examples=150, deadline=None)
def test_any_order_of_events_leaves_only_legal_states(story: list[Event]):
    docs: dict[Ref, Doc] = {}
    for event in told(story):
        event = truly_linked(event, docs)
        for ref in FEATURE.keys(event):
            before = docs.get(ref)
            kept = copy.deepcopy(before)
            after = FEATURE.reduce(before, event, ref)
            assert before == kept, "a reducer changed what it was given"
            if after is not None:
                docs[ref] = after
                assert TYPES[ref.kind].decode(encode(after)) == after, "not what will be read back"
                if ref.kind == SESSION.kind:
                    legal(after)
                    if before:
                        moved(before, after, event)
    for ref, doc in docs.items():
        if ref.kind == SESSION.kind:
            ancestors_end(doc, docs)


def legal(session: Session) -> None:
    assert session.status in ("active", "completed")
    assert (session.status == "completed") == (session.state == "ended")
    if session.status == "completed":
        assert session.reason in END_REASONS
        assert session.ended_at
        assert not (session.running or session.asks or session.any_lane_open)
        assert session.turn is None or session.turn.end
    else:
        assert session.state in ("working", "waiting", "idle")
        assert (session.reason, session.ended_at) == ("", 0)
    assert len(session.running) <= MAX_RUNNING and len(session.asks) <= MAX_ASKS
    assert len(session.lanes) <= MAX_LANES and len(session.children) <= MAX_CHILDREN
    assert len(encode(session)) < 32_000


def moved(before: Session, after: Session, event: Event) -> None:
    """The seed's diagram: active → completed by an end, completed → active only by a sign of life or a person."""
    if before.status == "active" and after.status == "completed":
        assert event.kind in SESSION_ENDS
    if before.status == "completed" and after.status == "active":
        assert event.kind in HOOK_KINDS or event.kind == "session.reopened"
        assert event.kind != "session.ended"
    for name in ("events", "prompts", "tools", "failed", "denied", "edits", "restarts", "lanes_seen", "children_seen"):
        assert getattr(after, name) >= getattr(before, name)
    assert (after.turn.n if after.turn else 0) >= (before.turn.n if before.turn else 0)
    assert (after.id, after.first_seq, after.started_at) == (before.id, before.first_seq, before.started_at)


def truly_linked(event: Event, docs: dict[Ref, Doc]) -> Event:
    """As the linking job tells it: with the parent's true age."""
    if event.kind != "session.linked":
        return event
    parent = docs.get(SESSION.ref(event.data.parent))
    seq = parent.first_seq if parent else 1 << 40
    return msgspec.structs.replace(event, data=msgspec.structs.replace(event.data, parent_seq=seq))


def ancestors_end(session: Session, docs: dict[Ref, Doc]) -> None:
    for _ in SESSIONS:
        if not session.parent:
            return
        session = docs[SESSION.ref(session.parent)]
    raise AssertionError("a cycle")


@given(stories, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_state_is_replay_however_the_events_were_batched(story: list[Event], random: Any):
    with tempfile.TemporaryDirectory() as folder:
        house = House(Path(folder))
        try:
            events = told(story)
            while events:
                size = random.randint(1, 7)
                house.take(events[:size])
                events = events[size:]
            assert house.replayed() == []
            for view in ("list", "who"):
                house.view(view, all=True)
        finally:
            house.close()


@given(stories)
@settings(max_examples=40, deadline=None)
def test_no_view_and_no_job_stumbles_over_any_story(story: list[Event]):
    with tempfile.TemporaryDirectory() as folder:
        house = House(Path(folder))
        try:
            house.take(told(story))
            for row in house.view("list", all=True, limit=500)["sessions"]:
                for view in ("show", "timeline"):
                    house.view(view, id=row["id"])
                for style in ("md", "html", "jsonl"):
                    assert isinstance(house.view("export", id=row["id"], format=style)["text"], str)
                for job in ("process", "summarise", "link", "adopt"):
                    house.run(f"sessions.{job}", session=row["id"])
            house.clock.tick(10 * 3_600_000)
            for _ in range(2):  # A turn that the first closes is gone through by the second.
                house.command("recover")
            assert house.command("recover") == {name: [] for name in FINDERS}
            assert house.replayed() == []
        finally:
            house.close()


def test_every_kind_of_ours_is_heard():
    assert set(SESSION_KINDS) <= SUBSCRIBED_KINDS
