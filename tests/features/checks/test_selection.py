"""A call that hands test names on to the project's own script runs a part of the tests."""

import json
from pathlib import Path

import pytest

from holdfast.core.checks import Selection
from holdfast.features.checks.judge import judge_command
from holdfast.features.checks.runners.entries import RepositoryFiles

FILES = {
    "package.json": json.dumps(
        {"scripts": {"test": "jest", "both": "jest && eslint .", "test:unit": "vitest run src"}}
    ),
    "Makefile": "ARGS ?=\nPY ?= python3\ntest:\n\t$(PY) -m pytest $(ARGS)\n",
    "justfile": "test *args:\n  pytest {{args}}\n",
    "tox.ini": "[testenv]\ncommands =\n    pytest {posargs:tests}\n",
    "Taskfile.yml": "version: 3\ntasks:\n  test:\n    cmds:\n      - pytest {{.CLI_ARGS}}\n",
    "composer.json": json.dumps({"scripts": {"test": "phpunit"}}),
}
WHOLE = (
    "npm test", "npm test -- --coverage", "npm run both -- src", "npm run test:unit", "npm test -w packages/a", "pnpm -r test", "pnpm test --silent",
    "bun run test --watch=false", "make test", "make test PY=python3.12", "make test ARGS=-v", "just test", "tox", "tox -e py311 -- -v", "task test",
    "composer test",
)  # fmt: skip
PART = (
    "npm test -- a.test.js", "npm test a.test.js", "npm test -- -t add", "yarn test a.test.js", "yarn test:unit src/a.test.ts",
    "make test ARGS='-k one'", "just test tests/a.py", "tox -e py311 -- tests/a.py", "task test -- tests/a.py", "composer test -- --filter One",
)  # fmt: skip


def selection_of(command: str, root: Path, *, with_files: bool) -> Selection:
    read = RepositoryFiles(str(root)).read if with_files else None
    [check] = judge_command(command, str(root), 0, "", "", root=str(root), read_file=read).checks
    return check.selection


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("command", WHOLE)
def test_the_whole_suite_of_the_project(command: str, repository: Path) -> None:
    assert selection_of(command, repository, with_files=True) is Selection.ALL


@pytest.mark.parametrize("command", PART)
def test_a_part_of_it(command: str, repository: Path) -> None:
    assert selection_of(command, repository, with_files=True) is Selection.PART


@pytest.mark.parametrize("command", ["npm test -- a.test.js", "npm test -- -t add", "tox -- tests/a.py"])
def test_a_part_where_the_files_are_gone(command: str, tmp_path: Path) -> None:
    assert selection_of(command, tmp_path, with_files=False) is Selection.PART
