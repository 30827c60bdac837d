"""An agent nobody told us about, with a program on PATH that speaks for it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import World

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "outside"


@pytest.fixture
def world(tmp_path: Path):
    made = World(tmp_path, HOLDFAST_FEATURES="tests.sample_features.refusing", PYTHONPATH=str(ROOT))
    made.env["PATH"] = f"{EXAMPLE}:{made.env['PATH']}"
    made.start()
    yield made
    made.close()


def hook(world: World, event: str, payload: object, mode: str = "ask", name: str = "amp") -> dict:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.doors.external_agent", name, mode, event],
        input=body, capture_output=True, env=world.env, cwd=world.project, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout) if done.stdout else {}


def test_it_is_on_record_and_can_be_refused(world):
    assert "are refused" in hook(world, "thread-start", {"thread": "t1"}, "start")["hint"]
    call = {"thread": "t1", "id": "1", "tool": "run", "args": {"cmd": "rm forbidden"}}
    assert "is not allowed" in hook(world, "tool-before", call)["because"]
    seen = world.hooks_seen(kinds=("tool.started",))
    assert [(e.agent, e.session, e.data["action"], e.data["command"]) for e in seen] == [
        ("amp", "t1", "shell", "rm forbidden")
    ]


def test_the_same_call_twice_is_one_event(world):
    call = {"thread": "t1", "id": "1", "tool": "write", "args": {"file": "a.py"}}
    for _ in range(2):
        hook(world, "tool-before", call)
    (event,) = world.hooks_seen(kinds=("tool.started",))
    assert event.data["paths"] == [f"{world.project}/a.py"]


@pytest.mark.parametrize(("name", "payload"), [("amp", b"not json"), ("nobody", b'{"a": 1}'), ("../amp", b"{}")])
def test_whatever_goes_wrong_the_agent_is_not_held_up(world, name, payload):
    assert hook(world, "tool-before", payload, name=name) == {}
    assert {e.kind for e in world.hooks_seen()} <= {"unknown"}
