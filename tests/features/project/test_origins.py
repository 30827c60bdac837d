"""Sessions know their commits, and lines the turn that wrote them (issue 17, point 11)."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.features.project.origins import Origin, find_origin, written_texts
from tests.features.project.stage import ROOT, Stage


def write(stage: Stage, path: str, session: str = "s-1", **given: Any) -> None:
    body = json.dumps({"tool_input": given, "tool_response": {"originalFile": "all = 'of it'"}}).encode()
    stage.at_once = 2  # So that the body is put on before the event is handled.
    stage.edit(path, session)
    (event,) = stage.pending
    stage.pending, stage.at_once = [], 1
    stage.engine.handle([replace(event, body=body)])


def origin(stage: Stage, sha: str = "", path: str = "", text: str = "", was: str = "") -> Origin:
    reader = stage.store.reader()
    try:
        return find_origin(reader, ROOT, sha, [name for name in (path, was) if name], text)
    finally:
        reader.close()


@pytest.fixture
def told(stage: Stage) -> Stage:
    stage.say("prompt.submitted", session="s-1", prompt="handle floats")
    write(stage, "a.py", old_string="x = 1", new_string="x = 1\ny = float(text)")
    stage.say("turn.ended", session="s-1", message="int() dropped the fraction.")
    stage.say("prompt.submitted", session="s-1", prompt="(a reminder)", synthetic=True)
    stage.say("prompt.submitted", session="s-1", prompt="commit it")
    stage.commit("c" * 40)
    stage.say("turn.ended", session="s-1", message="Committed.")
    return stage


def test_a_line_has_the_turn_that_wrote_it(told: Stage) -> None:
    found = origin(told, "c" * 40, "a.py", "    y = float(text)")
    assert found.how == "edit"
    assert found.turn
    assert (found.turn.session, found.turn.number, found.turn.prompt) == ("s-1", 1, "handle floats")
    assert found.turn.reason == "int() dropped the fraction."


def test_a_commit_has_the_turn_that_made_it_and_the_work_that_went_in(told: Stage) -> None:
    found = origin(told, "c" * 40)
    assert found.turn
    assert (found.how, found.turn.number, found.turn.prompt) == ("commit", 2, "commit it")
    assert [turn.prompt for turn in found.work] == ["handle floats"]
    told.commit("d" * 40)
    assert origin(told, "d" * 40).work == [], "what was committed before is not its work"


def test_a_renamed_file_has_the_edits_of_its_old_name(told: Stage) -> None:
    assert origin(told, "c" * 40, "renamed.py", "y = float(text)").how == "commit"
    assert origin(told, "c" * 40, "renamed.py", "y = float(text)", was="a.py").how == "edit"


def test_what_was_there_before_an_edit_is_not_its_work(told: Stage) -> None:
    """The context of an edit, the file as it was, and another file's edit do not count."""
    assert origin(told, "", "a.py", "x = 1").how == ""
    assert origin(told, "", "a.py", "all = 'of it'").how == ""
    assert origin(told, "", "b.py", "y = float(text)").how == ""
    assert origin(told, "", "a.py", "y = float(text)").how == "edit"


def test_what_nobody_recorded_is_unknown_and_says_why(told: Stage) -> None:
    assert origin(told, "e" * 40).why_unknown == "no session on record made this commit"
    told.commit("f" * 40, outside=True)
    assert "outside of a session" in origin(told, "f" * 40).why_unknown
    told.commit("a" * 40, verb="pull")
    assert origin(told, "a" * 40).turn is None, "a pull brings what others made"
    assert origin(told, "", "a.py", "  }").why_unknown == "no session on record wrote this line"


def test_the_first_session_that_showed_a_commit_made_it(told: Stage) -> None:
    told.say("git.acted", session="s-2", verb="rebase", worktree=ROOT, commits=["c" * 40])
    found = origin(told, "c" * 40)
    assert found.commit
    assert found.commit.session == "s-1"


def test_an_edit_after_the_commit_did_not_write_its_line(told: Stage) -> None:
    told.say("prompt.submitted", session="s-2", prompt="again")
    write(told, "a.py", "s-2", old_string="z", new_string="y = float(text)")
    found = origin(told, "c" * 40, "a.py", "y = float(text)")
    assert found.turn
    assert found.turn.session == "s-1"


def test_files_written_whole_go_back_to_the_first_that_has_the_line(stage: Stage) -> None:
    for n, content in enumerate(("one\n", "one\ntwo words\n", "one\ntwo words\nthree\n"), 1):
        stage.say("prompt.submitted", session="s-1", prompt=f"step {n}")
        write(stage, "a.txt", content=content)
    found = origin(stage, "", "a.txt", "two words")
    assert found.turn
    assert found.turn.prompt == "step 2"


@pytest.mark.parametrize(
    ("payload", "added", "replaced"),
    [
        ({"tool_input": {"content": "a"}}, ["a"], None),
        ({"toolArgs": '{"old_str": "a", "new_str": "b"}'}, ["b"], ["a"]),
        ({"tool_input": {"edits": [{"old_string": "a", "new_string": "b"}]}}, ["b"], ["a"]),
        ({"tool_input": {"command": "*** Begin Patch\n@@\n context\n-old\n+new\n*** End Patch"}}, ["new"], []),
        ({"tool_input": 7}, [], None),
        ([1], [], None),
    ],
)
def test_what_edits_of_the_agents_wrote(payload: Any, added: list[str], replaced: list[str] | None) -> None:
    assert written_texts(json.dumps(payload).encode()) == (added, replaced)
    assert written_texts(b"\xff{") == ([], None)
