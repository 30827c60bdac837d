"""Test runs as the log saw them: commands, exit codes and counts of every runner named in the issue (S1-4)."""

from typing import Any

import pytest

from holdfast.features.project import tests_now
from holdfast.features.project.testruns import runner, scope, seen_run
from holdfast.features.project.words import commits, parts, telling
from tests.factories import an_event
from tests.features.project.stage import Stage

PYTEST = """
tests/test_a.py .F.s                                                     [100%]
=================================== FAILURES ===================================
=========================== short test summary info ============================
FAILED tests/test_a.py::test_b[x-1] - assert 1 == 2
ERROR tests/test_c.py - ImportError
=================== 1 failed, 2 passed, 1 skipped, 1 error in 0.12s ===================
"""
UNITTEST = "FAIL: test_x (pkg.T.test_x)\nRan 5 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1)\n"
JEST = "  ● cart › adds\n\nTests:       1 failed, 2 skipped, 5 passed, 8 total\nSnapshots:   0 total\n"
VITEST = """ FAIL  src/a.test.ts > adds

 Test Files  1 failed | 2 passed (3)
      Tests  1 failed | 6 passed | 1 skipped (8)
"""
GO = "--- FAIL: TestB (0.00s)\n    x_test.go:5: no\nFAIL\nFAIL\texample.com/a\t0.01s\nok  \texample.com/b\t0.02s\n"
GO_V = "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n--- SKIP: TestC (0.00s)\nFAIL\texample.com/a\t0.01s\n"
CARGO = """test a::ok ... ok
test a::bad ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out
"""
MAVEN = """[ERROR]   CartTest.adds:12 expected
[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in CartTest
[ERROR] Tests run: 10, Failures: 1, Errors: 1, Skipped: 2
"""
GRADLE = "CartTest > adds FAILED\n\n10 tests completed, 1 failed, 2 skipped\n"
DOTNET = "Failed!  - Failed:     1, Passed:     5, Skipped:     2, Total:     8, Duration: 3 s"
RSPEC = "10 examples, 1 failure, 2 pending\n\nrspec ./spec/a_spec.rb:12 # adds\n"
PHPUNIT = "1) CartTest::adds\n\nFAILURES!\nTests: 8, Assertions: 20, Failures: 1, Skipped: 2.\n"
CTEST = "88% tests passed, 1 tests failed out of 8\n\n\t  3 - adds (Failed)\n"
MOCHA = "  5 passing (10ms)\n  1 pending\n  1 failing\n\n  1) cart adds:\n"
NODE = "not ok 2 - adds\n# tests 7\n# pass 5\n# fail 1\n# skipped 1\n# todo 0\n"
BUN = "(fail) adds [0.1ms]\n\n 5 pass\n 1 skip\n 1 fail\nRan 7 tests across 1 files.\n"

OUTPUTS = {
    "pytest": (PYTEST, (2, 2, 1), ["tests/test_a.py::test_b[x-1]", "tests/test_c.py"]),
    "python -m unittest": (UNITTEST, (2, 2, 1), ["test_x (pkg.T.test_x)"]),
    "npx jest": (JEST, (5, 1, 2), ["cart › adds"]),
    "npm test": (JEST, (5, 1, 2), ["cart › adds"]),
    "npx vitest run": (VITEST, (6, 1, 1), ["src/a.test.ts > adds"]),
    "go test ./...": (GO, (1, 1, 0), ["TestB"]),
    "go test -v ./...": (GO_V, (1, 1, 1), ["TestB"]),
    "cargo test": (CARGO, (4, 1, 1), ["a::bad"]),
    "mvn -q test": (MAVEN, (6, 2, 2), ["CartTest.adds"]),
    "./gradlew test": (GRADLE, (7, 1, 2), ["CartTest > adds"]),
    "dotnet test": (DOTNET, (5, 1, 2), []),
    "bundle exec rspec": (RSPEC, (7, 1, 2), ["./spec/a_spec.rb:12"]),
    "vendor/bin/phpunit": (PHPUNIT, (5, 1, 2), ["CartTest::adds"]),
    "ctest": (CTEST, (7, 1, 0), ["adds"]),
    "npx mocha": (MOCHA, (5, 1, 1), ["cart adds"]),
    "node --test": (NODE, (5, 1, 1), ["adds"]),
    "bun test": (BUN, (5, 1, 1), ["adds"]),
    "make test": (PYTEST, (2, 2, 1), ["tests/test_a.py::test_b[x-1]", "tests/test_c.py"]),
}  # fmt: skip


