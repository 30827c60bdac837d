"""The earlier work that a first prompt is told of: files, a plan, what was left unfinished; else nothing."""

from pathlib import Path

from tests.features.memory.harness import MemoryHarness

PLAN = "# Plan: Move the Parser\n\n## Goal\nMove it."


def worked(house: MemoryHarness, project: Path, session: str, prompt: str, *names: str) -> None:
    house.hook("session.started", session=session, project=str(project), source="startup")
    house.prompt(prompt, session=session, project=str(project))
    for name in names:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
        house.edited(str(project / name), session=session, project=str(project))
    house.stop(session=session, project=str(project))


def summarised(house: MemoryHarness, project: Path, session: str, outcome: str, **more: object) -> None:
    house.hook("session.summarised", session=session, project=str(project), outcome=outcome, text="x", **more)


def first_prompt(
    house: MemoryHarness, project: Path, prompt: str, session: str = "new", source: str = "startup"
) -> str:
    house.ask("session.started", session=session, project=str(project), source=source)
    return "\n".join(house.prompt(prompt, session=session, project=str(project)))


def two_sessions(house: MemoryHarness, project: Path) -> None:
    worked(house, project, "a", "Fix the tokenizer of the parser", "src/parser.py", "src/tokens.py")
    worked(house, project, "b", "Paint the settings page", "web/settings.css")


def test_likely_files_by_the_prompts_words(house: MemoryHarness, tmp_path: Path) -> None:
    two_sessions(house, tmp_path)
    told = first_prompt(house, tmp_path, "the tokenizer drops commas")
    assert told.index("src/tokens.py") < told.index("web/settings.css")


def test_named_and_deleted_files_are_left_out(house: MemoryHarness, tmp_path: Path) -> None:
    two_sessions(house, tmp_path)
    (tmp_path / "src/tokens.py").unlink()
    told = first_prompt(house, tmp_path, "look at parser.py again")
    assert "tokens.py" not in told and "- src/parser.py" not in told and "settings.css" in told


def test_only_the_first_prompt_is_told(house: MemoryHarness, tmp_path: Path) -> None:
    two_sessions(house, tmp_path)
    assert first_prompt(house, tmp_path, "the tokenizer drops commas")
    assert house.prompt("the tokenizer drops commas", session="new", project=str(tmp_path)) == []


def test_a_resumed_or_forked_session_is_told_nothing_of_it(house: MemoryHarness, tmp_path: Path) -> None:
    two_sessions(house, tmp_path)
    summarised(house, tmp_path, "a", "Asked: the tokenizer Failing: `pytest`", open=["a test run failed last: pytest"])
    assert first_prompt(house, tmp_path, "the tokenizer drops commas", "a", "resume") == ""
    house.hook("session.started", session="f", project=str(tmp_path), source="fork")
    house.hook("session.linked", session="f", project=str(tmp_path), parent="a", reason="fork")
    assert house.prompt("the tokenizer drops commas", session="f", project=str(tmp_path)) == []


def test_nothing_is_known_nothing_is_told(house: MemoryHarness, tmp_path: Path) -> None:
    assert first_prompt(house, tmp_path, "the tokenizer drops commas") == ""


def test_the_unfinished_session_the_files_come_from(house: MemoryHarness, tmp_path: Path) -> None:
    two_sessions(house, tmp_path)
    summarised(
        house, tmp_path, "a", "Asked: fix the tokenizer Failing: `pytest tests`", open=["a test run failed last: x"]
    )
    summarised(house, tmp_path, "b", "Asked: paint Checks passed: `npm test`", edits=1, commits=[{"sha": "abc"}])
    (tmp_path / "web/settings.css").unlink()
    told = first_prompt(house, tmp_path, "tokenizer of the parser")
    assert "Left unfinished in session a" in told and "paint" not in told


def test_go_on_where_the_last_one_stopped_means_the_unfinished_one(house: MemoryHarness, tmp_path: Path) -> None:
    two_sessions(house, tmp_path)
    summarised(house, tmp_path, "a", "Asked: fix the tokenizer Next, the agent said: write the tests")
    summarised(house, tmp_path, "b", "Asked: paint Checks passed: `npm test`")
    told = first_prompt(house, tmp_path, "go on where the last session stopped")
    assert "write the tests" in told and "paint" not in told


def test_a_stopped_prompt_is_no_unfinished_work(house: MemoryHarness, tmp_path: Path) -> None:
    two_sessions(house, tmp_path)
    summarised(
        house, tmp_path, "a", "Checks passed: `npm test`", open=["the last prompt was not finished: npm publish"]
    )
    assert "publish" not in first_prompt(house, tmp_path, "go on where the last session stopped")


def test_a_plan_is_linked_to_the_session_that_made_it(house: MemoryHarness, tmp_path: Path) -> None:
    worked(house, tmp_path, "planner", "Plan the move", "src/parser.py")
    house.hook(
        "tool.started",
        session="planner",
        project=str(tmp_path),
        tool="ExitPlanMode",
        action="plan",
        input={"plan": PLAN},
    )
    worked(house, tmp_path, "other", "Something else", "README.md")
    told = first_prompt(house, tmp_path, f"Implement the following plan:\n\n{PLAN}")
    assert "made in session planner" in told and "src/parser.py" in told and "README" not in told
    assert first_prompt(house, tmp_path, "Implement the following plan:\n\n# Plan: Another\nx", "n-2") == ""


def test_another_project_is_told_nothing(house: MemoryHarness, tmp_path: Path) -> None:
    two_sessions(house, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert first_prompt(house, elsewhere, "the tokenizer drops commas") == ""


def test_an_overruled_rule_is_gone_with_what_quotes_it(house: MemoryHarness, tmp_path: Path) -> None:
    where = {"project": str(tmp_path)}
    house.turn("From now on always deploy to staging on Fridays.", session="a", **where)
    house.turn("From now on never deploy to staging on Fridays.", session="b", **where)
    quote = "Asked: From now on always deploy to staging on Fridays. Next, the agent said: deploy"
    summarised(house, tmp_path, "a", quote)
    told = "\n".join(house.ask("session.started", session="c", source="startup", **where))
    told += "\n".join(house.prompt("go on where the last session stopped", session="c", **where))
    assert "never deploy to staging" in told
    assert "always deploy to staging" not in told
