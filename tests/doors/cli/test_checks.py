"""`holdfast check explain` as a person and as a script use it."""

import json
import subprocess
import sys


def _run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from holdfast.doors.cli import main; main()", "checks", "explain", *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_lines_in_are_lines_out_in_order() -> None:
    cases = [
        {"id": "a", "command": "pytest -q", "cwd": ".", "exit_code": 0, "stdout": "3 passed in 0.1s\n", "stderr": ""},
        {"command": "echo pytest", "cwd": "sub", "exit_code": 0, "stdout": "pytest\n", "stderr": ""},
        {"id": 3, "command": "pytest", "cwd": "sub", "exit_code": None, "stdout": "", "stderr": ""},
    ]
    done = _run("--json", "-", stdin="".join(json.dumps(case) + "\n" for case in cases))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer.get("id") for answer in answers] == ["a", None, 3]
    assert [answer["proves_tests_pass"] for answer in answers] == [True, False, False]
    assert {"checks", "proves_tests_pass", "git", "why"} <= answers[0].keys()
    assert {"kind", "runner", "dir", "selection", "verdict", "passed", "failed"} <= answers[0]["checks"][0].keys()
    assert answers[2]["checks"][0]["dir"] == "sub"


def test_a_person_reads_why() -> None:
    told = _run("pytest -q | tail -5").stdout
    assert "does not prove that the tests pass" in told and "pipefail" in told


def test_a_line_that_is_no_request_is_named() -> None:
    done = _run("--json", "-", stdin="{}\n")
    assert done.returncode == 1 and "line 1" in done.stderr
