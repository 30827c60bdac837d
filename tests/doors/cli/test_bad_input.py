"""A machine that is not as it should be: one clear sentence, the next command, and nothing half-done."""

import ast
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import client
from holdfast.doors.cli import root
from holdfast.setup.doctor import checks, readiness
from tests.kit import BIN, World

RUN = Path(__file__).parents[3] / "tools" / "run.py"


def test_without_home_nothing_is_done(world: World) -> None:
    said = world.cli("up", code=1, HOME="")
    assert said == "holdfast: HOME is not set, and agents' settings are found by it. Run: export HOME=~\n"


def test_a_home_that_cannot_be_written(world: World) -> None:
    """/proc takes no folder, from root neither."""
    said = world.cli("up", code=1, HOME="/proc", HOLDFAST_STATE="/proc/holdfast")
    assert said.count("\n") == 1
    assert "/proc/holdfast cannot be created" in said and "Set HOLDFAST_STATE" in said


def test_a_broken_settings_file_is_left_alone_and_up_fails(world: World) -> None:
    """Also what a narrow terminal without colours and without UTF-8 gets."""
    file = Path(world.env["HOME"]) / ".claude" / "settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{ broken")
    said = world.cli("up", "--no-self-test", code=1, TERM="dumb", LANG="C", LC_ALL="C", PYTHONUTF8="0", COLUMNS="40")
    assert file.read_text() == "{ broken"
    assert str(file) in said.replace("\n", "") and "Correct the file, then run: holdfast up" in " ".join(said.split())
    assert said.isascii()
    assert world.cli("who", TERM="dumb", LANG="C", LC_ALL="C", PYTHONUTF8="0", COLUMNS="40").isascii()


def test_a_machine_without_git_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert list(checks._check_git()) == []
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [finding.fix for finding in checks._check_git()] == ["install git, then: holdfast daemon restart"]
    assert readiness.next_commands([])[-1] == "install git, then: holdfast up"


def test_an_old_python_gets_as_far_as_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    ast.parse(RUN.read_text(), feature_version=(3, 7))
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    monkeypatch.setattr(sys, "version", "3.10.0 (main)")
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer, this is 3\.10\.0"):
        runpy.run_path(str(RUN), run_name="__main__")


@pytest.mark.parametrize(
    ("prefix", "stays"),
    [
        ("/home/ada/.cache/uv/archive-v0/oowkNuSM79DT", False),
        ("/scratch/cache/archive-v0/oowkNuSM79DT", False),
        ("/home/ada/.local/share/uv/tools/holdfast-agents", True),
    ],
)
def test_an_environment_in_a_cache_is_told_wherever_the_cache_is(
    monkeypatch: pytest.MonkeyPatch, prefix: str, stays: bool
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    assert (readiness.temporary_environment() == "") is stays


@pytest.fixture
def older_daemon(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """One that was there before this version was installed."""
    world.start()
    for name in ("HOME", "HOLDFAST_STATE"):
        monkeypatch.setenv(name, world.env[name])
    monkeypatch.setattr(client, "__version__", "9.9.9")
    return world


def shown_by(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setattr(sys, "argv", ["holdfast", *words])
    with pytest.raises(SystemExit) as ended:
        root.run_cli()
    assert ended.value.code == 1
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "failure", [KeyError("a field that came later"), client.Refused("there is no view 'project.tasks'")]
)
def test_what_an_older_daemon_cannot_answer_names_it(
    older_daemon: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failure: Exception
) -> None:
    def fail(*_words: str, **_args: object) -> None:
        raise failure

    monkeypatch.setattr(client, "ask_view", fail)
    said = shown_by(monkeypatch, capsys, "task", "list")
    assert said.endswith(", this command is 9.9.9. Run: holdfast daemon restart\n")
    assert said.count("\n") == 1
    assert [f.fix for f in checks._check_store()] == ["holdfast daemon restart"]


def test_a_mistake_of_ours_is_not_hidden(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.start()
    for name in ("HOME", "HOLDFAST_STATE"):
        monkeypatch.setenv(name, world.env[name])
    monkeypatch.setattr(client, "ask_view", lambda *_words, **_args: {})
    monkeypatch.setattr(sys, "argv", ["holdfast", "task", "list"])
    with pytest.raises(KeyError):
        root.run_cli()


def test_two_at_once_are_one_installation(world: World) -> None:
    settings = world.home / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('{"theme": "dark"}')
    command, pipe = [BIN / "holdfast", "up", "--no-self-test", "--json"], subprocess.PIPE
    streams = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe}
    both = [subprocess.Popen(command, env=world.env, cwd=world.project, **streams) for _ in range(2)]
    answers = [json.loads(one.communicate(timeout=120)[0])["data"] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert answers[0]["pid"] == answers[1]["pid"]
    hooks = json.loads(settings.read_text())["hooks"]
    assert {len(entries) for entries in hooks.values()} == {1}
    world.cli("uninstall")
    assert settings.read_text() == '{"theme": "dark"}'
