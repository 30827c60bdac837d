"""P9: a repository cannot run code through us before it is trusted, nor lead us out of itself."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.campaign.acks import fire, serving
from tests.kit import World, git, wait_until

TRAP = "import pathlib; pathlib.Path({mark!r}).touch()\n"


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """What exists if any of the repository's code ran."""
    return tmp_path / "it-ran"


def test_modules_of_our_names_in_the_working_directory_are_not_imported(world: World, mark: Path) -> None:
    """`python -m` looks into the working directory first, and people type our commands in repositories."""
    trap = TRAP.format(mark=str(mark))
    for name in ("holdfast", "apsw", "msgspec", "hook", "json", "holdfast/daemon", "sitecustomize", "usercustomize"):
        (world.project / name).mkdir(exist_ok=True)
        (world.project / name / "__init__.py").write_text(trap)
        (world.project / name / "__main__.py").write_text(trap)
    for words in (("daemon", "start"), ("status",), ("daemon", "restart"), ("doctor",), ("events", "list")):
        world.cli(*words, code=None)
    for python in (False, True):
        assert world.hook("Stop", {"session_id": "s"}, python=python).returncode == 0
    world.close()
    for python in (False, True):
        assert world.hook("Stop", {"session_id": "s"}, python=python).returncode == 0  # starts the daemon
    wait_until(lambda: world.pid > 0, "it started")
    assert not mark.exists()


def test_git_settings_and_hooks_of_a_repository_run_nothing(world: World, mark: Path) -> None:
    script = world.project / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    script.chmod(0o755)
    git(world.project, "init", "-q")
    config = world.project / ".git" / "config"
    names = ("fsmonitor", "sshCommand", "pager", "editor", "askPass", "hooksPath", "gitProxy")
    config.write_text(config.read_text() + "[core]\n" + "".join(f"\t{name} = {script}\n" for name in names))
    for hook in ("post-checkout", "pre-commit", "reference-transaction", "post-index-change"):
        shutil.copy(script, world.project / ".git" / "hooks" / hook)
    agent = world.session()
    agent.start()
    agent.tool("Bash", command="git status")
    agent.stop()
    for words in (("status",), ("doctor",), ("config", "show")):
        world.cli(*words, code=None)
    assert not mark.exists()


def test_settings_of_a_repository_set_no_store_no_command_and_no_pattern(world: World, mark: Path) -> None:
    place = world.project / ".holdfast"
    place.mkdir()
    elsewhere = world.root / "stolen.db"
    (place / "settings.yaml").write_text(
        f"store: {{url: 'sqlite:///{elsewhere}'}}\n"
        f"redact: {{enabled: false, keep: ['hunter2hunter2'], patterns: ['(a+)+$']}}\n"
        f"daemon: {{workers: 64, idle_exit_minutes: 1}}\n"
        f"x: !!python/object/apply:os.system ['touch {mark}']\n"
    )
    world.session().prompt("password=hunter2hunter2 " + "a" * 40)
    assert not mark.exists()
    assert not elsewhere.exists()
    shown = world.cli("config", "show", code=None)
    assert str(elsewhere) not in "".join(line for line in shown.splitlines() if "store" in line and "url" in line)
    assert "hunter2hunter2" not in json.dumps([e.data.as_dict() for e in world.events()])


def test_an_environment_file_or_path_of_a_repository_is_not_ours(world: World, mark: Path) -> None:
    """Programs of our names in the repository, with `.` in PATH."""
    for name in ("holdfast-daemon", "holdfast-hook", "git", "python", "python3", "sh", "echo"):
        program = world.project / name
        program.write_text(f"#!/bin/sh\n: > '{mark}'\n")
        program.chmod(0o755)
    assert fire(world, "one", "start") == 0
    assert world.hook("Stop", {"session_id": "s"}).returncode == 0
    assert not mark.exists()


def test_a_project_path_from_a_payload_leads_nowhere_else(world: World) -> None:
    """`cwd` is what the agent says: it is looked at, never executed, never written outside of what a room documents."""
    before = outside(world)
    serving(world)
    for cwd in (
        "/etc",
        "/proc/self",
        "../../../..",
        "/dev/zero",
        "x" * 5000,
        "/root/../etc/\x00",
        str(world.root / "no"),
    ):
        assert world.hook("Stop", {"session_id": "s", "cwd": cwd}).returncode == 0
    world.cli("daemon", "stop")
    assert outside(world) == before


def outside(world: World) -> list[str]:
    """All that is neither our state nor a file that a room documents."""
    documented = (world.paths.state, world.home / ".claude", world.project)
    return sorted(str(p) for p in world.root.rglob("*") if not any(p.is_relative_to(d) for d in documented))


def test_a_fifo_in_place_of_a_settings_file_does_not_hold_the_daemon(world: World) -> None:
    (world.project / ".holdfast").mkdir()
    os.mkfifo(world.project / ".holdfast" / "settings.yaml")
    assert set(world.session().start()) <= {"systemMessage"}
    assert stat.S_ISFIFO((world.project / ".holdfast" / "settings.yaml").stat().st_mode)
    assert world.hooks_seen()[0].kind == "session.started"


def test_pythonpath_of_the_agent_cannot_change_the_client(world: World, mark: Path) -> None:
    """An agent may run with anything in its environment: the client does not look at it (-I)."""
    (world.project / "hook.py").write_text(TRAP.format(mark=str(mark)))
    env = {"PYTHONPATH": str(world.project), "PYTHONSTARTUP": str(world.project / "hook.py")}
    serving(world)
    assert world.hook("Stop", {"session_id": "s"}, python=True, env=env).returncode == 0
    assert not mark.exists()
