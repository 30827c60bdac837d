"""What each runner prints, and which flags make it run nothing or a part."""

import pytest

from holdfast.core.checks import Check, CheckKind, Selection, Verdict
from holdfast.features.checks.judge import judge_command


def only(command: str, code: int | None, out: str = "", err: str = "") -> Check:
    checks = [c for c in judge_command(command, ".", code, out, err).checks if c.kind is CheckKind.TEST]
    assert len(checks) == 1, checks
    return checks[0]


JEST = "Test Suites: {s}\nTests:       {t}\nSnapshots:   0 total\nTime:        1 s\nRan all test suites.\n"
JEST_GOOD = JEST.format(s="2 passed, 2 total", t="5 passed, 5 total")
JEST_BAD = JEST.format(s="1 failed, 1 passed, 2 total", t="1 failed, 4 passed, 5 total")
VITEST_GOOD = "\n Test Files  2 passed (2)\n      Tests  5 passed (5)\n   Start at  10:00:00\n"
VITEST_BAD = "\n Test Files  1 failed | 1 passed (2)\n      Tests  2 failed | 3 passed (5)\n"
CARGO = "\nrunning 2 tests\n..\ntest result: {r}. {p} passed; {f} failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n"
CARGO_GOOD = CARGO.format(r="ok", p=2, f=0)
CARGO_BAD = CARGO.format(r="FAILED", p=1, f=1)
CARGO_NONE = CARGO.format(r="ok", p=0, f=0)
GO_GOOD = "ok  \texample.org/a\t0.002s\n?   \texample.org/b\t[no test files]\n"
GO_BAD = "--- FAIL: TestA (0.00s)\n    a_test.go:3: bad\nFAIL\nFAIL\texample.org/a\t0.002s\nok  \texample.org/b\t0.1s\nFAIL\n"
MVN = "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in A\n[INFO] Results:\n[INFO]\n[{l}] Tests run: {n}, Failures: {f}, Errors: 0, Skipped: 0\n[INFO] BUILD {b}\n"
TAP = "TAP version 13\nok 1 - a\n{two}\n1..2\n# tests 2\n# suites 0\n# pass {p}\n# fail {f}\n# cancelled 0\n# skipped 0\n# todo 0\n"

