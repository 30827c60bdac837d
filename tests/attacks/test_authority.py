"""What an agent tries through the real command line and the bare socket is refused, recorded and shown."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_the_bare_socket_refuses_what_is_a_persons(world: World) -> None:
    world.start()
    asked = [(op, {"op": op}) for op in OPERATIONS if op not in SPOKEN] + [("stop", {"op": "stop"})]
    for feature in FEATURES:
        for verb in feature.commands:
            name = f"{feature.name}.{verb}"
            asked.append((name, {"op": "command", "name": name, "args": {"id": "x"}}))
    file = world.root / "asked.json"
    file.write_text(json.dumps([request for _, request in asked]))
    answers = as_codex(world, sys.executable, "-c", ASKS, world.paths.run, file).splitlines()
    assert len(answers) == len(asked)
    refused = {name for (name, _), answer in zip(asked, answers, strict=True) if "is a person's to do" in answer}
    assert refused == {
        *("erase", "ingest", "stop", "gates.pause", "gates.accept", "team.join", "team.leave", "team.receive"),
        *("team.locate", "memory.pin", "memory.promote", "memory.keep", "memory.drop", "memory.forget"),
    }
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
