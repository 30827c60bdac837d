"""Ways to make tests pass without better code are named with the proof; ordinary projects name nothing."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit import World, git

RULES = """
requirements:
  green: {type: evidence, evidence: {command: 'pytest*', after_edit: 'src/**'}}
  js: {type: evidence, evidence: {command: 'npm test*', after_edit: 'web/**'}}
"""
FILES = {
    "src/app.py": "x = 1\n",
    "tests/test_app.py": "def test_it(): assert True\n",
    "tests/conftest.py": "import pytest\n",
    "pyproject.toml": "[project]\nname = 'a'\n[tool.pytest.ini_options]\naddopts = '-q'\n",
    "setup.cfg": "[metadata]\nname = a\n[tool:pytest]\naddopts = -q\n",
    "tox.ini": "[tox]\nenvlist = py\n[testenv:py]\ncommands = pytest\n",
    "package.json": '{"scripts": {"test": "jest"}, "dependencies": {}}',
    "Makefile": "test:\n\tpytest\n",
}
GREEN = "collected 2 items\n\n2 passed in 0.01s\n"
GREEN_JS = "Tests:       2 passed, 2 total\n"
GREEN_VITEST = " Test Files  1 passed (1)\n      Tests  2 passed (2)\n"


@pytest.fixture
def world(tmp_path: Path):
    world = World(tmp_path)
    (world.root / "config").mkdir()
    (world.root / "config" / "settings.yaml").write_text(RULES)
    git(world.project, "init", "-q")
    for name, content in FILES.items():
        write(name, content)(world.project)
    git(world.project, "add", "-A")
    git(world.project, "commit", "-qm", "base")
    git(world.project, "checkout", "-qb", "feature/a")
    yield world
    world.close()


def output_of(command: str) -> str:
    words = {"vitest": GREEN_VITEST, "npm": GREEN_JS, "jest": GREEN_JS}
    return next((output for word, output in words.items() if word in command), GREEN)


def write(name: str, content: str) -> Callable[[Path], None]:
    def do(project: Path) -> None:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    return do


def hide_from_git(project: Path) -> None:
    write(".git/info/exclude", "src/evil.py\n")(project)
    write("src/evil.py", "x = 2\n")(project)


def commit_configuration(project: Path) -> None:
    write("tests/conftest.py", "collect_ignore = ['test_app.py']\n")(project)
    git(project, "commit", "-qam", "tests")


def nothing(_project: Path) -> None:
    """The command alone bends it."""


# A way: what is done to the project, the command, its output, and a word that names it.
WAYS = {
    "conftest": (write("tests/conftest.py", "def pytest_collection_modifyitems(items): items.clear()\n"), "pytest", "conftest"),
    "new conftest": (write("conftest.py", "collect_ignore_glob = ['*']\n"), "pytest", "conftest.py is new"),
    "conftest, committed": (commit_configuration, "pytest", "conftest"),
    "pytest.ini": (write("pytest.ini", "[pytest]\naddopts = --deselect tests\n"), "pytest", "pytest.ini"),
    ".pytest.ini": (write(".pytest.ini", "[pytest]\n"), "pytest", ".pytest.ini"),
    "addopts": (write("pyproject.toml", FILES["pyproject.toml"].replace("-q", "--deselect x")), "pytest", "pyproject"),
    "broken pyproject": (write("pyproject.toml", "[[["), "pytest", "pyproject"),
    "setup.cfg": (write("setup.cfg", "[tool:pytest]\naddopts = -k x\n"), "pytest", "setup.cfg"),
    "tox.ini": (write("tox.ini", "[testenv:py]\ncommands = true\n"), "tox -e py", "tox.ini"),
    "sitecustomize": (write("sitecustomize.py", "import os\n"), "pytest", "sitecustomize"),
    "usercustomize": (write("src/usercustomize.py", "import os\n"), "pytest", "usercustomize"),
    "plugin": (nothing, "pytest -p quiet_plugin", "-p quiet_plugin"),
    "override": (nothing, "pytest -o python_files=none_*.py", "-o"),
    "other settings": (nothing, "pytest -c /dev/null", "-c"),
    "rootdir": (nothing, "pytest --rootdir=/tmp", "--rootdir"),
    "no conftest": (nothing, "pytest --noconftest", "--noconftest"),
    "addopts variable": (nothing, "PYTEST_ADDOPTS=--lf pytest", ""),
    "plugins variable": (nothing, "PYTEST_PLUGINS=evil pytest", "PYTEST_PLUGINS"),
    "exported": (nothing, "export PYTEST_PLUGINS=evil; pytest", "PYTEST_PLUGINS"),
    "env": (nothing, "env PYTEST_PLUGINS=evil pytest", "PYTEST_PLUGINS"),
    "PYTHONPATH": (nothing, "PYTHONPATH=/nowhere pytest", ""),
    "LD_PRELOAD": (nothing, "LD_PRELOAD=/tmp/x.so pytest", ""),
    "PATH": (nothing, "PATH=/tmp/fake:$PATH pytest", ""),
    "hidden source": (hide_from_git, "pytest", "src/evil.py is hidden"),
    "npm script": (write("package.json", '{"scripts": {"test": "node fake.js"}}'), "npm test", "package.json"),
    "jest settings": (write("jest.config.js", "module.exports = {testMatch: []}\n"), "npm test", "jest.config.js"),
    "jest in package.json": (
        write("package.json", '{"scripts": {"test": "jest"}, "jest": {"testPathIgnorePatterns": ["/"]}}'), "npm test", "package.json",
    ),
    "vitest settings": (write("web/vitest.config.ts", "export default {}\n"), "npx vitest run", "vitest.config.ts"),
    "npmrc": (write(".npmrc", "script-shell=/tmp/sh\n"), "npm test", ".npmrc"),
    "NODE_OPTIONS": (nothing, "NODE_OPTIONS='--require ./x.js' npm test", ""),
    "jest config flag": (nothing, "npx jest --config other.json", "--config"),
    "Makefile": (write("Makefile", "test:\n\tpytest || true\n"), "make test", "Makefile"),
}  # fmt: skip


@pytest.mark.parametrize("way", list(WAYS))
def test_a_bent_run_is_named_or_does_not_prove(world: World, way: str) -> None:
    bend, command, name = WAYS[way]
    agent = world.session("s1")
    agent.start()
    bend(world.project)
    agent.tool("Bash", {"stdout": output_of(command), "exit_code": 0}, command=command)
    checks = [event.data for event in world.events(kinds=("check.finished",))]
    passed = [check for check in checks if check.verdict == "passed"]
    assert all(check.bent and name in " ".join(check.bent) for check in passed)
    if name:
        assert passed, checks


HONEST = (
    "pytest", "pytest -q -n 4", "pytest --cov=src", "pytest -p no:randomly", "python -m pytest tests", "uv run pytest", "tox -e py",
    "timeout 60 pytest -x", "npx jest", "make test", "npm test",
)  # fmt: skip


@pytest.mark.parametrize("command", HONEST)
def test_an_ordinary_project_names_nothing(world: World, command: str) -> None:
    agent = world.session("s1")
    agent.start()
    write("src/app.py", "x = 2\n")(world.project)
    write("tests/test_more.py", "def test_more(): assert True\n")(world.project)
    # Other parts of files that configure several things.
    write("pyproject.toml", FILES["pyproject.toml"].replace("'a'", "'b'"))(world.project)
    write("package.json", FILES["package.json"].replace("{}", '{"left-pad": "1"}'))(world.project)
    agent.tool("Bash", {"stdout": output_of(command), "exit_code": 0}, command=command)
    [check] = [event.data for event in world.events(kinds=("check.finished",))]
    assert check.verdict == "passed" or command.startswith(("make", "tox"))
    assert check.bent == []


@pytest.mark.parametrize("strict", [False, True])
def test_gate_status_names_it_and_strict_refuses_it(world: World, strict: bool) -> None:
    if strict:
        rules = world.root / "config" / "settings.yaml"
        rules.write_text(RULES.replace("after_edit: 'src/**'", "after_edit: 'src/**', strict: true"))
    agent = world.session("s1")
    agent.start()
    agent.prompt("fix it")
    agent.tool("Write", file_path=str(world.project / "src" / "app.py"), content="x = 3\n")
    write("src/app.py", "x = 3\n")(world.project)
    write("tests/conftest.py", "collect_ignore = ['test_app.py']\n")(world.project)
    agent.tool("Bash", {"stdout": GREEN, "exit_code": 0}, command="pytest")
    assert "tests/conftest.py was changed" in world.cli("gate", "status")
    reply = str(agent.stop())
    assert ("does not count: tests/conftest.py was changed" in reply) is strict


@pytest.mark.skipif(sys.platform != "linux", reason="reads the environment of processes")
def test_the_program_that_ran_is_recorded_and_a_new_one_is_named(world: World, tmp_path: Path) -> None:
    agent = world.session("s1")
    agent.start()
    fake = tmp_path / "bin" / "pytest"
    fake.parent.mkdir()
    shutil.copy("/bin/sh", fake)
    command = f"PATH={fake.parent}:{os.environ['PATH']} pytest"
    agent.tool("Bash", {"stdout": GREEN, "exit_code": 0}, command=command)
    [check] = [event.data for event in world.events(kinds=("check.finished",))]
    if check.verdict == "passed":
        assert f"{fake} was written after the agent started" in check.bent
        assert check.ran_with["program"].startswith(f"{fake} ")
