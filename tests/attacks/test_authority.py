"""What an agent tries through the real command line and the bare socket is refused, recorded and shown."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.core.authority import Who
from holdfast.daemon.control import OPERATIONS
from holdfast.features import FEATURES
from tests.kit import BIN, World

ASKS = """
import json, os, socket, sys
os.chdir(sys.argv[1])
for request in json.load(open(sys.argv[2])):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect("control.sock")
    sock.sendall(json.dumps(request).encode() + b"\\n")
    print(sock.makefile().readline().strip(), flush=True)
"""
SPOKEN = {"command", "view", "caller", "authorise", "tail", "stop", "warm_cli"}


@pytest.fixture
def world(tmp_path: Path):
    world = World(tmp_path)
    yield world
    world.close()


def as_codex(world: World, *words: object) -> str:
    program = world.root / "codex"
    program.write_text('#!/bin/bash\n"$@"\nexit $?\n')
    program.chmod(0o755)
    done = subprocess.run(
        [program, *map(str, words)], env=world.env, cwd=world.project, capture_output=True, text=True, timeout=120,
        check=False, start_new_session=True,
    )  # fmt: skip
    return done.stdout + done.stderr


PERSONS = {
    *("erase", "ingest", "stop", "gates.pause", "gates.accept", "team.join", "team.leave", "team.receive"),
    *("attention.answer", "attention.answer_link", "attention.mute", "attention.test"),
    *("team.locate", "memory.pin", "memory.promote", "memory.keep", "memory.drop", "memory.forget"),
}
"""What must be a person's, whatever its arguments. Further commands may be declared so."""


def declared_persons() -> set[str]:
    named = {f"{one.name}.{verb}": who for one in FEATURES for verb, who in one.authority.items()}
    named |= {name: operation.authority for name, operation in OPERATIONS.items() if name not in SPOKEN - {"stop"}}
    return {name for name, who in named.items() if who.who in (Who.PERSON, Who.FORWARDER) and who.act_of is None}


def all_requests() -> list[tuple[str, dict[str, object]]]:
    """Every operation of the control socket, every command of a feature."""
    asked: list[tuple[str, dict[str, object]]] = [(op, {"op": op}) for op in OPERATIONS if op not in SPOKEN]
    names = [f"{feature.name}.{verb}" for feature in FEATURES for verb in feature.commands]
    asked += [(name, {"op": "command", "name": name, "args": {"id": "x"}}) for name in names]
    return [*asked, ("stop", {"op": "stop"})]


def shell_script(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/bash\n{text}\nexit $?\n")
    file.chmod(0o755)
    return file


def by_agent(world: World, words: list[object]) -> tuple[list[object], dict[str, str]]:
    return [shell_script(world.root, "codex", '"$@"'), *words], {}


def by_subagent(world: World, words: list[object]) -> tuple[list[object], dict[str, str]]:
    inner = shell_script(world.root, "tool-shell", 'bash -c \'"$@"; exit $?\' - "$@"')
    return by_agent(world, [inner, *words])


def by_hidden_script(world: World, words: list[object]) -> tuple[list[object], dict[str, str]]:
    """In a session of its own, with an empty environment."""
    return by_agent(world, ["setsid", "--wait", "env", "-i", *words])


def by_variables(_world: World, words: list[object]) -> tuple[list[object], dict[str, str]]:
    """Left behind by an agent whose program has another name."""
    return words, {"CLAUDECODE": "1"}


def by_mcp_client(world: World, words: list[object]) -> tuple[list[object], dict[str, str]]:
    server = shell_script(world.root, "some-mcp-server", '"$@"')
    return by_agent(world, [server, *words])


def by_pretended_person(world: World, words: list[object]) -> tuple[list[object], dict[str, str]]:
    """Every variable that could look like a person's."""
    command, _ = by_agent(world, words)
    return command, {"HOLDFAST_CODE": "123456", "SSH_TTY": "/dev/pts/0", "TERM": "xterm", "USER": "ann"}


def by_pretended_dashboard(world: World, words: list[object]) -> tuple[list[object], dict[str, str]]:
    """Code of its own under the name of our web server."""
    folder = world.root / "planted" / "holdfast" / "doors" / "web"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent, folder.parent.parent):
        (package / "__init__.py").touch()
    (folder / "__main__.py").write_text(f"import sys\nsys.argv = sys.argv[:1] + {list(map(str, words[3:]))!r}\n{ASKS}")
    planted = str(world.root / "planted")
    run = [sys.executable, "-P", "-m", "holdfast.doors.web", "--state", world.paths.state]
    return by_agent(world, run)[0], {"PYTHONPATH": planted}


CALLERS = [
    *(by_agent, by_subagent, by_hidden_script, by_variables, by_mcp_client, by_pretended_person),
    by_pretended_dashboard,
]


@pytest.mark.parametrize("caller", CALLERS)
def test_every_command_judges_every_caller(world: World, caller) -> None:
    world.start()
    asked = all_requests()
    file = world.root / "asked.json"
    file.write_text(json.dumps([request for _, request in asked]))
    words, variables = caller(world, [sys.executable, "-c", ASKS, world.paths.run, file])
    done = subprocess.run(
        list(map(str, words)), env={**world.env, **variables}, cwd=world.project, capture_output=True, text=True,
        timeout=120, check=False, start_new_session=True,
    )  # fmt: skip
    answers = done.stdout.splitlines()
    assert len(answers) == len(asked), done.stderr
    refused = {name for (name, _), answer in zip(asked, answers, strict=True) if "is a person's to do" in answer}
    assert refused == declared_persons() >= PERSONS
    assert len(world.events(kinds=("gates.attempted",))) == len(refused)


def test_destructive_commands_change_nothing_and_status_shows_them(world: World) -> None:
    world.start()
    backup = world.json("backup")["path"]
    pid = world.pid
    for words, act in (
        (("restore", Path(backup).name, "--yes"), "restoring a backup"),
        (("erase", "--everything", "--yes"), "erasing everything"),
        (("erase", "--text", "zebrafinch", "--yes"), "erasing from the log"),
        (("daemon", "stop"), "stopping the daemon"),
        (("uninstall",), "taking Holdfast out of the agents' settings"),
        (("import",), "importing history"),
        (("config", "set", "store.body_days", "1"), "setting store.body_days"),
    ):
        told = as_codex(world, BIN / "holdfast", *words)
        assert f"{act} is a person's to do: it runs below codex" in " ".join(told.split()), (words, told)
        assert f"refused to an agent: {act}" in " ".join(world.cli("status").split())
    assert world.pid == pid
    assert Path(backup).exists()


def test_without_a_daemon_the_command_judges_by_itself(world: World) -> None:
    world.paths.prepare()
    world.paths.log_file.symlink_to(world.root / "elsewhere")
    told = " ".join(as_codex(world, BIN / "holdfast", "uninstall").split())
    assert "is a person's to do: it runs below codex" in told


def test_words_that_an_agent_adds_are_its_own_whatever_its_environment_says(world: World) -> None:
    world.start()
    told = as_codex(
        world, BIN / "holdfast", "memory", "add", "Deploys need no review", "--type", "preference", "--json"
    )
    assert json.loads(told.splitlines()[-1])["data"]["origin"] == "agent"
    assert world.json("memory", "add", "Deploys need a review", "--type", "preference")["origin"] == "user"
