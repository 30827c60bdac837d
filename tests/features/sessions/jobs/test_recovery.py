"""S4-10 to S4-14: each job by itself, each told by events, each safe to run twice."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.features.sessions import FEATURE
from holdfast.features.sessions.jobs import recovery
from holdfast.features.sessions.jobs.recovery import FINDERS, MOST_FILES, Interrupts
from holdfast.features.sessions.settings import (
    BACKGROUND_PROCESSING_INTERVAL,
    BATCH_ACTIVE_TIMEOUT_SECONDS,
    SESSION_INACTIVE_TIMEOUT_SECONDS,
    SessionsSettings,
)  # fmt: skip
from holdfast.features.sessions.state.documents import Turn
from tests.features.sessions.jobs.test_process_turns import line, stamp
from tests.features.sessions.story import SECOND, House, Story


def kinds(events) -> list[str]:
    return [event.kind for event in events]


def test_the_constants_are_the_seeds():
    assert (SESSION_INACTIVE_TIMEOUT_SECONDS, BATCH_ACTIVE_TIMEOUT_SECONDS, BACKGROUND_PROCESSING_INTERVAL) == (
        3600, 300, 60,
    )  # fmt: skip
    defaults = SessionsSettings()
    assert defaults.session_inactive_timeout_seconds == 3600
    assert (defaults.batch_active_timeout_seconds, defaults.background_processing_interval) == (300, 60)


def test_a_stuck_turn_is_closed_after_five_minutes(house: House):
    """S4-11."""
    house.hook("prompt.submitted", prompt="go")
    house.clock.tick(299 * SECOND)
    assert house.run("sessions.stuck") == []
    house.clock.tick(1 * SECOND)
    assert kinds(house.run("sessions.stuck")) == ["turn.recovered"]
    assert (house.doc()["status"], house.doc()["state"], house.doc()["turn"]["how"]) == ("active", "idle", "recovered")
    assert house.run("sessions.stuck") == []


def test_activity_puts_the_five_minutes_off(house: House):
    house.hook("prompt.submitted", prompt="go")
    house.clock.tick(290 * SECOND)
    house.hook("tool.finished", tool="Bash", call="c", ok=True)
    house.clock.tick(290 * SECOND)
    assert house.run("sessions.stuck") == []


def test_a_turn_that_waits_for_the_user_is_not_stuck(house: House):
    house.hook("prompt.submitted", prompt="go")
    house.hook("permission.requested", tool="Bash", command="rm -r x")
    house.clock.tick(7200 * SECOND)
    assert house.run("sessions.stuck") == []
    assert house.doc()["state"] == "waiting"


@pytest.mark.parametrize("activity", [True, False])
def test_a_session_without_a_process_is_stale_after_an_hour(house: House, activity: bool):
    """S4-12: since its last activity, or since its start where there was none."""
    house.hook("session.started", source="startup")
    if activity:
        house.clock.tick(3000 * SECOND)
        house.hook("tool.finished", tool="Bash", call="c", ok=True)
    house.clock.tick(3599 * SECOND)
    assert house.run("sessions.stale") == []
    house.clock.tick(1 * SECOND)
    assert kinds(house.run("sessions.stale")) == ["session.stale"]
    assert (house.doc()["status"], house.doc()["reason"]) == ("completed", "stale")
    assert house.run("sessions.stale") == []


def test_no_session_is_deleted_however_small(house: House):
    """D10: the seed deleted those with less than three activities."""
    house.hook("session.started", source="startup")
    house.clock.tick(4000 * SECOND)
    house.run("sessions.stale")
    assert [row["id"] for row in house.view("list", all=True)["sessions"]] == ["s-1"]


def test_a_session_closed_as_stale_goes_on_when_it_does(house: House):
    """S4-18."""
    house.hook("prompt.submitted", prompt="go")
    house.clock.tick(4000 * SECOND)
    house.run("sessions.stale")
    house.hook("tool.finished", tool="Bash", call="c", ok=True)
    assert (house.doc()["status"], house.doc()["state"]) == ("active", "working")
    house.clock.tick(4000 * SECOND)
    assert kinds(house.run("sessions.stale")) == ["session.stale"]


def test_a_clock_that_runs_backwards_ends_nothing(house: House):
    house.hook("prompt.submitted", prompt="go")
    house.clock.tick(-90_000 * SECOND)
    assert house.run("sessions.stale") == house.run("sessions.stuck") == []


def test_orphaned_activities_get_a_turn_of_their_own(house: House):
    """S4-13."""
    house.hook("tool.finished", tool="Bash", call="c1", ok=True)
    house.hook("tool.finished", tool="Bash", call="c2", ok=True)
    assert "sessions.adopt" in house.waiting()
    (event,) = house.run("sessions.orphans")
    assert (event.kind, event.data.as_dict()) == ("turn.adopted", {"n": 1, "first": 1})
    assert (house.doc()["turn"]["tools"], house.doc()["turn"]["origin"]) == (2, "recovery")
    assert house.run("sessions.adopt", session="s-1") == house.run("sessions.orphans") == []


def test_closed_turns_are_gone_through(house: House):
    """S4-6, S4-14."""
    house.hook("prompt.submitted", prompt="one")
    house.hook("tool.finished", tool="Bash", call="c1", ok=False)
    house.hook("prompt.submitted", prompt="two")
    assert "sessions.process" in house.waiting()
    house.hook("turn.ended", message="done")
    assert kinds(house.run("sessions.pending")) == ["turn.processed", "turn.processed"]
    turns = house.view("show")["turns"]
    assert [(t["n"], t["prompt"], t["tools"], t["failed"], t["how"]) for t in turns] == [
        (1, "one", 1, 1, "next-prompt"), (2, "two", 0, 0, "stopped"),
    ]  # fmt: skip
    assert house.run("sessions.pending") == house.run("sessions.process", session="s-1") == []
    house.hook("tool.finished", tool="Bash", call="late", ok=True)
    assert kinds(house.run("sessions.pending")) == ["turn.processed"]
    assert house.view("show")["turns"][-1]["tools"] == 1
    assert house.replayed() == []


def test_a_day_in_the_spool_loses_no_turn(house: House):
    """S4-14: more turns at once than a document holds."""
    story = Story().start()
    for n in range(1, 31):
        story.prompt(f"prompt {n}").tool(f"c{n}").stop(f"answer {n}")
    house.take(story)
    assert kinds(house.run("sessions.process", session="s-1")) == ["turn.processed"] * 30
    assert [(t["n"], t["prompt"], t["answer"], t["tools"]) for t in house.view("show", turns=100)["turns"]] == [
        (n, f"prompt {n}", f"answer {n}", 1) for n in range(1, 31)
    ]
    assert house.run("sessions.process", session="s-1") == []
    assert (house.doc()["missed"], house.doc()["previous"], house.replayed()) == (0, None, [])


def test_the_round_does_all_of_it_at_its_pace(house: House, monkeypatch: pytest.MonkeyPatch):
    """S4-10."""
    assert FEATURE.schedule["sessions.watch"] == 5.0
    monkeypatch.setattr(recovery, "PACE", recovery.Pace())
    house.hook("prompt.submitted", prompt="one", session="old")
    house.clock.tick(4000 * SECOND)
    house.hook("tool.finished", tool="Bash", call="c1", ok=True, session="new")
    assert sorted(kinds(house.run("sessions.watch"))) == ["session.stale", "turn.adopted", "turn.recovered"]
    house.hook("tool.finished", tool="Bash", call="c1", ok=True, session="newer")
    assert house.run("sessions.watch") == []


def test_by_hand_it_is_the_same(house: House):
    house.hook("prompt.submitted", prompt="one")
    house.clock.tick(400 * SECOND)
    assert house.command("recover", kind="stuck") == {"stuck": ["s-1"]}
    assert house.command("recover", kind="stuck") == {"stuck": []}
    assert set(house.command("recover")) == set(FINDERS)


def test_settings_change_the_times(tmp_path):
    house = House(tmp_path, session_inactive_timeout_seconds=10, batch_active_timeout_seconds=5)
    try:
        house.hook("prompt.submitted", prompt="one")
        house.clock.tick(6 * SECOND)
        assert kinds(house.run("sessions.stuck")) == ["turn.recovered"]
        house.clock.tick(6 * SECOND)
        assert kinds(house.run("sessions.stale")) == ["session.stale"]
    finally:
        house.close()


# What Esc leaves behind: a line in the transcript, and nothing else.

MARK = "[Request interrupted by user for tool use]"


def interrupted(at: int, prompt: str = "p1", content: Any = None) -> str:
    """As Claude Code 2.1.325 writes it."""
    content = [{"type": "text", "text": MARK}] if content is None else content
    message = {"role": "user", "content": content}
    return json.dumps({"type": "user", "promptId": prompt, "timestamp": stamp(at), "message": message}) + "\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


@pytest.fixture
def working(house: House, file: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A session of a known process in the middle of a tool."""
    monkeypatch.setattr(recovery, "INTERRUPTS", Interrupts())
    file.write_text(line("m0", at=house.clock()))
    house.hook("prompt.submitted", prompt="go", turn="p1", transcript=str(file))
    house.hook("session.process", pid=1, start=1, boot="b", host="h", name="claude")
    house.hook("tool.started", tool="Bash", call="c1", command="make")
    return house