SHOWN = [
    ("npx jest", 0, "", JEST_GOOD, "passed"),
    ("npx jest", 1, "", JEST_BAD, "failed"),
    ("npx jest || true", 0, "", JEST_BAD, "failed"),
    ("npx jest || true", 0, "", JEST_GOOD, "passed"),
    ("npx jest 2>&1 | tail -5", 0, JEST_GOOD, "", "passed"),
    ("npx jest 2>&1 | tail -5", 0, JEST_BAD, "", "failed"),
    ("npm test", 0, "> jest\n", JEST_GOOD, "passed"),
    ("npm test; true", 0, "> jest\n", JEST_BAD, "failed"),
    ("npm run test:unit -- --silent", 0, JEST_GOOD, "", "passed"),
    ("yarn test | cat", 0, "", JEST_GOOD, "passed"),
    ("pnpm jest", 0, "", JEST_GOOD, "passed"),
    ("npx vitest run", 0, VITEST_GOOD, "", "passed"),
    ("npx vitest run || true", 0, VITEST_BAD, "", "failed"),
    ("npx vitest --run --reporter=dot; true", 0, VITEST_GOOD, "", "passed"),
    ("npx mocha", 0, "\n\n  4 passing (5ms)\n\n", "", "passed"),
    ("npx mocha; true", 0, "\n\n  4 passing (5ms)\n  1 pending\n  2 failing\n\n", "", "failed"),
    ("npx mocha", 0, "\n\n  0 passing (1ms)\n\n", "", "did_not_run"),
    ("node --test", 0, TAP.format(two="ok 2 - b", p=2, f=0), "", "passed"),
    ("node --test || true", 0, TAP.format(two="not ok 2 - b", p=1, f=1), "", "failed"),
    ("node --test", 0, "ℹ tests 3\nℹ suites 0\nℹ pass 3\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\n", "", "passed"),
    ("node --test", 0, TAP.format(two="", p=0, f=0), "", "did_not_run"),
    ("bun test", 0, "", "\n 5 pass\n 0 fail\n 6 expect() calls\nRan 5 tests across 2 files. [10ms]\n", "passed"),
    ("bun test; true", 0, "", "\n 4 pass\n 1 fail\nRan 5 tests across 2 files. [10ms]\n", "failed"),
    ("deno test -A", 0, "ok | 3 passed | 0 failed (12ms)\n", "", "passed"),
    ("deno test; true", 0, "FAILED | 2 passed | 1 failed (12ms)\n", "", "failed"),
    ("npx playwright test", 0, "Running 5 tests using 2 workers\n\n  5 passed (3.2s)\n", "", "passed"),
    ("npx playwright test; true", 0, "  1 failed\n    a.spec.ts\n  4 passed (3.2s)\n", "", "failed"),
    ("go test ./...", 0, GO_GOOD, "", "passed"),
    ("go test ./... | cat", 0, GO_BAD, "", "failed"),
    ("go test ./... 2>&1 | tail -3", 0, GO_GOOD, "", "passed"),
    ("go test ./... 2>&1 | grep ok", 0, "ok  \texample.org/b\t0.1s\n", "", "unknown"),
    ("go test -run XXX ./...", 0, "ok  \texample.org/a\t0.002s [no tests to run]\n", "", "did_not_run"),
    ("go test ./...", 0, "?   \texample.org/b\t[no test files]\n", "", "did_not_run"),
    ("go test ./... > /dev/null", 0, "", "", "unknown"),
    ("go test ./...", 1, "FAIL\texample.org/a [build failed]\nFAIL\n", "# example.org/a\n./a.go:1: syntax error\n", "did_not_run"),
    ("cargo test", 0, CARGO_GOOD + CARGO_NONE, "", "passed"),
    ("cargo test; true", 0, CARGO_GOOD + CARGO_BAD, "error: test failed, to rerun pass `--lib`\n", "failed"),
    ("cargo test 2>&1 | grep 'test result: ok'", 0, "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n", "", "unknown"),
    ("cargo test", 0, CARGO_NONE, "", "did_not_run"),
    ("cargo test", 101, "", "error[E0425]: cannot find value\nerror: could not compile `x`\n", "did_not_run"),
    ("cargo +nightly test --workspace", 0, CARGO_GOOD, "", "passed"),
    ("cargo nextest run", 0, "", "     Summary [   0.052s] 4 tests run: 4 passed, 0 skipped\n", "passed"),
    ("cargo nextest run; true", 0, "", "     Summary [   0.052s] 4 tests run: 3 passed, 1 failed, 0 skipped\n", "failed"),
    ("mvn -q test", 0, MVN.format(l="INFO", n=3, f=0, b="SUCCESS"), "", "passed"),
    ("./mvnw verify; true", 0, MVN.format(l="ERROR", n=3, f=1, b="FAILURE"), "", "failed"),
    ("mvn compile test", 0, "[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n", "", "unknown"),
    ("./gradlew test", 0, "> Task :compileJava\n> Task :test\n\nBUILD SUCCESSFUL in 2s\n", "", "passed"),
    ("./gradlew test", 0, "> Task :test UP-TO-DATE\n\nBUILD SUCCESSFUL in 1s\n", "", "did_not_run"),
    ("./gradlew test; true", 0, "> Task :test FAILED\n\n5 tests completed, 2 failed\n", "", "failed"),
    ("dotnet test", 0, "Passed!  - Failed:     0, Passed:     5, Skipped:     0, Total:     5, Duration: 9 ms - a.dll\n", "", "passed"),
    ("dotnet test; true", 0, "Failed!  - Failed:     2, Passed:     3, Skipped:     0, Total:     5, Duration: 9 ms - a.dll\n", "", "failed"),
    ("dotnet test", 0, "Bestanden!   : Fehler:     0, erfolgreich:     5, übersprungen:     0, gesamt:     5, Dauer: 9 ms\n", "", "passed"),
    ("bundle exec rspec", 0, "12 examples, 0 failures, 1 pending\n", "", "passed"),
    ("rspec; true", 0, "12 examples, 2 failures\n", "", "failed"),
    ("rspec spec/none", 0, "No examples found.\n\n0 examples, 0 failures\n", "", "did_not_run"),
    ("bin/rails test", 0, "5 runs, 6 assertions, 0 failures, 0 errors, 0 skips\n", "", "passed"),
    ("vendor/bin/phpunit", 0, "OK (5 tests, 7 assertions)\n", "", "passed"),
    ("vendor/bin/phpunit; true", 0, "FAILURES!\nTests: 5, Assertions: 7, Failures: 1.\n", "", "failed"),
    ("vendor/bin/phpunit", 0, "No tests executed!\n", "", "did_not_run"),
    ("ctest --test-dir build", 0, "100% tests passed, 0 tests failed out of 5\n", "", "passed"),
    ("ctest; true", 0, "60% tests passed, 2 tests failed out of 5\n", "", "failed"),
    ("ctest", 0, "", "No tests were found!!!\n", "did_not_run"),
    ("bats test", 0, "1..2\nok 1 a\nok 2 b\n", "", "passed"),
    ("bats test; true", 0, "1..2\nok 1 a\nnot ok 2 b\n", "", "failed"),
    ("prove -r t", 0, "All tests successful.\nFiles=1, Tests=3,  0 wallclock secs\nResult: PASS\n", "", "passed"),
    ("python -m unittest", 0, "", "...\n----\nRan 3 tests in 0.001s\n\nOK\n", "passed"),
    ("python -m unittest discover; true", 0, "", "F..\n----\nRan 3 tests in 0.001s\n\nFAILED (failures=1)\n", "failed"),
    ("python -m unittest", 5, "", "----\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n", "did_not_run"),
    ("python manage.py test", 0, "", "Ran 3 tests in 0.001s\n\nOK\n", "passed"),
    ("make check", 0, "12 passed in 0.10s\n", "", "passed"),
    ("make -C api test || true", 0, "1 failed, 11 passed in 0.10s\n", "", "failed"),
    ("make test", 2, "", "make: *** No rule to make target 'test'.  Stop.\n", "did_not_run"),
    ("tox -e py311", 0, "12 passed in 0.10s\n  py311: OK (1.00 seconds)\n  congratulations :)\n", "", "passed"),
    ("make test", 0, "", "", "unknown"),
    ("pytest -q", 0, "\x1b[32m.\x1b[0m  [100%]\n\x1b[32m\x1b[32m\x1b[1m12 passed\x1b[0m\x1b[32m in 0.05s\x1b[0m\x1b[0m\n", "", "passed"),
    ("pytest", 0, "===== 3 skipped in 0.01s =====\n", "", "did_not_run"),
    ("pytest", 0, "===== 2 xfailed in 0.01s =====\n", "", "did_not_run"),
    ("pytest; true", 0, "===== 2 passed, 1 error in 0.01s =====\n", "", "failed"),
    ("pytest", 2, "ERROR collecting a.py\n!!!! Interrupted: 1 error during collection !!!!\n===== 1 error in 0.1s =====\n", "", "did_not_run"),
    ("pytest", 124, "...", "", "unknown"),
    ("timeout 5 pytest", 124, "....", "", "unknown"),
    ("pytest", 137, "....", "", "unknown"),
    ("pytest --cov --cov-fail-under=90", 1, "FAIL Required test coverage of 90% not reached.\n12 passed in 1.0s\n", "", "unknown"),
    ("pytest --reruns 3; true", 0, "=== 12 passed, 2 rerun in 0.5s ===\n", "", "passed"),
    ("pytest -n 4 | tail -1", 0, "===== 12 passed in 61.2s (0:01:01) =====\n", "", "passed"),
    ("pytest", None, "===== 12 passed in 0.1s =====\n", "", "passed"),
    ("pytest", None, "collecting ...", "", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "out", "err", "verdict"), SHOWN)
