"""Which folders a run says something of, and code that runs in place of its tool."""

from pathlib import Path

import pytest

from holdfast.features.checks.judge import judge_command
from holdfast.features.checks.runners.entries import RepositoryFiles

PASSED = "3 passed in 0.01s\n"


def reach_of(command: str, root: Path | None = None, cwd: str = ".") -> list[str]:
    read = RepositoryFiles(str(root)).read if root else None
    checks = judge_command(command, cwd, 0, PASSED, "", root=str(root or ""), read_file=read).checks
    assert len(checks) == 1
    return checks[0].reach


@pytest.mark.parametrize(
    ("command", "reach"),
    [
        ("pytest -q", ["."]),
        ("cd sub && pytest -q", ["sub"]),
        ("env -C sub pytest", ["sub"]),
        ("pytest sub other/test_x.py", ["sub", "other"]),
        ("pytest 'services/*/tests'", ["services"]),
        ("pytest tests/unit/test_a.py::test_b", ["."]),
        ("cd backend/tests && pytest", ["backend"]),
        ("pytest -k name", ["."]),
        ("pytest --pyargs package", ["."]),
        ("cd sub && pytest ..", ["."]),
        ("pytest /elsewhere/x", ["/elsewhere/x"]),
        ("go test ./part/...", ["part"]),
        ("go test example.org/module/part", ["."]),
        ("gradle :module:test", ["module"]),
        ("python -m unittest tests.test_a", ["."]),
        ("python -m unittest part.test_a", ["part"]),
        ("npx jest name", ["."]),
        ("npx jest --rootDir=sub", ["sub"]),
        ("cargo test --manifest-path sub/Cargo.toml", ["sub"]),
        ("cd build && ctest", ["."]),
        ("dotnet test part/App.Tests", ["part"]),
        ("npm test -w packages/x", ["packages/x"]),
        ("pnpm --filter ./packages/x test", ["packages/x"]),
        ("pnpm --filter @scope/x test", ["."]),
        ("make -C sub test", ["sub"]),
        ('cd "$FOLDER" && pytest', []),
    ],
)
def test_it_says_something_of_where_it_ran_and_what_it_was_limited_to(command: str, reach: list[str]) -> None:
    assert reach_of(command) == reach


def test_a_tool_that_looks_for_its_project_upwards_works_on_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "app/src").mkdir(parents=True)
    (tmp_path / "app/package.json").write_text("{}")
    assert reach_of("cd app/src && npx jest", tmp_path) == ["app"]
    assert reach_of("cd app/src && npm test", tmp_path) == ["app"]
    assert reach_of("cd app/src && npx mocha", tmp_path) == ["app/src"]
    assert reach_of("cd app/src && cargo test", tmp_path) == ["app/src"]


def proves(command: str, root: Path) -> bool:
    read = RepositoryFiles(str(root)).read
    return judge_command(command, str(root), 0, PASSED, "", root=str(root), read_file=read).proves_tests_pass


