"""A daemon that cannot be reached: `when_unsure: deny` is refused by the hook alone, and a lost verdict is on record."""

import json
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from holdfast.daemon.ingest.frames import as_frame
from tests.kit import World, wait_until

RULES = """
requirements:
  planned: {type: blocking, manual: false, when_unsure: deny}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("unreachable"))
    folder = world.project / ".holdfast"
    folder.mkdir()
    (folder / "settings.yaml").write_text(RULES)
    yield world
    world.close()


@pytest.fixture
def session(world):
    world.reply("SessionStart", {"session_id": "s1", "cwd": str(world.project), "source": "startup"}, "start")
    wait_until((world.paths.state / "when-unsure").exists, "the answers for this case are written")
    return {"session_id": "s1", "cwd": str(world.project)}


def tool(name, **given):
    return {"tool_name": name, "tool_use_id": os.urandom(6).hex(), "tool_input": given}


@contextmanager
def stopped(world):
    os.kill(world.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(world.pid, signal.SIGCONT)


def lost(world):
    return world.events(kinds=("answer.undelivered",))


@pytest.mark.parametrize("python", [False, True], ids=["native", "python"])
def test_a_hook_alone_refuses_what_says_so_and_nothing_else(world, session, python):
    edit = tool("Edit", file_path=str(world.project / "a.py"), old_string='{"tool_name":"Read"}', new_string="b")
    before = len(lost(world))
    with stopped(world):
        asked = [
            (edit, {}),
            (tool("Read", file_path="a.py"), {}),
            ({**edit, "tool_use_id": "paused"}, {"HOLDFAST_PAUSE": "1"}),
        ]
        with ThreadPoolExecutor() as pool:
            ask = partial(world.reply, "PreToolUse", python=python)
            refused, read, paused = pool.map(lambda one: ask({**session, **one[0]}, env=one[1]), asked)
    refusal = refused["hookSpecificOutput"]
    assert (refusal["permissionDecision"], read, paused) == ("deny", {}, {})
    assert "planned" in refusal["permissionDecisionReason"]
    assert "holdfast daemon start" in refusal["permissionDecisionReason"]
    wait_until(lambda: len(lost(world)) > before, "what was not delivered is on record")
    assert "not delivered: " in world.cli("status")


def test_a_verdict_is_delivered_when_the_client_says_so(world, session):
    payload = {**session, **tool("Edit", file_path=str(world.project / "b.py"))}
    before = len(lost(world))
    assert world.reply("PreToolUse", payload)["hookSpecificOutput"]["permissionDecision"] == "deny"
    payload["session_id"] = "s2"  # hooks of one session come from one process
    ask(world, {**payload, "tool_use_id": "killed"}, confirm=False)
    wait_until(lambda: len(lost(world)) > before, "the verdict nobody wrote out is on record")
    [one] = lost(world)[before:]
    assert (one.data.verdict, one.data.call, one.data.instead) == ("deny", "killed", "")
    ask(world, {**payload, "tool_use_id": "written"}, confirm=True)
    assert len(lost(world)) == before + 1


def ask(world, payload, *, confirm):
    """A client that ends before, or after, it has written the answer out."""
    header = {"key": os.urandom(16).hex(), "mode": "ask", "agent": "claude-code", "event": "PreToolUse",
              "at": "1", "cwd": str(world.project), "state": str(world.paths.state), "confirms": "1"}  # fmt: skip
    before = os.open(".", os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as sock:
        os.chdir(world.paths.run)
        sock.connect("hook.sock")
        os.fchdir(before)
        sock.sendall(as_frame(header, json.dumps({"hook_event_name": "PreToolUse", **payload}).encode()))
        assert b"deny" in sock.recv(65536)
        if confirm:
            sock.sendall(b"+")
    os.close(before)


def test_the_answers_go_with_the_requirement(world, session):
    settings = world.project / ".holdfast" / "settings.yaml"
    world.reply("UserPromptSubmit", {**session, "prompt": "go on"})  # no call runs any more
    settings.write_text("requirements:\n  planned: {type: blocking, manual: false}\n")
    world.cli("gate", "accept", "--yes")
    wait_until(lambda: not (world.paths.state / "when-unsure").exists(), "no requirement asks for it any more")
