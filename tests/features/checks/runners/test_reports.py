"""Reports that a run wrote: what they add to a judgement, and when they are not believed."""

import json
from pathlib import Path

import pytest

from holdfast.core.checks import CommandJudgement, Verdict
from holdfast.features.checks.judge import judge_result
from holdfast.features.checks.observe import ShellResult
from holdfast.features.checks.runners.reports import read_report

PASS, FAIL, SKIP = "<testcase/>", "<testcase><failure/></testcase>", "<testcase><skipped/></testcase>"


def junit(path: Path, *cases: str) -> None:
    path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")


def judged(folder: Path, command: str, code: int | None = 0, out: str = "", started: int = 1) -> CommandJudgement:
    return judge_result(ShellResult(command, code, out), str(folder), started)


def verdict(judgement: CommandJudgement) -> tuple[str, int | None, int | None]:
    (check,) = judgement.checks
    return check.verdict.value, check.passed, check.failed


def test_a_report_tells_what_a_pipe_hides(tmp_path: Path) -> None:
    command = "pytest --junitxml=r.xml | tail -1"
    assert verdict(judged(tmp_path, command))[0] == "unknown"
    junit(tmp_path / "r.xml", PASS, PASS, SKIP)
    found = judged(tmp_path, command)
    assert verdict(found) == ("passed", 2, 0)
    assert found.proves_tests_pass
    junit(tmp_path / "r.xml", PASS, FAIL)
    assert verdict(judged(tmp_path, command)) == ("failed", 1, 1)
    junit(tmp_path / "r.xml", SKIP)
    assert verdict(judged(tmp_path, command))[0] == "unknown", "nothing ran"


def test_the_folder_of_the_command_counts(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    junit(tmp_path / "sub" / "r.xml", PASS)
    assert verdict(judged(tmp_path, "cd sub && pytest --junit-xml r.xml | tail -1"))[0] == "passed"


def test_an_older_report_is_another_run_s(tmp_path: Path) -> None:
    junit(tmp_path / "r.xml", PASS)
    later = (tmp_path / "r.xml").stat().st_mtime_ns // 1_000_000 + 1
    assert verdict(judged(tmp_path, "pytest --junitxml=r.xml | tail -1", started=later))[0] == "unknown"


@pytest.mark.parametrize(
    "command",
    [
        "cp old.xml r.xml; pytest --junitxml=r.xml | tail -1",
        "pytest --junitxml=r.xml & sleep 1",
        "timeout -s INT 5 pytest --junitxml=r.xml | tail -1",
        "PATH=./fake:$PATH pytest --junitxml=r.xml | tail -1",
        "pytest --version --junitxml=r.xml",
        "pytest --junitxml=$NAME | tail -1",
        "echo pytest --junitxml=r.xml",
    ],
)
def test_what_is_doubtful_stays_unproved(tmp_path: Path, command: str) -> None:
    junit(tmp_path / "r.xml", PASS)
    found = judged(tmp_path, command)
    assert not found.proves_tests_pass
    assert all(check.verdict is not Verdict.PASSED for check in found.checks)


def test_exit_status_and_report_that_disagree_prove_nothing(tmp_path: Path) -> None:
    junit(tmp_path / "r.xml", PASS, FAIL)
    found = judged(tmp_path, "pytest --junitxml=r.xml", out="2 passed in 0.1s")
    assert verdict(found)[0] == "unknown"
    assert not found.proves_tests_pass


def test_numbers_that_the_output_does_not_tell_are_the_reports(tmp_path: Path) -> None:
    junit(tmp_path / "r.xml", PASS, PASS, FAIL)
    shown = judged(tmp_path, "pytest --junitxml=r.xml", code=1, out="FAILED tests/test_a.py::test_b\n")
    assert verdict(shown) == ("failed", 2, 1)
    said = judged(tmp_path, "pytest --junitxml=r.xml", code=1, out="5 failed, 4 passed in 0.1s")
    assert verdict(said) == ("failed", 4, 5), "what the run printed comes first"


def test_json_of_jest_and_pytest(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"numPassedTests": 3, "numFailedTests": 0, "numPendingTests": 1}))
    found = read_report(str(path), 1)
    assert found and (found.passed, found.failed, found.skipped) == (3, 0, 1)
    path.write_text(json.dumps({"numPassedTests": 3, "numFailedTests": 0, "numRuntimeErrorTestSuites": 1}))
    found = read_report(str(path), 1)
    assert found and found.failed == 1, "a suite that could not be loaded"
    path.write_text(json.dumps({"exitcode": 1, "summary": {"passed": 1, "failed": 2, "error": 1, "total": 4}}))
    found = read_report(str(path), 1)
    assert found and (found.passed, found.failed) == (1, 3)
    path.write_text(json.dumps({"exitcode": 2, "summary": {"passed": 1}}))
    assert read_report(str(path), 1) is None, "interrupted"


@pytest.mark.parametrize(
    "text", ["", "<", "<html/>", "{", "[]", '{"numPassedTests": "x"}', "<!DOCTYPE x><testsuites/>"]
)
def test_what_is_no_report_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.xml"
    path.write_text(text)
    assert read_report(str(path), 1) is None
    assert read_report(str(tmp_path), 1) is None
    assert read_report(str(tmp_path / "missing"), 1) is None
