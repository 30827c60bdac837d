"""What a session came to, without a model."""

import pytest

from holdfast.analysis.usage.spending import Spending
from holdfast.core.kinds.session_events import SessionSummarised
from holdfast.core.replay import fold_events
from holdfast.features.sessions import FEATURE
from holdfast.features.sessions.jobs.summarise import summarise_events
from holdfast.features.sessions.state.documents import SESSION
from holdfast.features.sessions.views.figures import build_figures
from tests.features.sessions.story import House, Story


def summary_of(story: Story) -> SessionSummarised:
    session = fold_events(FEATURE, story.events)[SESSION.ref("s-1")]
    return summarise_events(story.events, build_figures(session, Spending(), story.now))


SUITE = {"kind": "test", "runner": "pytest", "dir": ".", "selection": "all", "command": "pytest -q tests/"}


def a_working_session() -> Story:
    story = Story().start().prompt("Fix the login bug\nin auth.py")
    edit = {"tool": "Edit", "action": "edit"}
    story.tool("e1", **edit, paths=["/p/auth.py"]).tool("e2", **edit, paths=["/p/auth.py", "/p/test_auth.py"])
    story.tool("t1", command="pytest -q tests/", ok=False, exit_code=1)
    story.tell("check.finished", **SUITE, verdict="failed", failed=2)
    story.tool("t2", command="pytest -q tests/", exit_code=0)
    story.tell("check.finished", **SUITE, verdict="passed", passed=5)
    story.tool("g", command='git commit -am "Fix login"', output="[main 1a2b3c4] Fix login\n 1 file changed")
    return story


def test_title_files_commands_tests_and_commits():
    """S4-7."""
    found = summary_of(a_working_session().stop().end())
    assert found.title == "Fix the login bug in auth.py"
    assert found.files == ["/p/auth.py", "/p/test_auth.py"]
    assert [(c.command, c.ok, c.times) for c in found.tests] == [("pytest -q tests/", True, 2)]
    assert [c.as_dict() for c in found.commits] == [{"branch": "main", "sha": "1a2b3c4", "subject": "Fix login"}]
    assert (found.open, found.end) == ([], "prompt_input_exit")
    assert "2 files edited" in found.text and "1a2b3c4 Fix login" in found.text


def test_a_command_ended_as_the_transcript_tells_it_later():
    """Codex's hook says nothing of it; a second run of the same command counts by its own end."""
    story = Story().start().prompt("Build it").tool("t", command="make")
    failed = {"of": len(story.events), "call": "t", "action": "shell", "command": "make", "ok": False, "exit_code": 2}
    story.tell("tool.exit_read", **failed)
    assert [(c.ok, c.exit_code) for c in summary_of(story).commands] == [(False, 2)]
    story.tool("u", command="make").tell("tool.exit_read", **failed)
    assert [(c.ok, c.exit_code) for c in summary_of(story).commands] == [(True, None)]


def test_a_commit_of_a_repository_with_long_names():
    sha = "1a2b3c4d" * 8
    story = Story().start().prompt("x").tool("g", command="git commit -m y", output=f"[main {sha}] y")
    assert [commit.sha for commit in summary_of(story).commits] == [sha]


def test_what_was_left_open():
    story = Story().start().prompt("Build it").tool("t", command="make test", ok=False, exit_code=2)
    story.tell("check.finished", **SUITE | {"command": "make test"}, verdict="failed", failed=1)
    story.tell("task.created", task="1", subject="write docs").tell("task.created", task="2", subject="ship")
    story.tell("task.completed", task="2")
    todos = [{"content": "tidy up", "status": "pending"}, {"content": "done thing", "status": "completed"}]
    story.tell("tool.finished", tool="TodoWrite", action="todo", call="td", input={"todos": todos}, ok=True)
    story.tell("tool.started", tool="Bash", call="x", command="sleep 900")
    assert summary_of(story).open == [
        "the last prompt was not finished: Build it",
        "a tool call did not end: Bash: sleep 900",
        "a test run failed last: make test",
        "a task is open: write docs",
        "a to-do is open: tidy up",
    ]


def test_a_test_run_counts_by_its_verdict_and_not_by_its_words():
    story = Story().start().prompt().tool("t", command="pytest --version").tool("u", command="echo pytest")
    assert summary_of(story).tests == []
    story.tell("check.finished", **SUITE, verdict="unknown")
    found = summary_of(story)
    assert [(run.ok, run.verdict) for run in found.tests] == [(None, "unknown")]
    assert "pytest -q tests/ result unknown" in found.text


def test_a_test_run_inside_a_long_command_is_named_by_its_runner():
    script = "cat > a_test.go <<'EOF'\npackage a\nEOF\ngo test ./... 2>&1 | tail -20"
    story = Story().start().prompt()
    run = SUITE | {"runner": "go test", "dir": "api", "operands": ["./..."], "command": script}
    story.tell("check.finished", **run, verdict="passed", passed=3)
    assert [run.command for run in summary_of(story).tests] == ["go test ./... in api"]


def test_a_part_that_failed_is_made_good_by_the_whole_and_not_by_a_version():
    story = Story().start().prompt()
    part = SUITE | {"selection": "part", "operands": ["tests/a.py"], "command": "pytest tests/a.py"}
    story.tell("check.finished", **part, verdict="failed", failed=1)
    story.tell("check.finished", **part, verdict="did_not_run")
    assert summary_of(story).tests[0].verdict == "failed"
    story.tell("check.finished", **SUITE, verdict="passed", passed=9)
    assert [(run.command, run.counts) for run in summary_of(story).tests] == [("pytest -q tests/", "9 passed")]


def test_a_huge_session_gives_a_small_summary():
    story = Story().start()
    for n in range(400):
        story.prompt(f"prompt {n} " + "x" * 500)
        story.tool(f"e{n}", tool="Edit", action="edit", paths=[f"/p/file{n}.py"])
        story.tool(f"c{n}", command=f"make target-{n} " + "y" * 500)
        story.tell("task.created", task=str(n), subject=f"task {n}")
    found = summary_of(story)
    assert (len(found.files), found.files_seen, len(found.open)) == (50, 400, 10)
    assert len(str(found)) < 20_000


@pytest.mark.parametrize("end", ["session.ended", "session.closed"])
def test_every_end_gets_a_summary(house: House, end: str):
    house.take(a_working_session())
    house.clock.now += 100 * 1000
    house.hook(end)
    assert "sessions.summarise" in house.waiting()
    (event,) = house.run("sessions.summarise", session="s-1")
    assert event.data["title"] == "Fix the login bug in auth.py"
    assert house.run("sessions.summarise", session="s-1") == []
    assert house.view("show")["summary"]["commits"][0]["sha"] == "1a2b3c4"
    assert house.replayed() == []


def test_a_session_that_goes_on_gets_a_new_summary_at_its_next_end(house: House):
    house.take(a_working_session())
    house.clock.now += 100 * 1000
    house.hook("session.ended", reason="other")
    house.run("sessions.summarise", session="s-1")
    house.hook("session.started", source="resume")
    house.hook("prompt.submitted", prompt="One more thing")
    assert house.view("show")["summary"]["open"] == ["the last prompt was not finished: One more thing"]
    house.hook("session.ended", reason="other")
    (event,) = house.run("sessions.summarise", session="s-1")
    assert event.data["prompts"] == 2


def test_a_session_in_which_nothing_was_said_needs_none(house: House):
    house.hook("session.started", source="startup")
    house.hook("session.ended", reason="other")
    assert house.run("sessions.summarise", session="s-1") == []