def add(file: Path, text: str) -> None:
    with file.open("a") as more:
        more.write(text)


def test_it_ends_the_turn_once(working: House, file: Path):
    assert working.run("sessions.interrupted") == []
    add(file, interrupted(working.clock.tick(500)))
    assert [e.kind for e in working.run("sessions.interrupted")] == ["turn.escaped"]
    doc = working.doc()
    assert (doc["state"], doc["turn"]["how"], doc["running"]) == ("waiting", "interrupted", {})
    assert working.run("sessions.interrupted") == []
    assert working.replayed() == []


def test_a_turn_that_goes_on_is_not_ended_by_an_older_mark(working: House, file: Path):
    add(file, interrupted(working.clock.tick(500), prompt="p0"))
    assert working.run("sessions.interrupted") == []
    add(file, interrupted(working.clock()))
    working.clock.tick(20_000)
    working.hook("tool.finished", tool="Bash", call="c1", ok=True, turn="p1")
    assert [e.kind for e in working.run("sessions.interrupted")] == ["turn.escaped"]
    assert working.doc()["state"] == "working"


@pytest.mark.parametrize("content", [MARK, [{"type": "text", "text": f"He said {MARK}"}], [MARK], {}, None])
def test_the_same_words_from_a_person_are_no_mark(working: House, file: Path, content: Any):
    text = interrupted(working.clock(), content=content if content is not None else "")
    add(file, text + f'{MARK} is not JSON\n{{"message": "{MARK}"}}\n["{MARK}"]\n')
    assert working.run("sessions.interrupted") == []