def ran(command: str, output: str = "", code: int | None = 0, **data: Any) -> dict[str, Any] | None:
    fields = {"action": "shell", "command": command, "output": output, **data}
    return seen_run(an_event(data=fields if code is None else {**fields, "exit_code": code}))


@pytest.mark.parametrize("command", OUTPUTS)
def test_failing_runs_of_every_runner(command: str) -> None:
    output, counts, failures = OUTPUTS[command]
    run = ran(command, output, 1)
    assert run is not None
    assert (run["passed"], run["failed"], run["skipped"]) == counts
    assert run["failures"] == failures
    assert not run["ok"]


PASSING = {
    "pytest -q": ("42 passed in 1.20s", 42),
    "uv run pytest": ("===== 42 passed, 1 warning in 61.20s (0:01:01) =====", 42),
    "python3 -m unittest discover": ("Ran 42 tests in 0.1s\n\nOK", 42),
    "yarn test": ("Tests:       42 passed, 42 total", 42),
    "pnpm vitest": ("      Tests  42 passed (42)", 42),
    "cargo nextest run": ("     Summary [   0.5s] 42 tests run: 42 passed, 0 skipped", 42),
    "swift test": ("Executed 42 tests, with 0 failures (0 unexpected) in 0.1", 42),
    "deno test": ("ok | 42 passed | 0 failed (10ms)", 42),
    "mix test": ("42 tests, 0 failures", 42),
    "gradle test": ("BUILD SUCCESSFUL in 1s", 0),
}


@pytest.mark.parametrize("command", PASSING)
def test_passing_runs(command: str) -> None:
    output, passed = PASSING[command]
    run = ran(command, output)
    assert run is not None
    assert (run["ok"], run["passed"], run["failed"]) == (True, passed, 0)


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("ls tests", "", 0),
        ("echo pytest", "pytest", 0),
        ("git commit -m 'pytest passes'", "", 0),
        ("pytest -q | tail -1", "nothing to see", 0),
        ("pytest || true", "", 0),
        ("pytest &", "", 0),
        ("pytest", "no tests ran in 0.01s", 5),
        ("cat <<EOF\npytest\nEOF", "3 passed in 0.1s", 0),
    ],
)
def test_what_proves_nothing_is_no_run(command: str, output: str, code: int) -> None:
    assert ran(command, output, code) is None


def test_counts_are_believed_through_a_pipe() -> None:
    run = ran("pytest -q 2>&1 | tail -3", "1 failed, 2 passed in 0.1s", 0)
    assert run is not None
    assert (run["ok"], run["failed"]) == (False, 1)


def test_interrupted_and_detached_runs_say_nothing() -> None:
    assert ran("pytest", "3 passed in 0.1s", interrupted=True) is None
    assert ran("pytest", "3 passed in 0.1s", detached=True) is None


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("pytest", []),
        ("pytest -q -x", []),
        ("pytest tests/", []),
        ("pytest tests/a.py::test_b", ["tests/a.py::test_b"]),
        ("pytest -k 'a and b'", ["a and b"]),
        ("go test ./...", []),
        ("go test ./pkg/a", ["./pkg/a"]),
        ("npm test -- --coverage", []),
        ("npx vitest run src/a", ["src/a"]),
    ],
)
def test_scopes(command: str, wanted: list[str]) -> None:
    (part,) = [p for p in parts(command) if runner(p)]
    assert scope(part) == wanted


