"""S4-16, O4-d, C1: a clear and a fork have a parent."""

import json
from pathlib import Path

from tests.features.sessions.story import House


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