def test_half_a_line_is_read_when_it_is_whole(working: House, file: Path):
    text = interrupted(working.clock.tick(500))
    add(file, text[:-9])
    assert working.run("sessions.interrupted") == []
    add(file, text[-9:])
    assert len(working.run("sessions.interrupted")) == 1


def test_only_so_many_files_are_remembered(working: House, tmp_path: Path):
    reader = Interrupts()
    for n in range(MOST_FILES + 20):
        path = tmp_path / f"{n}.jsonl"
        path.write_text("{}\n")
        reader.latest(str(path), Turn(n=1))
    assert len(reader._read) == MOST_FILES


def test_times_are_read_as_agents_write_them():
    assert parse_milliseconds("1970-01-01T00:00:01.500Z") == 1500


# S4-16, O4-d, C1: a clear and a fork have a parent.


def test_a_clear_goes_on_from_the_session_of_the_same_process(house: House):
    house.hook("session.started", session="other", source="startup", pid=11)
    house.hook("session.started", session="old", source="startup", pid=22)
    house.hook("session.ended", session="old", reason="clear", pid=22)
    house.hook("session.started", session="new", source="clear", pid=22)
    assert "sessions.link" in house.waiting()
    assert [e.kind for e in house.run("sessions.link", session="new")] == ["session.linked", "session.branched"]
    assert (house.doc("new")["parent"], house.doc("new")["parent_reason"]) == ("old", "clear")
    assert house.doc("old")["children"] == ["new"]
    assert house.run("sessions.link", session="new") == []
    assert house.replayed() == []


