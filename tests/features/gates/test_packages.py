"""The packages of a project, and what `fitting` requires of each."""

from pathlib import Path

import pytest

from holdfast.features.gates.packages import find_packages, package_requirements
from holdfast.features.gates.settings import GateSettings
from tests.features.gates.stage import PROJECT, Stage

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
        "*.py", "*.pyi", "services/lib/**/*.py", "services/lib/**/*.pyi", "src/**/*.py", "src/**/*.pyi",
    ]  # fmt: skip
    assert required["tests_green_services_api"]["paths"] == ["services/api/**/*.py", "services/api/**/*.pyi"]


def test_every_package_of_a_monorepo_needs_its_own_suite(tmp_path: Path) -> None:
    write(tmp_path, **{"pyproject.toml": "pytest", "web/package.json": NPM})
    stage = Stage(GateSettings.of({"requirements": package_requirements(str(tmp_path))}))
    stage.start()
    stage.edit("README.md")
    assert stage.stop().verdict == "none", "documents need no tests"
    stage.edit("web/fmt.js")
    stage.run("pytest")
    refused = stage.stop()
    assert refused.verdict == "deny" and "run `cd web && npm test`" in refused.reasons[0], "another package's tests"
    stage.run("cd web && npm test", cwd=PROJECT)
    assert stage.stop().verdict == "none"


def test_a_part_of_the_suite_is_not_the_suite(tmp_path: Path) -> None:
    write(tmp_path, **{"pyproject.toml": "pytest"})
    stage = Stage(GateSettings.of({"requirements": package_requirements(str(tmp_path))}))
    stage.start()
    stage.edit("src/a.py")
    passed = {"of": 100, "runner": "pytest", "dir": ".", "reach": ["."], "verdict": "passed"}
    named = ["tests/test_a.py::test_a"]
    stage.take("check.finished", command=f"pytest {named[0]}", operands=named, selection="part", **passed)
    refused = stage.stop()
    assert "ran only tests/test_a.py::test_a; the whole suite is required" in refused.reasons[0]
    stage.take("check.finished", command="pytest tests", selection="all", **passed)
    assert stage.stop().verdict == "none"


def test_what_the_recipe_of_an_entry_point_selects_is_the_suite(tmp_path: Path) -> None:
    write(tmp_path, **{"package.json": '{"scripts": {"test": "mocha test/*.spec.js"}}'})
    stage = Stage(GateSettings.of({"requirements": package_requirements(str(tmp_path))}))
    stage.start()
    stage.edit("src/a.js")
    passed = {"of": 100, "runner": "mocha", "dir": ".", "reach": ["."], "verdict": "passed"}
    named = ["a.test.js"]
    stage.take("check.finished", command="npm test", operands=named, selection="part", **passed)
    assert "ran only a.test.js; the whole suite is required" in stage.stop().reasons[0]
    stage.take("check.finished", command="npm test", operands=["test/*.spec.js"], selection="all", **passed)
    assert stage.stop().verdict == "none"
