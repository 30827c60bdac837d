"""S4-2: the five endpoints of seed 004, with the seed's own line."""

import json
import subprocess

import httpx
import pytest

from holdfast.agents import AGENTS
from holdfast.agents.intake import Intake
from holdfast.core.decision import Delivery
from holdfast.core.git_context import CachedGitContext
from holdfast.doors.web import oak_payloads
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


ALIASES = {alias: agent.name for agent in AGENTS.values() for alias in agent.aliases}


@pytest.mark.parametrize("agent", [*(name for name, agent in AGENTS.items() if agent.hooks), *ALIASES, None])
@pytest.mark.parametrize("endpoint", sorted(oak_payloads.ENDPOINTS))
def test_every_agent_is_kept_as_it_is_named(agent: str | None, endpoint: str):
    """S4-1: the same lifecycle for every agent; none of them becomes another."""
    told = {"agent": agent, "session_id": "s", "prompt": "p", "tool_name": "Bash", "tool_input": {"command": "x"}}
    _, reader, event, payload = oak_payloads.as_hook(endpoint, told, "s", AGENTS)
    intake = Intake(AGENTS, CachedGitContext(), lambda body: (body, 0))
    read = intake.read(Delivery(key="k", agent=reader, event=event, body=json.dumps(payload).encode()))
    assert (read.kind, read.session) == (oak_payloads.ENDPOINTS[endpoint], "s")
    assert read.agent == ALIASES.get(agent or "claude", agent)


@pytest.mark.parametrize("agent", ["nobody", 7, "", "plain", ["claude"]])
def test_an_unknown_agent_is_refused_with_those_there_are(door: Door, agent: object):
    done = httpx.post(f"{door.url}/stop", json={"session_id": "s", "agent": agent}, trust_env=False)
    assert (done.status_code, done.json()["status"]) == (422, "error")
    assert "claude-code, codex" in done.json()["error"]
    assert door.world.hooks_seen() == []


def test_a_tool_of_another_agent_means_the_same(door: Door):
    told = {"agent": "gemini", "session_id": "g", "tool_name": "run_shell_command", "tool_input": {"command": "make"},
            "tool_output": {"stdout": "built"}}  # fmt: skip
    httpx.post(f"{door.url}/post-tool-use", json=told, trust_env=False).raise_for_status()
    (event,) = door.world.hooks_seen()
    assert (event.agent, event.tool, event.data.action) == ("gemini", "run_shell_command", "shell")
    assert (event.data.command, event.data.output) == ("make", "built")


def test_a_request_that_names_no_agent_belongs_to_the_sessions_own(door: Door):
    """The seed's scripts name the agent when a session starts, and no more; another agent with that id is kept apart."""
    for body in ({"agent": "gemini-cli"}, {}, {"agent": "codex"}):
        httpx.post(f"{door.url}/stop", json={"session_id": "one", **body}, trust_env=False).raise_for_status()
    found = sorted((e.session, e.agent) for e in door.world.hooks_seen())
    assert found == [("one", "gemini"), ("one", "gemini"), ("one~codex", "codex")]
