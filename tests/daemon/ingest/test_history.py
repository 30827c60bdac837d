"""What follows from events follows from imported ones too; nothing of the present does."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.app import App, build_app
from holdfast.core.event import Event
from holdfast.core.ports import EventQuery, Ref
from holdfast.daemon.ingest.imported import accept_imported_events
from holdfast.features.gates.events import FACTS
from holdfast.features.project.state import PROJECT, project_key
from holdfast.features.sessions.jobs.recovery import stale_sessions, stuck_turns
from holdfast.features.sessions.settings import DEFAULTS
from holdfast.features.sessions.state.documents import SESSION, YEAR
from holdfast.paths import Paths

AT = 1_762_950_000_000
PROJECT_FOLDER = "/home/dev/project"
PASSED = "===== 3 passed in 0.10s ====="


@pytest.fixture
def app(tmp_path: Path):
    made = build_app(Paths(tmp_path / "state").prepare())
    yield made
    made.store.close()


def told(kind: str, n: int, tool: str = "", **data: Any) -> dict[str, Any]:
    return {
        "key": f"{kind.replace('.', '')}{n}", "kind": kind, "at": AT + n * 1000, "session": "s-1",
        "project": PROJECT_FOLDER, "agent": "claude-code", "tool": tool,
        "data": {"imported": "claude-code", "cwd": PROJECT_FOLDER, **data},
    }  # fmt: skip


CALL = {"call": "c1", "action": "shell", "command": "pytest -q"}
HISTORY = [
    told("session.started", 0, source="import"),
    told("prompt.submitted", 1, prompt="Run the tests", turn="t1"),
    told("tool.started", 2, "Bash", turn="t1", **CALL),
    told("tool.finished", 5, "Bash", turn="t1", ok=True, exit_code=0, output=PASSED, **CALL),
    told("turn.ended", 6, turn="t1", message="They pass."),
    told("prompt.submitted", 100, prompt="Thanks", turn="t2"),
    told("session.ended", 101, reason="import"),
]


def bring(app: App, history: list[dict[str, Any]]) -> list[Event]:
    raw = msgspec.Raw(msgspec.json.encode(history))
    arrivals = accept_imported_events(raw, app.features, app.engine.ports.scrub_fields)
    app.engine.enrich_history(arrival.event for arrival in arrivals)
    app.engine.handle(arrivals, imported=True)
    reader = app.store.reader()
    try:
        return reader.events(EventQuery(limit=100))
    finally:
        reader.close()


def test_a_test_run_of_the_past_is_a_check_at_its_own_time(app: App):
    (check,) = [event for event in bring(app, HISTORY) if event.kind == "check.finished"]
    seen = (check.at, check.data.runner, check.data.verdict, check.data.passed, check.data.dir, check.data.imported)
    assert seen == (AT + 5000, "pytest", "passed", 3, ".", "claude-code")


def test_turns_are_summed_when_they_closed(app: App):
    sums = [event for event in bring(app, HISTORY) if event.kind == "turn.processed"]
    assert [(e.at, e.data.n, e.data.more["ms"], e.data.more["tools"]) for e in sums] == [
        (AT + 6000, 1, 5000, 1), (AT + 101_000, 2, 1000, 0),
    ]  # fmt: skip
    reader = app.store.reader()
    (year,) = [doc for _, doc in YEAR.list(reader)]
    assert [(day["turns"], day["sessions"], day["tools"]) for day in year.days.values()] == [(2, 1, 1)]
    session = SESSION.load(reader, "s-1")
    assert session and (session.ended_at, session.has_unprocessed_turns) == (AT + 101_000, False)
    reader.close()


def test_a_second_import_adds_nothing(app: App):
    first = len(bring(app, HISTORY))
    assert len(bring(app, HISTORY)) == first


def test_the_past_proves_nothing_of_the_present(app: App):
    bring(app, HISTORY)
    reader = app.store.reader()
    project = PROJECT.load(reader, project_key(PROJECT_FOLDER))
    assert reader.document(Ref(FACTS, PROJECT_FOLDER)) is None
    assert project is None or not project.results
    assert not reader.jobs()
    reader.close()


def test_a_transcript_without_an_end_is_over_since_its_last_record(app: App):
    bring(app, HISTORY[:4])
    reader = app.store.reader()
    found = [*stuck_turns(reader, DEFAULTS, AT * 2), *stale_sessions(reader, DEFAULTS, AT * 2)]
    app.engine.handle(found)
    session = SESSION.load(reader, "s-1")
    assert session and session.turn
    assert (session.reason, session.ended_at, session.turn.end) == ("stale", AT + 5000, AT + 5000)
    reader.close()


def test_an_end_that_comes_after_a_look_keeps_its_own_time(app: App):
    """The watch may look between two batches of one session."""
    bring(app, HISTORY[:4])
    reader = app.store.reader()
    app.engine.handle([*stale_sessions(reader, DEFAULTS, AT * 2)])
    bring(app, HISTORY)
    session = SESSION.load(reader, "s-1")
    assert session and (session.reason, session.ended_at) == ("exit", AT + 101_000)
    reader.close()
