"""A day on flask's sources and on a JavaScript project: after each step the tasks, `validated` and the state are right.

The agent's shell is real: each command runs in the project, and its hooks carry what it printed and how it ended.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.features.project.daemon_calls import command, view
from tests.kit import BIN, Agent, World, git, wait_until

from .programs import program, python_sources

pytestmark = pytest.mark.real

KEPT = ("conftest.py", "test_config.py", "test_json_tag.py", "test_views.py", "test_signals.py")
"""Test files of flask that stay: all of them take ten seconds a run."""
IDENTITY = {f"GIT_{who}_{what}": "a@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
NEEDS = ("werkzeug==3.1.3", "jinja2==3.1.6", "itsdangerous==2.2.0", "click==8.2.1", "blinker==1.9.0", "pytest==8.3.5")


class Day:
    """One agent in one project, with a real shell, and what Holdfast says of the project at this moment."""

    def __init__(self, world: World, **environment: str) -> None:
        self.world = world
        self.project = world.project
        self.agent: Agent = world.session()
        self._environment = {**os.environ, **environment, **IDENTITY, "HOME": str(world.home)}
        self.agent.start()

    def shell(self, text: str) -> None:
        call = self.agent._next_call()
        self.agent.before("Bash", call, command=text)
        done = subprocess.run(
            ["bash", "-c", text], cwd=self.project, env=self._environment, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            self.agent.failed("Bash", f"Exit code {done.returncode}\n{done.stdout}{done.stderr}", call, command=text)
        else:
            answer = {"stdout": done.stdout, "stderr": done.stderr, "interrupted": False}
            self.agent.after("Bash", call, answer, command=text)

    def edit(self, path: str, old: str, new: str) -> None:
        file = self.project / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
        self.agent.tool("Edit", file_path=str(file), old_string=old, new_string=new)

    # ── what is known ────────────────────────────────────────────────────────────────────────────────────────────────

    def document(self) -> dict[str, Any]:
        command(self.world, "project.look")
        wait_until(lambda: not view(self.world, "project.looking")["waiting"], "the project is looked at")
        document: dict[str, Any] = view(self.world, "project.state")["document"]
        return document

    def state(self) -> tuple[str, list[str], dict[str, bool]]:
        """The state of the tests, what must be done first, and which changed files are validated."""
        document = self.document()
        current = document["CURRENT_STATE"]
        urgent = sorted(task["description"] for task in document["TASKS"].get("P0_blockers", []))
        files = {one["path"]: one["validated"] for one in current["git"]["uncommitted_files"].get("files", [])}
        return current["tests"]["status"], urgent, files

    def tasks(self) -> dict[str, str]:
        tasks = [task for tasks in self.document()["TASKS"].values() for task in tasks]
        return {task["gap_type"]: task["description"] for task in tasks}

    def history(self) -> str:
        return "\n".join(line["summary"] for line in self.document()["STATE_HISTORY"])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, HOLDFAST_CHECKS__LOOK_MS="10000")
    yield world
    world.close()


def commit_all(project: Path) -> None:
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "as released")


@pytest.fixture
def flask(world: World) -> Day:
    sources = python_sources("flask", "3.1.2", *NEEDS)
    shutil.copytree(sources / "src", world.project, dirs_exist_ok=True)
    for test in (world.project / "tests").glob("*.py"):
        if test.name not in KEPT:
            test.unlink()
    commit_all(world.project)
    world.start()
    site = f"{world.project / 'src'}:{sources / 'site'}"
    quick = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
    }
    return Day(world, PATH=f"{sources / 'site' / 'bin'}:{BIN}:{os.environ['PATH']}", PYTHONPATH=site, **quick)


def test_a_day_on_flask(flask: Day, tmp_path: Path) -> None:
    config, broken = "src/flask/config.py", "return self.from_mapping(obj)"
    assert flask.state() == ("not_run", [], {})
    flask.shell("pytest -q")
    assert flask.state() == ("passing", [], {})

    # An edit, a failing run, a narrow run that passes, a fix by shell, a run that includes what failed.
    flask.edit(config, broken, "return self.from_mapping({})")
    assert flask.state() == ("passing", [], {config: False})
    flask.shell("pytest -q 2>&1 | tail -20")
    status, urgent, files = flask.state()
    assert (status, files) == ("failing", {config: False})
    assert len(urgent) == 1 and urgent[0].endswith("failing")
    flask.shell("pytest -q tests/test_views.py")
    assert flask.state() == ("failing", urgent, {config: False}), "the views pass, the configuration does not"
    flask.shell("pytest --version; shellcheck --version; ruff --version")
    assert flask.state() == ("failing", urgent, {config: False}), "nothing was checked"
    flask.shell(f"sed -i 's/self.from_mapping({{}})/self.from_mapping(obj)/' {config}")
    assert flask.state() == ("failing", urgent, {}), "the file is as it was, and nobody ran the tests again"
    flask.shell("pytest -q tests/test_config.py")
    assert flask.state() == ("passing", [], {})

    # A shell edit takes the word back; a linter gives it for its own file types.
    flask.shell("printf '\\n# more\\n' >> src/flask/views.py; echo more >> README.md")
    assert flask.state()[2] == {"src/flask/views.py": False, "README.md": False}
    flask.shell("ruff check --no-cache --select E9 src")
    assert flask.state()[2] == {"src/flask/views.py": True, "README.md": False}
    flask.shell("git checkout -q README.md")
    assert flask.state()[2] == {"src/flask/views.py": True}

    # A commit that a person makes outside, of something nobody checked.
    flask.shell("printf '\\n# and more\\n' >> src/flask/views.py")
    assert flask.state()[2] == {"src/flask/views.py": False}
    git(flask.project, "commit", "-qam", "from a terminal")
    assert flask.state()[2] == {}
    assert "ithout validation: 1 file" in flask.history()

    # Another worktree and another branch have failures of their own.
    side = tmp_path / "side"
    git(flask.project, "worktree", "add", "-q", "-b", "side", str(side))
    (side / config).write_text((side / config).read_text().replace(broken, "return self.from_mapping({})"))
    flask.shell(f"cd {side} && PYTHONPATH={side}/src:$PYTHONPATH pytest -q tests/test_config.py")
    assert flask.state()[:2] == ("passing", []), "that failed in the other worktree"
    flask.shell("git checkout -q -b topic")
    flask.shell(f"sed -i 's/{broken}/return self.from_mapping({{}})/' {config}")
    flask.shell("pytest -q tests/test_config.py")
    assert (flask.state()[0], len(flask.state()[1])) == ("failing", 1)
    flask.shell("git commit -qam broken; git checkout -q main")
    assert flask.state()[:2] == ("passing", []), "what fails on topic does not fail on main"
    flask.shell("git checkout -q topic")
    assert (flask.state()[0], len(flask.state()[1])) == ("failing", 1)

    # What cannot be started is no failure.
    flask.shell("pytest -q --no-such-flag")
    assert "could not be started" in flask.tasks()["tests_not_started"]
    flask.shell("git checkout -q main; printf 'import absent\\n' > tests/test_new.py; pytest -q")
    assert flask.state()[1] == [], "an error while the tests are collected is no failing test"
    assert "could not be started" in flask.tasks()["tests_not_started"]
    flask.shell("rm tests/test_new.py && pytest -q")
    assert flask.state() == ("passing", [], {})
    assert "tests_not_started" not in flask.tasks()


@pytest.fixture
def sprintf(world: World) -> Day:
    """sprintf-js as npm has it, with its own tests and scripts; mocha is what they run."""
    shutil.copytree(program("sprintf-js").parent, world.project, dirs_exist_ok=True)
    commit_all(world.project)
    world.start()
    return Day(world, PATH=f"{program('mocha').parent}:{BIN}:{os.environ['PATH']}", CI="1")


def test_a_day_on_a_javascript_project(sprintf: Day) -> None:
    source = "src/sprintf.js"
    assert sprintf.state() == ("not_run", [], {})
    sprintf.shell("npm test")
    assert sprintf.state() == ("passing", [], {})

    # An edit, a failing run, then one of a part that passes.
    sprintf.edit(source, "(16).toUpperCase()", "(16).toLowerCase()")
    assert sprintf.state() == ("passing", [], {source: False})
    sprintf.shell("npm test")
    status, urgent, files = sprintf.state()
    assert (status, files) == ("failing", {source: False})
    assert urgent == ["1 test failing"]
    sprintf.shell("mocha test/test.js -g callbacks")
    assert sprintf.state()[:2] == ("failing", urgent)
    sprintf.shell("npm run no-such-script")
    assert sprintf.state()[:2] == ("failing", urgent), "a script that is not there fails no test"

    # Fixed by shell, and committed outside before anybody ran the tests again.
    sprintf.shell(f"sed -i 's/(16).toLowerCase()/(16).toUpperCase()/; $a // fixed' {source}")
    assert sprintf.state() == ("failing", urgent, {source: False})
    git(sprintf.project, "commit", "-qam", "from a terminal")
    assert sprintf.state() == ("failing", urgent, {})
    assert "ithout validation: 1 file" in sprintf.history()
    sprintf.shell("mocha test/test.js --reporter dot")
    assert sprintf.state() == ("passing", [], {})

    # On a branch of its own.
    sprintf.shell(
        "git checkout -q -b topic && sed -i 's/(16).toUpperCase()/(16).toLowerCase()/' src/sprintf.js; npm test"
    )
    assert (sprintf.state()[0], len(sprintf.state()[1])) == ("failing", 1)
    sprintf.shell("git stash -q; git checkout -q main 2>/dev/null || git checkout -q master")
    assert sprintf.state() == ("passing", [], {})
