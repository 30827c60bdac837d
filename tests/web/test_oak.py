"""S4-2: the five endpoints of seed 004, with the seed's own line."""

import json
import subprocess

import httpx
import pytest

from holdfast.agents import AGENTS
from holdfast.web import oak
from tests.kit import needs

from .conftest import Door

LINE = """echo '{"session_id":"test-123","agent":"claude"}' | curl -s -X POST \
http://localhost:PORT/api/oak/ci/session-end -H 'Content-Type: application/json' -d @-"""


@pytest.mark.skipif(bool(needs("curl")), reason=needs("curl"))
def test_the_seeds_own_line(door: Door):
    """S4-20: "Manually test SessionEnd", as it is written there."""
    env = {"PATH": door.world.env["PATH"], "NO_PROXY": "*"}
    line = LINE.replace("PORT", str(door.port))
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=env, check=True)
    assert json.loads(done.stdout) == {"status": "ok", "session_id": "test-123", "context": "", "reply": {}}
    (event,) = door.world.hooks_seen()
    assert (event.kind, event.session, event.agent) == ("session.ended", "test-123", "claude-code")
    assert door.world.view("sessions.show", id="test-123")["state"] == "ended"


def test_a_session_over_http(door: Door):
    """S4-3 to S4-7, S4-16: without an id one is made, and it is told."""
    with httpx.Client(trust_env=False) as client:
        post = lambda path, **body: client.post(f"{door.url}/{path}", json=body)  # noqa: E731
        here = {"agent": "claude", "source": "startup", "cwd": str(door.world.project)}
        session = post("session-start", **here).json()["session_id"]
        assert len(session) == 36
        assert post("prompt-submit", session_id=session, prompt="Fix it").json()["status"] == "ok"
        post("post-tool-use", session_id=session, tool_name="Bash", tool_input={"command": "make"},
             tool_output={"stdout": "ok"}, tool_use_id="c1")  # fmt: skip
        post("stop", session_id=session, response_summary="Fixed.")
        told = post("session-start", **here).json()
        assert "Fix it" in told["context"]
    shown = door.world.view("sessions.show", id=session)
    assert (shown["title"], shown["tools"], shown["state"], shown["process"]) == ("Fix it", 1, "waiting", None)
    assert shown["turns"][0]["answer"] == "Fixed."


def test_a_repeated_request_is_one_event(door: Door):
    """P3."""
    for _ in range(3):
        httpx.post(
            f"{door.url}/stop", json={"session_id": "s"}, headers={"Idempotency-Key": "once"}, trust_env=False
        ).raise_for_status()
    assert len(door.world.hooks_seen()) == 1


def test_what_is_not_recorded_is_said(door: Door):
    """P2: 200 means durable; without the daemon there is no 200."""
    door.world.kill()
    done = httpx.post(f"{door.url}/stop", json={"session_id": "s"}, trust_env=False)
    assert (done.status_code, done.json()["status"]) == (503, "error")
    door.world.start()
    assert httpx.post(f"{door.url}/stop", json={"session_id": "s"}, trust_env=False).status_code == 200


@pytest.mark.parametrize("agent", ["claude", "gemini", "cursor", "codex", "copilot", "qwen-code", "nobody", None, 7])
@pytest.mark.parametrize("endpoint", sorted(oak.ENDPOINTS))
def test_every_agent_reads_what_is_made_for_it(agent, endpoint: str):
    """S4-1: the same lifecycle for every agent."""
    from holdfast.core.decision import Delivery

    told = {"agent": agent, "session_id": "s", "prompt": "p", "tool_name": "Bash", "tool_input": {"command": "x"}}
    _, named, event, payload = oak.as_hook(endpoint, told, "s", AGENTS, "2026-01-01T00:00:00.000Z")
    read = AGENTS[named].read(Delivery(key="k", agent=named, event=event), payload)
    assert (read.kind, read.session) == (oak.ENDPOINTS[endpoint], "s")
