"""Seed 004's tables (S4-20) as views over our own."""

import apsw
import pytest

from holdfast.core.feature import JobCall
from holdfast.core.job import ClaimedJob
from holdfast.features.sessions import FEATURE
from tests.features.sessions.story import Story


@pytest.fixture
def ask(place):
    engine = place.an_engine(FEATURE)
    story = Story().start().prompt("first").tool("c1").tool("c2", ok=False, error="boom").stop("ok")
    story.prompt("second").tool("c3").start(session="other").end("clear", session="other")
    engine.handle(story.events)
    reader = place.reader()
    job = ClaimedJob(id=1, kind="", dedupe="", attempts=1, payload={"session": "s-1"})
    call = JobCall(
        job=job, reader=reader, settings=lambda _: None, now=story.now, state_dir=None, cancelled=None, run=None,
        put=None,
    )  # fmt: skip
    engine.handle(FEATURE.jobs["sessions.process"](call))
    return lambda sql: _rows(place, sql)


def _rows(place, sql: str) -> list[tuple]:
    db = apsw.Connection(str(place.path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(db.execute(sql))
    finally:
        db.close()


def test_the_seeds_own_query(ask):
    rows = ask("SELECT id, status, started_at, ended_at FROM sessions ORDER BY started_at DESC LIMIT 5")
    assert [(row[0], row[1], row[3] is None) for row in rows] == [
        ("other", "completed", False),
        ("s-1", "active", True),
    ]


def test_counters_and_reasons(ask):
    rows = ask("select id, prompt_count, tool_count, reason, title, agent from sessions order by id")
    assert rows == [("other", 0, 0, "clear", None, "claude-code"), ("s-1", 2, 3, None, "first", "claude-code")]


def test_turns_are_prompt_batches(ask):
    rows = ask("select id, session_id, prompt_number, user_prompt, source_type, status, activity_count, processed, "
               "response_summary from prompt_batches order by id")  # fmt: skip
    assert rows == [
        (2, "s-1", 1, "first", "user", "completed", 2, 1, "ok"),
        (8, "s-1", 2, "second", "user", "active", 1, 0, None),
    ]


def test_tool_calls_are_activities_and_none_is_an_orphan(ask):
    rows = ask("select session_id, prompt_batch_id, tool_name, error_message from activities order by id")
    assert rows == [("s-1", 2, "Bash", None), ("s-1", 2, "Bash", "boom"), ("s-1", 8, "Bash", None)]
    assert [bool(row[0]) for row in ask("select success from activities order by id")] == [True, False, True]
