"""The packages of a project, and what `fitting` requires of each."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.features.gates.packages import find_packages, package_requirements
from holdfast.features.gates.settings import GateSettings
from tests.features.gates.stage import Stage

NPM = '{"scripts": {"test": "vitest"}}'


def write(root: Path, **files: str) -> str:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("files", "runs"),
    [
        ({}, []),
        ({"Makefile": "build:\n\ttrue\ntest: build\n\tpytest\n"}, ["make test"]),
        ({"Makefile": "test := x\n"}, []),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, ["pytest"]),
        ({"pyproject.toml": "[project]\n"}, []),
        ({"package.json": NPM, "pnpm-lock.yaml": ""}, ["pnpm test"]),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, []),
        ({"package.json": "not json"}, []),
        ({"Cargo.toml": "", "go.mod": ""}, ["cargo test", "go test ./..."]),
        ({"pyproject.toml": "pytest", "web/package.json": NPM}, ["pytest", "cd web && npm test"]),
        (
            {"pyproject.toml": "pytest", "uv.lock": "", "tests/conftest.py": "", "tests/api/conftest.py": ""},
            ["uv run pytest"],
        ),
        ({"bun.lock": "", "package.json": "{}", "apps/cli/package.json": NPM}, ["cd apps/cli && bun run test"]),
        ({"package.json": '{"scripts": {"test:web": "nx test web"}}', "nx.json": "{}"}, ["npx nx run-many -t test"]),
        ({"composer.json": '{"require-dev": {"pestphp/pest": "4"}, "x": "phpunit.xml"}'}, ["vendor/bin/pest"]),
        ({"Gemfile": "gemspec", ".rspec": ""}, ["bundle exec rspec"]),
        ({"node_modules/a/package.json": NPM, ".cache/b/package.json": NPM}, []),
    ],
)
def test_packages_are_found_by_their_manifests(tmp_path: Path, files: dict[str, str], runs: list[str]) -> None:
    write(tmp_path, **files)
    assert [package.suggestion for package in find_packages(str(tmp_path))] == runs


def test_an_inner_package_of_the_same_kind_is_not_the_outer_ones(tmp_path: Path) -> None:
    write(
        tmp_path,
        **{
            "pyproject.toml": "pytest",
            "src/a.py": "",
            "services/api/pyproject.toml": "pytest",
            "services/lib/b.py": "",
        },
    )
    required = package_requirements(str(tmp_path))
    assert required["tests_green"]["paths"] == [
        "./*.py", "./*.pyi", "src/**/*.py", "src/**/*.pyi", "services/lib/**/*.py", "services/lib/**/*.pyi",
    ]  # fmt: skip
    assert required["tests_green_services_api"]["paths"] == ["services/api/**/*.py", "services/api/**/*.pyi"]


def fitted(root: Path, **files: str) -> Stage:
    stage = Stage(GateSettings.of({"requirements": package_requirements(write(root, **files))}))
    stage.start()
    return stage


def checked(stage: Stage, command: str, runner: str, *reach: str, **given: Any) -> None:
    """A call that ran tests which passed."""
    stage.run(command)
    seq = stage.log[-1].seq
    told = {
        "kind": "test",
        "runner": runner,
        "dir": reach[0],
        "reach": list(reach),
        "verdict": "passed",
        "selection": "all",
        **given,
    }
    stage.take("check.finished", of=seq, command=command, **told)


def test_every_package_of_a_monorepo_needs_its_own_suite(tmp_path: Path) -> None:
    stage = fitted(tmp_path, **{"pyproject.toml": "pytest", "web/package.json": NPM})
    stage.edit("README.md")
    assert stage.stop().verdict == "none", "documents need no tests"
    stage.edit("web/fmt.js")
    checked(stage, "pytest", "pytest", ".")
    refused = stage.stop()
    assert refused.verdict == "deny" and "run `cd web && npm test`" in refused.reasons[0], "tests of another language"
    checked(stage, "cd web && npm test", "vitest", "web")
    assert stage.stop().verdict == "none"


@pytest.mark.parametrize(
    ("command", "runner", "reach", "given", "proves"),
    [
        ("pnpm --filter web test", "vitest", "web", {}, True),
        ("npx nx test web", "jest", "web", {}, True),
        ("cd web && npx vitest run", "vitest", "web", {}, True),
        ("make test", "make", ".", {}, True),
        ("bun test web", "bun", "web", {"dir": ".", "selection": "part", "operands": ["web"]}, True),
        ("bun test web/test", "bun", "web", {"dir": ".", "selection": "part", "operands": ["web/test"]}, True),
        (
            "bun test web/test/unit",
            "bun",
            "web",
            {"dir": ".", "selection": "part", "operands": ["web/test/unit"]},
            False,
        ),
        (
            "bun test web/a.test.js",
            "bun",
            "web",
            {"dir": ".", "selection": "part", "operands": ["web/a.test.js"]},
            False,
        ),
        ("pnpm --filter web test -t one", "vitest", "web", {"selection": "part", "operands": ["-t"]}, False),
        ("pnpm --filter api test", "vitest", "api", {}, False),
        ("cd web && pytest", "pytest", "web", {}, False),
        ("cd web && npm test", "vitest", "web", {"verdict": "failed"}, False),
        ("npm run lint", "eslint", "web", {"kind": "lint"}, False),
    ],
)
def test_any_run_that_covers_the_package_proves_it(
    tmp_path: Path, command: str, runner: str, reach: str, given: dict[str, Any], proves: bool
) -> None:
    stage = fitted(tmp_path, **{"package.json": NPM, "web/package.json": NPM, "api/package.json": NPM})
    stage.edit("web/fmt.js")
    checked(stage, command, runner, reach, **given)
    assert (stage.stop().verdict == "none") is proves


def test_the_summaries_of_one_call_are_one_suite(tmp_path: Path) -> None:
    """`pnpm -r test` prints one for each package: a small package is no shrunken suite, a failed one is not made good."""
    stage = fitted(tmp_path, **{"package.json": NPM})
    for verdicts, verdict in (
        (("passed", "passed"), "none"),
        (("passed", "passed"), "none"),
        (("failed", "passed"), "deny"),
    ):
        stage.edit("a.js")
        stage.run("pnpm -r test")
        seq = stage.log[-1].seq
        for one, tests in zip(verdicts, (31, 5), strict=True):
            told = {"kind": "test", "runner": "vitest", "dir": ".", "reach": ["."], "selection": "all", "passed": tests}
            stage.take("check.finished", of=seq, command="pnpm -r test", verdict=one, **told)
        assert stage.stop().verdict == verdict


def test_long_folders_give_names_that_settings_take(tmp_path: Path) -> None:
    folder = "examples/features/functional-grading-of-answers/workspace-template"
    fitted(tmp_path, **{"package.json": NPM, f"{folder}/package.json": NPM})


def test_a_part_of_the_suite_is_not_the_suite(tmp_path: Path) -> None:
    stage = fitted(tmp_path, **{"pyproject.toml": "pytest"})
    stage.edit("src/a.py")
    named = ["tests/test_a.py::test_a"]
    checked(stage, f"pytest {named[0]}", "pytest", ".", operands=named, selection="part")
    refused = stage.stop()
    assert "ran only tests/test_a.py::test_a; the whole suite is required" in refused.reasons[0]
    checked(stage, "pytest tests", "pytest", ".")
    assert stage.stop().verdict == "none"


def test_what_the_recipe_of_an_entry_point_selects_is_the_suite(tmp_path: Path) -> None:
    stage = fitted(tmp_path, **{"package.json": '{"scripts": {"test": "mocha test/*.spec.js"}}'})
    stage.edit("src/a.js")
    checked(stage, "npm test -- a.test.js", "mocha", ".", operands=["a.test.js"], selection="part")
    assert "ran only a.test.js; the whole suite is required" in stage.stop().reasons[0]
    checked(stage, "npm test", "mocha", ".", operands=["test/*.spec.js"])
    assert stage.stop().verdict == "none"


def test_packages_are_not_compared_with_tests(tmp_path: Path) -> None:
    """`go test` lists packages, `go test -v` tests."""
    stage = fitted(tmp_path, **{"go.mod": ""})
    for flag, count in (("-v ", 31), ("", 2), ("-v ", 31)):
        stage.edit("a.go")
        checked(stage, f"go test {flag}./...", "go test", ".", passed=count)
        assert stage.stop().verdict == "none"