def test_without_a_process_the_one_that_was_just_cleared_is_the_parent(house: House):
    house.hook("session.started", session="other", source="startup")
    house.hook("session.started", session="old", source="startup")
    house.hook("session.ended", session="old", reason="clear")
    house.hook("session.started", session="new", source="clear")
    house.run("sessions.link", session="new")
    assert house.doc("new")["parent"] == "old"


def test_what_was_not_cleared_is_nobodys_parent(house: House):
    house.hook("session.started", session="old", source="startup")
    house.hook("session.ended", session="old", reason="other")
    house.hook("session.started", session="new", source="clear")
    assert house.run("sessions.link", session="new") == []


def test_a_session_left_behind_in_the_same_process_has_ended(house: House):
    """Codex tells of a clear only when it exits."""
    house.hook("session.started", session="old", source="startup", pid=22)
    house.hook("session.started", session="new", source="clear", pid=22)
    house.run("sessions.link", session="new")
    assert (house.doc("old")["status"], house.doc("old")["reason"]) == ("completed", "clear")


def test_a_fork_is_known_by_the_messages_it_copied(house: House, tmp_path: Path):
    """Claude Code writes the parent's messages, under their own ids, at the head of the fork's transcript."""
    files = {name: tmp_path / f"{name}.jsonl" for name in ("stranger", "trunk", "branch")}
    for name, root in (("stranger", "u-9"), ("trunk", "u-1"), ("branch", "u-1")):
        lines = [{"type": "queue-operation"}, {"type": "user", "uuid": root}, {"type": "assistant", "uuid": name}]
        files[name].write_text("".join(json.dumps(each) + "\n" for each in lines))
    for name, source in (("trunk", "startup"), ("stranger", "startup"), ("branch", "fork")):
        house.hook("session.started", session=name, source=source, transcript=str(files[name]))
    house.run("sessions.link", session="branch")
    assert (house.doc("branch")["parent"], house.doc("branch")["parent_reason"]) == ("trunk", "fork")


def test_a_fork_whose_transcript_is_not_there_yet_is_looked_at_again(house: House, tmp_path: Path):
    house.hook("session.started", session="branch", source="fork", transcript=str(tmp_path / "later.jsonl"))
    assert house.run("sessions.link", session="branch") == []
    house.hook("turn.ended", session="branch")
    assert house.waiting().count("sessions.link") == 1


def test_a_start_or_a_resume_has_no_parent(house: House):
    house.hook("session.started", session="old", source="startup", pid=22)
    house.hook("session.ended", session="old", reason="clear", pid=22)
    for source in ("startup", "resume"):
        house.hook("session.started", session=source, source=source, pid=22)
        assert house.run("sessions.link", session=source) == []


def test_a_line_longer_than_a_look_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was read again at every look, for as long as the session lived."""
    monkeypatch.setattr(recovery, "MOST_BYTES", 1000)
    file, reader, read = tmp_path / "t.jsonl", Interrupts(), list[int]()
    file.write_bytes(b"x" * 3500)
    monkeypatch.setattr(recovery, "FIRST_LOOK", 10_000)
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda *words: read.append(len(part := pread(*words))) or part)
    for _ in range(20):
        reader.latest(str(file), Turn(n=1))
    assert read == [1000, 1000, 1000, 500]
    with file.open("ab") as more:
        more.write(b"the rest\n" + interrupted(1_800_000_000_000).encode())
    assert reader.latest(str(file), Turn(n=1)) > 0
