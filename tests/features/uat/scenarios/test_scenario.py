"""Scenario files: what they may say, and where each mistake is."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.kinds.uat_events import Plan, PlannedCheck
from holdfast.features.uat.drivers import assertions
from holdfast.features.uat.folders import RunFolders
from holdfast.features.uat.jobs.scenario_scan import load_catalogue
from holdfast.features.uat.scenarios import reader, starter
from holdfast.features.uat.scenarios.plan import build_plan, no_shared_steps
from holdfast.features.uat.scenarios.recorder import read_plan
from holdfast.features.uat.scenarios.scenario import Condition, Scenario, scenario_schema
from tests.features.uat.kit import LOGIN

DOCS = Path(__file__).parents[4] / "docs" / "features" / "uat-scenario.schema.json"


def plan_of(scenario: Scenario | None) -> Plan:
    assert scenario is not None
    plan, faults = build_plan(scenario, no_shared_steps)
    assert faults == []
    return plan


def mistakes(text: str) -> list[str]:
    return [f"{m.line}: {m.text}" for m in reader.parse_scenario(text.encode(), "x.yaml")[1]]


def test_a_good_one_has_none() -> None:
    scenario, found, _ = reader.parse_scenario(LOGIN.encode(), "x.yaml")
    assert found == []
    assert scenario is not None
    plan = plan_of(scenario)
    assert [s.action for s in plan.steps] == ["navigate", "fill", "click", "verify", "screenshot"]
    assert plan.estimated_ms == 45_000


def test_the_estimate_is_the_sum_of_what_is_expected() -> None:
    text = "name: x\nsteps: [{action: click, expected_ms: 100}, {action: fill, expected_ms: 50}, {action: wait}]\n"
    assert plan_of(reader.parse_scenario(text.encode(), "x")[0])["estimated_ms"] == 150


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1: name: is missing"),
        ("name: x\n", "1: steps: is missing"),
        ("name: x\nsteps: []\n", "2: steps: must not be empty"),
        ("name: x\nsteps:\n  - action: click\n  - acton: fill\n", "4: steps.2.acton: is not known here"),
        ("name: x\nsteps:\n  - action: click\n    colour: red\n", "4: steps.1.colour: is not known here"),
        (
            "name: x\nsteps:\n  - action: click\n    expected_ms: soon\n",
            "4: steps.1.expected_ms: must be a whole number",
        ),
        (
            "name: x\nsteps: [{action: a}]\nassertions:\n  - step: 2\n    contains: x\n",
            "4: assertions.1.step: there is no",
        ),
        (
            "name: x\nsteps: [{action: a}]\nassertions:\n  - description: x\n",
            "4: assertions.1: an assertion needs one of",
        ),
        ("name: x\nname: y\nsteps: [{action: a}]\n", "2: `name` is given twice"),
        ("name: [unclosed\nsteps: 3\n", "2: not valid YAML"),
        ("- a\n- b\n", "1: must be a mapping"),
        ("name: *a\nsteps: [{action: a}]\n", "unknown alias"),
        ("name: !!python/object:os.system x\nsteps: [{action: a}]", ""),
        ("\tname: x\n", "1: not valid YAML"),
        ("a: " * 400, "not valid YAML"),
        ("steps: " + "[" * 30 + "]" * 30, "deeper than"),
        ("steps:\n" + "  - {action: a}\n" * 3000, "more than"),
    ],
)
def test_each_mistake_has_its_line(text: str, said: str) -> None:
    found = mistakes(text)
    if said:
        assert any(said in one for one in found), found


def test_files_that_are_no_files(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "link.yaml").symlink_to("/etc/passwd")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "large.yaml").write_text("x" * 70_000)
    (tmp_path / "zero.yaml").write_bytes(b"name: a\0b\n")
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    plans, found = load_catalogue(tmp_path)
    assert plans == {}
    assert len(found) == 6
    assert not any("root:" in str(m) for m in found), "nothing of another file is shown"


def test_two_files_with_one_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text("name: same\nsteps: [{action: click}]\n")
    plans, found = load_catalogue(tmp_path)
    assert plans["same"]["file"] == "a.yaml"
    assert "already the name of a.yaml" in str(found[0])


def test_the_first_scenario_is_a_good_one(tmp_path: Path) -> None:
    for name in ("login-flow", 'Käse: {x} "y"', "a" * 90):
        places = RunFolders(tmp_path / name[:5], str(tmp_path))
        made = dict(starter.initial_files(places, name, "http://localhost:1"))
        scenario, found, _ = reader.parse_scenario(made[starter.scenario_file(places, name)], "x")
        assert found == []
        assert scenario is not None
        assert scenario.name == name
        assert all(path.is_relative_to(tmp_path) for path in made)


def test_the_published_schema_is_the_one_in_use() -> None:
    assert json.loads(DOCS.read_text()) == json.loads(json.dumps(scenario_schema()))
    assert Condition.__struct_fields__ == tuple(assertions.CONDITIONS)


@given(st.binary(max_size=600))
def test_any_bytes_are_read(content: bytes) -> None:
    scenario, found, _ = reader.parse_scenario(content, "x")
    assert (scenario is None) == bool(found)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda c: (
            st.lists(c, max_size=3)
            | st.dictionaries(
                st.sampled_from(["name", "steps", "action", "tool", "arguments", "assertions"]), c, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_any_structure_is_read(value: object) -> None:
    scenario, found, _ = reader.parse_scenario(json.dumps(value).encode(), "x")
    assert (scenario is None) == bool(found)


FULL = """\
name: sign in
tags: [smoke, account]
variables: {page: /login}
secrets: {password: SHOP_PASSWORD}
data: [{user: ada, hello: Welcome Ada}, {user: eve, hello: Welcome Eve}]
preconditions: [{description: The shop runs, path: /health, contains: fine}]
console: clean
accessibility: {max_violations: 1}
budget_ms: 60000
steps:
  - {use: open-login, with: {where: "{{page}}"}}
  - {action: fill, description: "{{user}} with {{secret:password}}", budget_ms: 2000}
  - {action: verify, description: The page greets}