def test_a_module_on_the_path_outside_of_the_project_is_not_the_tool(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    (root / "src").mkdir(parents=True)
    outside.mkdir()
    assert proves(f"PYTHONPATH={outside} python -m pytest", root)
    assert proves(f"PYTHONPATH=src:{root}/src python -m pytest", root)
    (outside / "pytest").mkdir()
    assert not proves(f"PYTHONPATH={outside} python -m pytest", root)
    assert not proves(f"export PYTHONPATH=src:{outside}; pytest", root)
    assert not proves("PYTHONPATH=../outside pytest", root)
    (outside / "pytest").rmdir()
    (outside / "plug.py").write_text("")
    assert not proves(f"PYTHONPATH={outside} pytest -p plug", root)
    assert proves(f"PYTHONPATH={outside} pytest -p no:plug", root)
    assert not proves(f"PYTHONPATH={outside}/gone pytest", root), "it may have been there while the tests ran"


def test_what_node_loads_from_outside_may_do_anything(tmp_path: Path) -> None:
    read = RepositoryFiles(str(tmp_path)).read
    text = "Tests:       2 passed, 2 total\n"

    def passes(options: str) -> bool:
        command = f"NODE_OPTIONS='{options}' npx jest"
        return judge_command(command, ".", 0, "", text, root=str(tmp_path), read_file=read).proves_tests_pass

    assert passes("--max-old-space-size=4096 --import tsx")
    assert passes("--require ./setup.js")
    assert not passes("--require /elsewhere/setup.js")
    assert not passes("--import=../setup.mjs")


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ('cd "$(git rev-parse --show-toplevel)" && pytest -q', "."), ('cd "$GITHUB_WORKSPACE" && pytest -q', "."),
        ('cd "$(git rev-parse --show-toplevel)" && make -C api test', "api"), ('cd "$WHERE" && pytest -q', "?"),
        ('cd "$GITHUB_WORKSPACE/x$Y" && pytest -q', "?"),
    ],
)  # fmt: skip
def test_the_root_is_known_by_custom_and_other_variables_are_not(command: str, folder: str) -> None:
    judged = judge_command(command, "/repo", 0, "3 passed in 0.01s\n", "", root="/repo")
    assert [check.dir for check in judged.checks] == [folder]


@pytest.mark.parametrize(
    ("command", "where", "selection"),
    [
        ("pnpm --filter web test", "apps/web", "all"),
        ("pnpm --filter @shop/web test", "apps/web", "all"),
        ("pnpm --filter web... test", "apps/web", "all"),
        ("npm test -w apps/web", "apps/web", "all"),
        ("yarn workspace @shop/web test", "apps/web", "all"),
        ("bun --filter web test", "apps/web", "all"),
        ("npx turbo run test --filter=web", "apps/web", "all"),
        ("pnpm nx test web", "apps/web", "all"),
        ("npx nx run web:test", "apps/web", "all"),
        ("npm run test:web", "apps/web", "all"),
        ("npx nx run-many -t test", ".", "all"),
        ("npx nx test web --testFile=a", "apps/web", "part"),
        ("pnpm --filter web test -- a.test.js", "apps/web", "part"),
        ("pnpm --filter './apps/*' test", ".", "part"),
        ("pnpm --filter unheard test", ".", "part"),
        ("pnpm --filter web exec jest", "apps/web", "all"),
        ("pnpm --filter './apps/*' exec jest", ".", "part"),
        ("pnpm --filter './apps/*' exec npm test", ".", "part"),
        ("npx -w apps/web jest", "apps/web", "all"),
        ("npm exec --workspace=@shop/web -- jest", "apps/web", "all"),
        ("cargo test -p core", "crates/core", "all"),
        ("cargo test -p core name", "crates/core", "part"),
    ],
)
def test_a_package_that_is_named_is_where_it_ran(tmp_path: Path, command: str, where: str, selection: str) -> None:
    write = {"package.json": '{"scripts": {"test:web": "nx test web"}}', "apps/web/package.json": '{"name": "@shop/web"}',
             "Cargo.toml": "[workspace]", "crates/core/Cargo.toml": '[package]\nname = "core"\n'}  # fmt: skip
    for name, text in write.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    output = (
        "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"
        if "cargo" in command
        else "Tests:       3 passed, 3 total"
    )
    read = RepositoryFiles(str(tmp_path)).read
    (check,) = judge_command(command, str(tmp_path), 0, output, "", root=str(tmp_path), read_file=read).checks
    assert (check.dir, check.reach, check.selection.value, check.verdict.value) == (where, [where], selection, "passed")


@pytest.mark.parametrize(
    ("packages", "verdicts"),
    [
        ("a test: Tests:       3 passed, 3 total\n", {"unknown"}),
        ("a test: Tests:       3 passed, 3 total\nb test: Tests:       1 failed, 3 total\n", {"passed", "failed"}),
    ],
)
def test_a_package_that_fails_without_a_summary_is_not_passed_by_another(packages: str, verdicts: set[str]) -> None:
    checks = judge_command("pnpm -r test", ".", 1, packages, "").checks
    assert {check.verdict.value for check in checks} == verdicts
