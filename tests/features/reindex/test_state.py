"""Whatever order events come in: one trigger per session, flags that cannot stick, state that is its log (P5)."""

from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.event import Event
from holdfast.core.ports import EventQuery
from holdfast.core.replay import fold_events
from holdfast.features.reindex import FEATURE
from holdfast.features.reindex.settings import Settings
from holdfast.features.reindex.state import CHECKOUT, SESSION
from holdfast.stores.sqlite import SqliteStore
from tests.factories import NOON, an_engine, an_event

PROJECT = "/home/ada/engine"
SESSIONS = ("s-1", "s-2", "s-3")
SOURCES = ("startup", "resume", "clear", "compact", "fork", "unknown", "")

who, branch = st.sampled_from(SESSIONS), st.sampled_from(("main", "other"))
action = st.sampled_from(("edit", "shell", "read"))
source = st.sampled_from(SOURCES)
started = st.builds(lambda s, source, b: ("session.started", s, {"source": source, "branch": b}), who, source, branch)
prompted = st.builds(lambda s: ("prompt.submitted", s, {"prompt": "x"}), who)
edited = st.builds(lambda s, a, b: ("tool.finished", s, {"action": a, "ok": True, "branch": b}), who, action, branch)
stopped = st.builds(lambda s: ("turn.ended", s, {}), who)
ended = st.builds(lambda s: ("session.ended", s, {}), who)
finished = st.just(("finish", "", {}))
asked = st.just(("reindex.asked", "", {"rebuild": True}))
series = st.lists(st.one_of(started, prompted, prompted, edited, stopped, ended, finished, asked), max_size=30)


class Room:
    """The room alone on a real store."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.store = SqliteStore(folder / "log.db", backups=folder)
        mine = Settings.of(given)
        self.engine = an_engine(self.store, FEATURE, settings=lambda _project: {"reindex": mine})
        self.now = NOON

    def tell(self, kind: str, session: str = "", data: dict | None = None, after_ms: int = 1000) -> None:
        self.now += after_ms
        if kind == "finish":
            run = (self.checkout() or {}).get("run")
            if run:
                self._handle(
                    "reindex.finished",
                    run["session"],
                    {"run": run["id"], "trigger": run["trigger"], "status": "completed"},
                )
            return
        self._handle(kind, session, data or {})

    def _handle(self, kind: str, session: str, data: dict) -> None:
        self.engine.handle([an_event(kind=kind, session=session, project=PROJECT, data=data, at=self.now, tool="")])

    def events(self, *kinds: str) -> list[Event]:
        return self.store.reader().events(EventQuery(kinds=kinds, limit=1000))

    def session(self, key: str) -> dict | None:
        return self.store.reader().state(SESSION.ref(key))

    def checkout(self) -> dict | None:
        return self.store.reader().state(CHECKOUT.ref(PROJECT))

    def decided(self) -> list[tuple[str, str, str]]:
        return [(e.data["trigger"], e.data["decision"], e.data["reason"]) for e in self.events("reindex.decided")]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(series)
def test_one_first_prompt_per_session_and_state_is_replay(tmp_path_factory, steps: list) -> None:  # type: ignore[no-untyped-def]
    room = Room(tmp_path_factory.mktemp("room"))
    named, known, shown, triggered = "", set(), set(), []
    for kind, session, data in steps:
        room.tell(kind, session, data)
        if kind == "session.started" and named not in ("", session):
            shown.discard(session)  # S0-4
        if kind == "session.started" or (kind == "prompt.submitted" and session not in known):
            named = session
            known.add(session)
        if kind == "prompt.submitted" and session not in shown:
            triggered.append(session)
            shown.add(session)
    first = [e.session for e in room.events("reindex.decided") if e.data["trigger"] == "first_prompt"]
    assert first == triggered, "each session triggered once after a start, and no other"
    for session in SESSIONS:
        doc = room.session(session)
        assert bool(doc and doc["shown"]) == (session in shown)
    _newest_agrees(room)
    replayed = fold_events(FEATURE, room.store.reader().replay())
    stored = {row.ref: msgspec.json.decode(row.doc) for row in room.store.reader().rows("reindex")}
    assert msgspec.json.decode(msgspec.json.encode(list(replayed.values()))) == [stored[ref] for ref in replayed]
    assert set(replayed) == set(stored)


def _newest_agrees(room: Room) -> None:
    """The file shows the session that came last, with that session's own flag."""
    checkout = room.checkout()
    told = room.events("reindex.initialized")
    if not told:
        assert not checkout or checkout["newest"] is None
        return
    assert checkout is not None
    newest = checkout["newest"]
    assert newest["session_id"] == told[-1].session
    assert newest["shown"] == room.session(newest["session_id"])["shown"]  # type: ignore[index]


