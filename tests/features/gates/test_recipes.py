"""The ten gates of docs/features/gates.md: each is read from the page and does what its heading says."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.features.gates import FEATURE
from holdfast.features.gates.settings import GateSettings
from holdfast.settings import OtherPlacements, Settings
from tests.features.gates.stage import Stage, names

PAGE = Path(__file__).parents[3] / "docs" / "features" / "gates.md"
GATES = dict(re.findall(r"^### (\d+)\. .*?\n\n```yaml\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL))


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    """The page's own text, through the real settings, from a project nobody has trusted."""
    file = tmp_path / "project" / ".claude" / "requirements.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(GATES[request.param])
    elsewhere = {"gates": OtherPlacements(FEATURE.settings_names, FEATURE.settings_files)}
    settings = Settings(
        {"gates": GateSettings}, config_dir=tmp_path, environ={"HOME": str(tmp_path)}, elsewhere=elsewhere
    )
    found = settings.load(tmp_path / "project")
    assert found.notices == ()
    return Stage(found["gates"])


def gate(number: int) -> Callable:
    return pytest.mark.parametrize("stage", [str(number)], indirect=True)


def test_there_are_eleven() -> None:
    assert list(GATES) == [str(n) for n in range(1, 12)]


@gate(1)
def test_plan_before_editing(stage: Stage) -> None:
    assert names(stage.edit()) == ["commit_plan"]
    stage.skill("plan-review")
    assert stage.edit().silent


@gate(2)
def test_tests_green_before_done(stage: Stage) -> None:
    stage.edit("docs/a.md")
    assert stage.stop().silent
    stage.edit("src/a.py")
    assert names(stage.stop()) == ["tests_green"]
    stage.run("make test")
    assert stage.stop().silent


@gate(3)
def test_a_review_before_each_commit(stage: Stage) -> None:
    assert names(stage.run("git -C . commit -m x")) == ["pre_commit_review"]
    stage.skill("pre-commit")
    assert stage.run("git commit -m x").silent
    assert names(stage.run("git commit -m y")) == ["pre_commit_review"]


@gate(4)
def test_no_edits_on_main(stage: Stage) -> None:
    assert stage.edit().silent
    stage.branch = "master"
    assert names(stage.edit()) == ["protected_branch"]


@gate(5)
def test_nothing_untested_is_pushed(stage: Stage) -> None:
    stage.edit("src/a.py")
    assert stage.stop().silent
    assert names(stage.run("git push origin x")) == ["tested_push"]
    stage.run("uv run pytest -q")
    assert stage.run("git push origin x").silent


@gate(6)
def test_branches_stay_small(stage: Stage) -> None:
    stage.say("gates.measured", "", lines=399, base="main", covers={}, as_of=0)
    assert "399 changed lines" in stage.edit().contexts[0].text
    stage.say("gates.measured", "", lines=401, base="main", covers={}, as_of=0)
    assert names(stage.edit()) == ["branch_size_limit"]


@gate(7)
def test_migrations_are_looked_at_once_per_branch(stage: Stage) -> None:
    assert stage.edit("src/a.py").silent
    assert "docs/migrations.md" in stage.edit("db/x/new.sql").reasons[0]
    stage.skill("db-review")
    assert stage.edit("migrations/1.py", session="s-2").silent


@gate(8)
def test_a_deployment_is_a_persons_decision_each_time(stage: Stage) -> None:
    assert "a person can approve it" in stage.run("make deploy").reasons[0]
    stage.say(
        "gates.approved", requirements=[{"name": "deploy_approved", "scope": "single_use", "until": stage.now + 9999}]
    )
    assert stage.run("make deploy").silent
    assert names(stage.run("kubectl apply -f x")) == ["deploy_approved"]


@gate(9)
def test_lint_and_format_before_done(stage: Stage) -> None:
    stage.edit("src/a.py")
    stage.run("ruff check . && ruff format .")
    assert stage.stop().silent
    stage.edit("src/a.py")
    stage.run("ruff check .")
    assert "ruff format" in stage.stop().reasons[0]


@gate(10)
def test_commit_before_done(stage: Stage) -> None:
    stage.edit("src/a.py")
    assert names(stage.stop()) == ["committed"]
    stage.run("git add . && git commit -m x")
    assert stage.stop().silent


@gate(11)
def test_a_budget_stops_at_the_next_tool_call(stage: Stage) -> None:
    for _ in range(20):
        stage.take("model.answered", tokens={"input": 90_000}, model="claude-sonnet-4-5")
    assert "$5.40 of $5.00" in stage.edit().reasons[0]