@pytest.mark.parametrize(("code", "status"), [(0, "passing"), (2, "failing")])
def test_an_exit_code_found_out_later_says_how_a_silent_run_went(stage: Stage, code: int, status: str) -> None:
    ran = stage.run_of_unknown_end("make test", "quiet")
    assert tests_now.of(stage.doc)["status"] == "not_run"
    stage.found_out(ran, code)
    now = tests_now.of(stage.doc)
    assert (now["status"], now["last_run"]) == (status, ran.at)
    assert ("tests" in stage.doc["validations"]) is (code == 0)


def test_what_the_output_said_of_a_run_stays(stage: Stage) -> None:
    ran = stage.run_of_unknown_end("pytest", "FAILED t/a.py::x - no\n1 failed, 8 passed in 1s")
    stage.found_out(ran, 1)
    now = tests_now.of(stage.doc)
    assert (now["total"], now["failures"]) == (9, ["t/a.py::x"])
    again = stage.run_of_unknown_end("pytest", "9 passed in 1s")
    stage.found_out(ran, 1)  # Late: the same command has run since.
    stage.found_out(again, 0)
    assert tests_now.of(stage.doc)["status"] == "passing"


def test_a_checker_validates_from_when_it_ran(stage: Stage) -> None:
    ran = stage.run_of_unknown_end("ruff check .")
    assert stage.doc["validations"] == {}
    stage.say("session.started")
    stage.found_out(ran, 0)
    assert stage.doc["validations"]["checks"]["since"] == ran.at


def test_a_narrow_run_does_not_heal_what_a_whole_one_broke(stage: Stage) -> None:
    stage.run("pytest", "FAILED t/a.py::x - no\nFAILED t/b.py::y - no\n2 failed, 8 passed in 1s", 1)
    stage.run("pytest t/c.py", "5 passed in 0.1s")
    assert tests_now.of(stage.doc)["status"] == "failing"
    stage.run("pytest t/a.py", "3 passed in 0.1s")
    now = tests_now.of(stage.doc)
    assert (now["status"], now["failures"]) == ("failing", ["t/b.py::y"])
    stage.run("pytest t/b.py::y", "1 passed in 0.1s")
    assert tests_now.of(stage.doc)["status"] == "passing"


def test_a_whole_run_heals_everything(stage: Stage) -> None:
    stage.run("pytest t/a.py", "FAILED t/a.py::x - no\n1 failed in 1s", 1)
    stage.run("pytest", "10 passed in 1s")
    now = tests_now.of(stage.doc)
    assert (now["status"], now["total"], now["failures"]) == ("passing", 10, [])


def test_other_runners_count_for_themselves(stage: Stage) -> None:
    stage.run("npm test", "Tests:       1 failed, 5 passed, 6 total", 1)
    stage.run("pytest", "10 passed in 1s")
    assert tests_now.of(stage.doc)["status"] == "failing"


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("cd x && FOO=1 uv run pytest -q tests | tail -3", ["pytest"]),
        ("(cd web; npm run lint -- --fix) && chezmoi apply", ["npm run lint", "chezmoi apply"]),
        ("git -C x status; ls; cat a", []),
        ("make -j4 test", ["make test"]),
        ("sudo -E timeout 60 ./scripts/deploy.sh prod", ["deploy.sh"]),
        ("echo 'a && rm b'", []),
        ("'unclosed", []),
        ("\x00\x1b[31m", []),
    ],
)
def test_commands_in_a_word_or_two(command: str, names: list[str]) -> None:
    assert list(telling(command)) == names


@pytest.mark.parametrize(
    ("command", "yes"),
    [
        ("git commit -m x", True),
        ("git -C sub commit -m x", True),
        ("git add . && git commit -m 'a; b'", True),
        ("git commit -m x || true", False),
        ("echo git commit", False),
        ("git log --grep commit", False),
    ],
)
def test_commits_are_seen(command: str, yes: bool) -> None:
    assert commits(command) is yes