def test_the_verdict(command: str, code: int | None, out: str, err: str, verdict: str) -> None:
    check = only(command, code, out, err)
    assert check.verdict == verdict, check
    proves = judge_command(command, ".", code, out, err).proves_tests_pass
    assert proves is (verdict == "passed")


NOTHING = [
    "pytest --version", "pytest --co -q", "python -m pytest --fixtures", "python -m unittest -h", "npx jest --listTests", "npx jest --showConfig", "npx vitest list",
    "npx mocha --dry-run", "npm test -- --listTests", "node --test --version", "npx playwright test --list", "go test -list . ./...", "go test -c ./sum", "cargo test --no-run",
    "cargo test -- --list", "mvn test -DskipTests", "./gradlew test --dry-run", "dotnet test --list-tests", "rspec --dry-run", "vendor/bin/phpunit --list-tests", "ctest -N",
    "bats --count test", "make -n test", "make test --dry-run", "just --dry-run test", "tox --notest", "nox --list", "MAKEFLAGS=n make test",
]  # fmt: skip


@pytest.mark.parametrize("command", NOTHING)
def test_flags_that_run_nothing(command: str) -> None:
    assert only(command, 0, "12 passed in 0.10s\nok  \tx\t0.1s\n").verdict is Verdict.DID_NOT_RUN