assertions:
  - {description: Greeted, step: 3, contains: "{{hello}}"}
  - {description: Quick, max_ms: 9000}
"""
OPEN_LOGIN = """\
name: open-login
variables: {where: /}
steps:
  - {action: navigate, arguments: {url: "{{where}}"}}
  - {action: wait}
assertions: [{description: The form is there, step: 1, contains: Password}]
"""


def written(folder: Path, **files: str) -> Path:
    (folder / "shared").mkdir(exist_ok=True)
    for name, text in files.items():
        where = folder / (f"{name}.yaml" if name == "main" else f"shared/{name.replace('_', '-')}.yaml")
        where.write_text(text)
    return folder / "main.yaml"


def test_shared_steps_data_and_variables_become_one_plan(tmp_path: Path) -> None:
    plan, found = read_plan(written(tmp_path, main=FULL, open_login=OPEN_LOGIN))
    assert found == []
    assert plan is not None
    assert [step.action for step in plan.steps] == ["navigate", "wait", "fill", "verify"] * 2
    assert plan.steps[0].arguments == {"url": "/login"}
    assert plan.steps[2].description == "ada with $SHOP_PASSWORD [user ada, hello Welcome Ada]"
    judged = [(one.step, one.description) for one in plan.assertions]
    assert judged[:5] == [
        (1, "The form is there"),
        (4, "Greeted"),
        (None, "Quick"),
        (5, "The form is there"),
        (8, "Greeted"),
    ]
    assert plan.assertions[4].contains == "Welcome Eve"
    assert [name for _, name in judged[5:]][0] == "The console stays clean"
    assert plan.tags == ["smoke", "account"]
    assert plan.health_checks == [
        PlannedCheck(type="http", precondition=True, path="/health", contains="fine", description="The shop runs")
    ]


@pytest.mark.parametrize(
    ("main", "one", "said"),
    [
        (
            "name: x\nsteps:\n  - {use: one}\n",
            "name: one\nsteps: [{use: one}]\n",
            "3: steps.1.use: shared steps use each",
        ),
        ("name: x\nsteps:\n  - {use: nowhere}\n", "", "3: steps.1.use: there are no shared steps 'nowhere'"),
        ("name: x\nsteps:\n  - {use: ../../etc/passwd}\n", "", "is no name of shared steps"),
        ("name: x\nsteps:\n  - {action: fill, description: '{{who}}'}\n", "", "3: steps.1: there is no variable 'who'"),
        ("name: x\nsteps:\n  - {action: fill, tool: '{{secret:p}}'}\n", "", "there is no secret 'p'"),
        ("name: x\nsteps:\n  - {action: fill, use: one}\n", "", "a step needs `action`, or `use`"),
    ],
)
def test_what_cannot_be_a_plan_is_said_with_its_line(tmp_path: Path, main: str, one: str, said: str) -> None:
    path = written(tmp_path, main=main, **({"one": one} if one else {}))
    plan, found = read_plan(path)
    assert plan is None
    assert said in f"{found[0].line}: {found[0].text}"


def test_a_circle_of_shared_steps_is_named(tmp_path: Path) -> None:
    use = "name: {0}\nsteps: [{{use: {1}}}]\n"
    path = written(tmp_path, main=use.format("x", "a"), a=use.format("a", "b"), b=use.format("b", "a"))
    assert "a → b → a" in read_plan(path)[1][0].text