def test_the_cooldown_and_what_comes_after_it(tmp_path: Path) -> None:
    room = Room(tmp_path, cooldown_s=300)
    room.tell("session.started", "s-1", {"source": "startup"})
    room.tell("prompt.submitted", "s-1")
    room.tell("finish")
    room.tell("tool.finished", "s-1", {"action": "edit", "ok": True})
    room.tell("turn.ended", "s-1")
    room.tell("turn.ended", "s-1")
    assert room.decided()[1:] == [("turn_end", "skip", "cooldown_active")]
    jobs = room.store.reader().jobs()
    assert len(jobs) == 1, "one job waits: what the cooldown held back is made up for when it is over"
    room.tell("tool.finished", "s-1", {"action": "shell", "ok": True}, after_ms=400_000)
    room.tell("turn.ended", "s-1")
    assert room.decided()[2:] == [("turn_end", "run", "reindex_spawned")]


def test_a_trigger_during_a_run_is_made_up_for_when_it_ends(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.tell("prompt.submitted", "s-1")
    room.tell("prompt.submitted", "s-2")
    assert room.decided()[1] == ("first_prompt", "skip", "concurrent_reindex")
    room.tell("finish")
    assert room.decided()[2] == ("again", "run", "reindex_spawned")
    room.tell("finish")
    assert len(room.decided()) == 3
    assert (room.checkout() or {})["run"] is None


def test_another_branch_supersedes_the_run(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.tell("session.started", "s-1", {"branch": "main"})
    room.tell("prompt.submitted", "s-1", {"branch": "main"})
    room.tell("tool.finished", "s-1", {"branch": "other", "action": "shell", "ok": True})
    first, second = room.events("reindex.decided")
    assert second.data["trigger"] == "branch_switch"
    assert second.data.details.as_dict() == {"supersedes": first.data.run}
    kinds = sorted(job["kind"] for job in room.store.reader().jobs())
    assert kinds == ["reindex.cancel", "reindex.index"]


def test_an_old_index_is_refreshed_at_the_end_of_a_turn_though_nothing_was_edited(tmp_path: Path) -> None:
    """A session resumed the next morning under its old id: its flag stays, its index does not stay stale."""
    room = Room(tmp_path, max_age_s=3600)
    room.tell("prompt.submitted", "s-1")
    room.tell("finish")
    room.tell("session.started", "s-1", {"source": "resume"}, after_ms=12 * 3_600_000)
    room.tell("prompt.submitted", "s-1")
    room.tell("turn.ended", "s-1")
    assert [d[0] for d in room.decided()] == ["first_prompt", "turn_end"]


def test_documents_stay_small(tmp_path: Path) -> None:
    """Decision 7: a thousand sessions and prompts in one project."""
    room = Room(tmp_path)
    for number in range(300):
        room.tell("session.started", f"s-{number}", {"source": "startup"})
        room.tell("prompt.submitted", f"s-{number}", {"prompt": "x" * 5000})
        room.tell("finish")
    assert len(msgspec.json.encode(room.checkout())) < 3_000


def test_last_reindex_is_cleared_when_the_session_ends(tmp_path: Path) -> None:
    """O0-e."""
    room = Room(tmp_path)
    room.tell("prompt.submitted", "s-1")
    room.tell("finish")
    assert (room.session("s-1") or {})["last_reindex"]["result"] == "completed"
    room.tell("session.ended", "s-1")
    assert (room.session("s-1") or {})["last_reindex"] is None
