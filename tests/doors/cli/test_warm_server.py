"""Commands through the warm CLI server look, end and are judged as if the process itself had run them."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from holdfast.doors.cli import warm_client
from holdfast.paths import default_state_dir
from tests.kit import BIN, World, wait_until

WARM = {"HOLDFAST_CLI_SERVER": "1"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("w"))
    agent = made.session("11111111-aaaa-4bbb-8ccc-000000000001")
    agent.start()
    agent.prompt("make it fast")
    made.cli("who", **WARM)
    wait_until(lambda: (made.paths.run / warm_client.server_name()).exists(), "the warm server listens")
    yield made
    made.close()


def run(world: World, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "holdfast", *words], env={**world.env, **WARM, **env}, cwd=world.project, capture_output=True, text=True,
        check=False, timeout=60, start_new_session=True,
    )  # fmt: skip


@pytest.mark.parametrize("words", ["gate list", "gate status", "session show nosuch", "gate nosuch", "cost"])
def test_says_the_same_as_without_it(world: World, words: str) -> None:
    warm, cold = run(world, *words.split()), run(world, *words.split(), HOLDFAST_CLI_SERVER="0")
    assert (warm.stdout, warm.stderr, warm.returncode) == (cold.stdout, cold.stderr, cold.returncode)


def test_the_daemon_sees_the_process_that_asked(world: World) -> None:
    """The environment of the command makes its caller an agent: what only a person may do is refused."""
    said = run(world, "gate", "pause", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="11111111-aaaa-4bbb-8ccc-000000000001")
    assert said.returncode == 1 and "has an agent's environment" in said.stderr


def test_the_command_itself_loads_nearly_nothing(world: World) -> None:
    code = (
        "import sys; sys.argv[1:] = ['who']\nfrom holdfast.doors.cli import main\n"
        "try: main()\nexcept SystemExit: print([m for m in ('typer', 'rich', 'msgspec', 'json') if m in sys.modules])"
    )
    done = subprocess.run(
        [BIN / "python", "-c", code],
        env={**world.env, **WARM},
        cwd=world.project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_interrupt_ends_the_command_and_its_fork(world: World) -> None:
    process = subprocess.Popen(
        [BIN / "holdfast", "event", "tail"], env={**world.env, **WARM}, cwd=world.project, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, b"")
    wait_until(lambda: len(_servers(world)) == 1, "the fork has ended")


def test_a_killed_command_leaves_no_fork(world: World) -> None:
    process = subprocess.Popen(
        [BIN / "holdfast", "event", "tail"], env={**world.env, **WARM}, cwd=world.project, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: len(_servers(world)) == 1, "the fork has ended")


def test_offers_ids_after_a_tab(world: World) -> None:
    said = run(
        world, _HOLDFAST_COMPLETE="complete_bash", COMP_WORDS="holdfast session show ", COMP_CWORD="3"
    ).stdout.split()
    assert said == ["11111111"]


def test_a_daemon_that_ends_takes_it_along(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        world.start()
        world.cli("who", **WARM)
        wait_until(lambda: (world.paths.run / warm_client.server_name()).exists(), "the warm server listens")
    finally:
        world.close()
    wait_until(lambda: not _servers(world), "the warm server has ended")


@pytest.mark.parametrize("env", [{}, {"XDG_STATE_HOME": "/x"}, {"HOLDFAST_STATE": "/y/z"}])
def test_finds_the_same_state_folder(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert warm_client.state_folder() == str(default_state_dir().absolute())


def _servers(world: World) -> list[int]:
    wanted = ["holdfast.doors.cli.warm_server", "--state", str(world.paths.state)]
    return [p.pid for p in psutil.process_iter(["cmdline"]) if (p.info["cmdline"] or [])[-3:] == wanted]