@pytest.mark.parametrize(
    ("command", "selection"),
    [
        ("pytest", "all"), ("pytest tests", "all"), ("pytest -x --maxfail=2", "all"), ("pytest tests/test_a.py", "part"), ("pytest -k x", "part"), ("pytest -m slow", "part"),
        ("pytest --deselect a", "part"), ("pytest --lf", "part"), ("pytest -n 4", "all"), ("pytest --tb short -p no:x", "all"), ("npx jest src/a.test.js", "part"),
        ("npx jest -t name", "part"), ("npx jest --ci", "all"), ("npx vitest run", "all"), ("npx vitest run a", "part"), ("go test ./...", "all"), ("go test ./a", "part"),
        ("go test -run X ./...", "part"), ("cargo test", "all"), ("cargo test name", "part"), ("cargo test -p x", "part"), ("python -m unittest", "all"),
        ("python -m unittest a.B", "part"), ("rspec spec/a_spec.rb", "part"), ("dotnet test --filter X", "part"), ("ctest -R x", "part"),
    ],
)  # fmt: skip
def test_how_much_was_asked_for(command: str, selection: str) -> None:
    assert only(command, 0).selection == Selection(selection)


@pytest.mark.parametrize(
    ("command", "kind", "runner", "code", "verdict"),
    [
        ("ruff check .", "lint", "ruff", 0, "passed"), ("ruff check .", "lint", "ruff", 1, "failed"), ("ruff --version", None, "", 0, ""), ("ruff format .", None, "", 0, ""),
        ("ruff format --check .", "lint", "ruff", 1, "failed"), ("mypy src", "types", "mypy", 1, "failed"), ("npx tsc --noEmit", "types", "tsc", 2, "failed"),
        ("npx eslint .", "lint", "eslint", 0, "passed"), ("shellcheck x.sh", "lint", "shellcheck", 0, "passed"), ("black --check .", "lint", "black", 0, "passed"),
        ("black .", None, "", 0, ""), ("npx prettier --check .", "lint", "prettier", 1, "failed"), ("cargo clippy", "lint", "clippy", 101, "failed"),
        ("go vet ./...", "lint", "go vet", 0, "passed"), ("pre-commit run -a", "lint", "pre-commit", 1, "failed"), ("ruff check . --exit-zero", "lint", "ruff", 0, "unknown"),
        ("npx @biomejs/biome --version", None, "", 0, ""), ("npx biome check .", "lint", "biome", 0, "passed"), ("pyright", "types", "pyright", 1, "failed"),
    ],
)  # fmt: skip
def test_linters_types_and_builds(command: str, kind: str | None, runner: str, code: int, verdict: str) -> None:
    checks = [c for c in judge_command(command, ".", code, "", "").checks if c.verdict is not Verdict.DID_NOT_RUN]
    assert [(c.kind, c.runner, c.verdict) for c in checks] == ([(kind, runner, verdict)] if kind else [])


