"""The labelled commands of `tests/corpus/commands.jsonl`: figures are printed, and the targets held."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.analysis.shell.git_words import reading_verbs
from holdfast.features.checks.judge import is_uneventful, judge_command

CASES = [
    json.loads(line) for line in (Path(__file__).parents[2] / "corpus" / "commands.jsonl").read_text().splitlines()
]
SAME = {"not_run": "did_not_run", "unknown_from_output": "unknown"}


def _judged(case: dict[str, Any]) -> dict[str, Any]:
    judgement = judge_command(case["command"], case["cwd"], case["exit_code"], case["stdout"], case["stderr"])
    return msgspec.to_builtins(judgement)


JUDGED = [(case, case["expect"], _judged(case)) for case in CASES]


def _tests(checks: list[dict[str, Any]]) -> list[tuple[set[str], dict[str, Any]]]:
    found = []
    for check in checks:
        verdict = SAME.get(check["verdict"], check["verdict"])
        if check["kind"] == "test" and verdict != "did_not_run":
            found.append(({verdict, *(SAME.get(v, v) for v in check.get("also_ok", ()))}, check))
    return found


def _verdict_right(expected: dict[str, Any], got: dict[str, Any]) -> bool:
    left = [verdict for verdict, _check in _tests(got["checks"])]
    for allowed, _check in _tests(expected["checks"]):
        hit = next((one for one in left if one <= allowed), None)
        if hit is not None:
            left.remove(hit)
        elif not allowed & {"did_not_run", "unknown"}:
            return False
    return not any(one & {"passed", "failed"} for one in left)


def _git_right(expected: list[dict[str, Any]], got: list[dict[str, Any]]) -> bool:
    said: dict[str, bool | None] = {}
    for act in got:
        said[act["verb"]] = said.get(act["verb"]) or act["effective"]
    wanted = {act["verb"]: act["effective"] for act in expected if act["verb"] not in reading_verbs()}
    for verb, effective in wanted.items():
        if effective and (verb not in said or said[verb] is False):
            return False
        if not effective and said.get(verb) is True:
            return False
    return not any(effective and verb not in wanted and verb not in reading_verbs() for verb, effective in said.items())


def _share(name: str, outcomes: list[bool]) -> float:
    share = sum(outcomes) / len(outcomes)
    print(f"{name}: {sum(outcomes)} of {len(outcomes)} ({share:.3f})")
    return share


def _scored(field: str) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    return [one for one in JUDGED if field not in one[1].get("doubtful", ())]


def test_nothing_is_proved_falsely() -> None:
    false = [
        case["command"]
        for case, expect, got in _scored("proves_tests_pass")
        if got["proves_tests_pass"] and not expect["proves_tests_pass"]
    ]
    print(f"false proofs: {len(false)}")
    assert false == []


def test_honest_runs_are_accepted() -> None:
    outcomes = [
        got["proves_tests_pass"] for _case, expect, got in _scored("proves_tests_pass") if expect["proves_tests_pass"]
    ]
    assert _share("honest runs accepted", outcomes) >= 0.98


def test_verdicts_are_right() -> None:
    assert _share("verdicts right", [_verdict_right(expect, got) for _case, expect, got in JUDGED]) >= 0.98


def test_git_acts_are_right() -> None:
    outcomes = [_git_right(expect["git"], got["git"]) for _case, expect, got in JUDGED if expect["git"] or got["git"]]
    assert _share("git acts right", outcomes) >= 0.99


@pytest.mark.parametrize("cut", [0.3, 0.7])
def test_output_that_is_cut_proves_nothing_that_failed(cut: float) -> None:
    """Whatever part of the output is left, a run that failed is never taken for one that passed."""
    for case, expect, _got in JUDGED:
        if expect["proves_tests_pass"] or not expect["checks"] or "proves_tests_pass" in expect.get("doubtful", ()):
            continue
        kept = case["stdout"][: int(len(case["stdout"]) * cut)]
        assert not judge_command(case["command"], ".", case["exit_code"], kept, "").proves_tests_pass, case["command"]


def test_without_an_exit_status_and_output_nothing_is_proved() -> None:
    for case in CASES:
        assert not judge_command(case["command"], ".", None, None, None).proves_tests_pass


def test_a_command_taken_for_uneventful_has_nothing_to_judge() -> None:
    """The shortcut by the text alone agrees with the whole judgement."""
    skipped = [case for case in CASES if is_uneventful(case["command"])]
    assert len(skipped) > 10
    for case in skipped:
        judged = _judged(case)
        assert not judged["checks"], case["command"]
        assert all(act["effective"] is False for act in judged["git"]), case["command"]


@pytest.mark.parametrize(
    "command", ["pytest -q", "./check.sh", "cat a > b", "git commit -m x", "rg x && make test", "$RUN x; npm test"]
)
def test_what_may_check_write_or_commit_is_not_uneventful(command: str) -> None:
    assert not is_uneventful(command)