def test_lint_before_a_failing_test_run_has_passed() -> None:
    judgement = judge_command(
        "ruff check . && pytest -q", ".", 1, "All checks passed!\n1 failed, 2 passed in 0.1s\n", ""
    )
    assert {(c.runner, str(c.verdict)) for c in judgement.checks} == {("ruff", "passed"), ("pytest", "failed")}


def test_output_that_was_not_reported_is_not_missing() -> None:
    """An agent that tells only the exit status: a plain run counts, a masked one does not."""
    assert judge_command("pytest -q", ".", 0, None, None).proves_tests_pass
    assert not judge_command("pytest -q; true", ".", 0, None, None).proves_tests_pass


def test_the_folder_is_relative_to_the_repository() -> None:
    judged = judge_command("cd /r/services/a && pytest -q", "/r", 0, "3 passed in 0.1s\n", "", root="/r")
    assert [c.dir for c in judged.checks] == ["services/a"]


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("PYTHONPATH=lib python -m pytest -q", ["lib/pytest.py"]), ("cd sub && python -m pytest -q", ["sub/pytest/__init__.py"]),
        ("python3 -m unittest", ["unittest.py"]),
    ],
)  # fmt: skip
def test_a_module_of_the_project_that_is_run_in_place_of_the_tool(command: str, files: list[str]) -> None:
    out = "3 passed in 0.1s\n" if "pytest" in command else "Ran 3 tests in 0.1s\n\nOK\n"

    def read(path: str) -> str | None:
        return "print('3 passed')" if path.removeprefix("./") in files else None

    assert not judge_command(command, ".", 0, out, "", read_file=read).proves_tests_pass
    assert judge_command(command, ".", 0, out, "", read_file=lambda _: None).proves_tests_pass


def test_a_log_that_is_read_before_its_run_can_have_written_it() -> None:
    out = "3 passed in 0.1s\n"
    assert not judge_command("pytest -q > x.log & cat x.log", ".", 0, out, "").proves_tests_pass
    assert judge_command("pytest -q > x.log & sleep 5; cat x.log", ".", 0, out, "").proves_tests_pass
    assert judge_command("pytest -q > x.log & wait; cat x.log", ".", 0, out, "").proves_tests_pass


@pytest.mark.parametrize(
    "command",
    [
        "(trap 'exit 0' EXIT; pytest -q >/dev/null)", "x=$(trap 'exit 0' EXIT; pytest -q)", "bash --rcfile own.sh -ic 'pytest -q'",
        "make -f - test <<< 'test: ; @echo 3 passed in 0.1s'", "make --eval='test: ; @echo 3 passed in 0.1s' test",
        'PATH="$(pwd)/bin:$PATH"; pytest -q', "make SHELL=/bin/true test",
    ],
)  # fmt: skip
def test_what_gives_another_status_or_runs_something_else_is_no_proof(command: str) -> None:
    assert not judge_command(command, ".", 0, "3 passed in 0.1s\n", "").proves_tests_pass
