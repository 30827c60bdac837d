"""Seed 003 in users' words, through the real hook, the real daemon and the real command line."""

import json
import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from holdfast import api, client
from holdfast.features.uat.folders import RunFolders
from holdfast.features.uat.scenarios import starter
from tests.features.uat.pictures import png
from tests.kit import Agent, World, hook_command, wait_until

ROOT = Path(__file__).parents[2]
SESSION = "claude-session-abc123def456"
NAVIGATE, FILL, CLICK = (f"mcp__playwright__playwright_{name}" for name in ("navigate", "fill", "click"))
SNAPSHOT, SHOT = "mcp__playwright__browser_snapshot", "mcp__playwright__browser_take_screenshot"
URL = "http://localhost:3000/auth/login"
WELCOME = "### Page\n- Page URL: http://localhost:3000/home\n- Page Title: Home\n### Snapshot\nWelcome Ada"


def text(said: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": said}]


@pytest.fixture
def agent(world: World, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """A session in a project that has the seed's scenario; this process is in that project too."""
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(world.project)
    places = RunFolders(world.project / "uat", str(world.project))
    for path, content in starter.initial_files(places, "login-flow", "http://localhost:3000"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    agent = world.session(SESSION)
    agent.start()
    wait_until(lambda: world.events(kinds=("uat.scenarios",)), "the scenario is known")
    return agent


def ordered(agent: Agent) -> Agent:
    agent.prompt("Please test the login flow scenario")
    agent.tool(NAVIGATE, text(json.dumps({"success": True, "url": URL, "statusCode": 200})), url=URL)
    return agent


def the_rest(agent: Agent, page: str = WELCOME) -> None:
    agent.tool(FILL, text("filled"), selector="#email", value="ada")
    agent.tool(CLICK, text("clicked"), selector="#go")
    agent.tool(SNAPSHOT, text(page))
    (agent.world.project / "shot.png").write_bytes(png(40, 20))
    agent.tool(SHOT, text("### Result\n- [Screenshot of viewport](./shot.png)"), filename="shot.png")


def the_file(world: World, session: str = SESSION) -> Path:
    return world.project / "uat" / "sessions" / f"claude-session-{session}.json"


def in_file(world: World) -> dict:
    try:
        return json.loads(the_file(world).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}


def latest() -> dict:
    """The run a list shows first."""
    runs = client.ask_view("uat.list")["runs"]
    return runs[0] if runs else {}


def script(world: World, text: str, *words: object) -> subprocess.Popen:
    """A hook script of somebody's own."""
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, words)],
        env=world.env, cwd=world.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.quick
def test_test_the_login_flow_and_afterwards_there_is_proof(world: World, agent: Agent) -> None:
    """S3-1 to S3-10: told in words, recorded by itself, every part in the seed's file."""
    told = agent.prompt("Please test the login flow scenario")["hookSpecificOutput"]["additionalContext"]
    assert "login-flow" in told
    begun = agent.before(NAVIGATE, "n", url=URL)
    assert "began (95 of 100)" in begun["systemMessage"]
    agent.after(NAVIGATE, "n", text(json.dumps({"success": True, "url": URL, "statusCode": 200})), url=URL)
    the_rest(agent)
    wait_until(lambda: in_file(world).get("artifacts", {}).get("reports"), "the report is in the file")
    found = in_file(world)
    seed = json.loads((ROOT / "tests" / "features" / "uat" / "seed_example.json").read_text())
    for part, fields in seed.items():
        assert set(fields) <= set(found[part]), part
    assert [set(s) for s in found["scenario"]["steps"]] == [set(seed["scenario"]["steps"][0])] * 5
    assert set(found["execution"]["toolCalls"][0]) == set(seed["execution"]["toolCalls"][0])
    assert set(found["artifacts"]["screenshots"][0]) == set(seed["artifacts"]["screenshots"][0])
    assert set(found["validation"]["healthChecks"][0]) == set(seed["validation"]["healthChecks"][0])
    assert found["session"]["claudeSessionId"] == SESSION
    assert found["session"]["status"] == "completed"
    assert found["scenario"]["completedSteps"] == 5
    assert found["performance"]["toolCallCount"] == 5
    assert found["context"]["detectionConfidence"] == 95
    assert found["validation"]["assertions"][0]["result"] == "passed"
    report = Path(found["artifacts"]["reports"][0]["path"]).read_text()
    assert "passed" in report
    assert Path(found["artifacts"]["screenshots"][0]["path"]).read_bytes() == png(40, 20)
    assert world.json("rebuild")["differences"] == []


def test_a_prompt_that_only_mentions_testing_records_nothing(world: World, agent: Agent) -> None:
    for words in ("write tests for the login flow", "how do I test the login flow?", "fix the login flow"):
        assert agent.prompt(words) == {}
        assert agent.tool(NAVIGATE, text("ok"), url=URL) == {}
    assert latest() == {}
    assert not (world.project / "uat" / "sessions").exists()


def test_a_run_cut_off_in_the_middle_is_still_there_whole(world: World, agent: Agent) -> None:
    """Kill -9 of daemon and agent: the log has it, the file comes back."""
    ordered(agent)
    wait_until(lambda: in_file(world).get("performance", {}).get("toolCallCount") == 1, "the file is written")
    agent.before(FILL, "cut", selector="#email")
    world.kill()
    agent.end("other")
    world.drained()
    wait_until(lambda: in_file(world).get("session", {}).get("status") == "completed", "the run has ended")
    found = in_file(world)
    assert [s["status"] for s in found["scenario"]["steps"][:3]] == ["completed", "in_progress", "pending"]
    assert found["context"]["outcome"] == "interrupted"
    assert [c["success"] for c in found["execution"]["toolCalls"]] == [True, False], "the cut-off call is there"


def test_stop_does_not_end_a_run_and_the_end_of_the_session_does(world: World, agent: Agent) -> None:
    """D11, C2."""
    ordered(agent)
    agent.stop()
    agent.stop()
    assert latest()["status"] == "active"
    agent.end()
    wait_until(lambda: latest()["reason"] == "session-ended", "the run has ended")


def test_the_agents_process_is_gone_and_so_is_its_run(world: World, agent: Agent) -> None:
    """Liveness, C2: no SessionEnd ever comes after kill -9; the sessions room sees that the process is gone."""
    program = script(world, AGENT_THAT_DIES, json.dumps(agent.common), hook_command()[0])
    wait_until(lambda: latest().get("status") == "active", "its run is going on")
    program.kill()
    program.wait()
    wait_until(lambda: latest()["reason"] == "process-gone", "the run has ended")


AGENT_THAT_DIES = """
import json, subprocess, sys, time
common, hook = json.loads(sys.argv[1]), sys.argv[2]
common["session_id"] = "s-that-dies"
def fire(event, mode="ask", **fields):
    body = json.dumps({"hook_event_name": event, **common, **fields}).encode()
    subprocess.run([hook, mode, "claude-code", event], input=body, check=True, capture_output=True)
fire("SessionStart", "start", source="startup")
fire("UserPromptSubmit", prompt="Please test the login flow scenario")
going = {"tool_name": "mcp__playwright__browser_navigate", "tool_input": {"url": "http://localhost:3000/login"}}
fire("PreToolUse", tool_use_id="n", **going)
time.sleep(600)
"""


def test_eight_hooks_that_update_at_once_lose_none(world: World, agent: Agent) -> None:
    """D9, P4: read-modify-write happens in the engine."""
    ordered(agent)
    hooks = [script(world, EIGHT, SESSION, me) for me in range(8)]
    ended = [(hook.communicate()[1], hook.returncode) for hook in hooks]
    assert ended == [("", 0)] * 8
    state = api.read_session_state(SESSION)
    assert state is not None
    assert len(state["context"]["custom"]) == 320
    assert state["performance"]["toolCallCount"] == 321
    assert len({call["id"] for call in state["execution"]["toolCalls"]}) == 321
    assert world.json("rebuild")["differences"] == []


EIGHT = """
import sys
from holdfast.api import add_tool_call, update_session_state
session, me = sys.argv[1:]
for n in range(40):
    assert update_session_state(session, {"context": {"custom": {f"{me}-{n}": n}}})
    assert add_tool_call(session, {"toolName": f"tool-{me}", "executionTime": n})
"""


def test_the_file_damaged_many_times_always_comes_back(world: World, agent: Agent) -> None:
    """S3-24, P7: by asking for it, and by the next thing that happens."""
    ordered(agent)
    assert api.recover_session_state(SESSION)
    path, dice = the_file(world), random.Random(200)
    whole = path.read_bytes()
    for n in range(60):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        path.write_bytes(damaged[: dice.randrange(len(damaged))] if n % 3 == 0 else damaged)
        if n % 50 == 49:
            path.unlink()
        assert api.recover_session_state(SESSION), n
        assert path.read_bytes() == whole, n
    path.write_bytes(whole[:100])
    assert not api.validate_session_state(SESSION)
    agent.tool(FILL, text("ok"), selector="#email")
    wait_until(lambda: in_file(world).get("performance", {}).get("toolCallCount") == 2, "the next call mends it too")


def test_the_seeds_functions_under_their_names(world: World, agent: Agent) -> None:
    """S3-11 to S3-25."""
    assert api.create_session_state("s9", "no-such-flow", "x", 80) is None
    state = api.create_session_state("s9", "login-flow", "test it", 80)
    assert state is not None
    assert (state["context"]["detectionConfidence"], state["context"]["autoInitialized"]) == (80, True)
    assert api.is_session_active("s9")
    assert not api.is_session_active("s-unknown")
    context = api.get_session_context("s9")
    assert context is not None
    assert (context["scenario"], context["currentStep"], context["totalSteps"]) == ("login-flow", 0, 5)
    assert api.update_scenario_progress("s9", 1, "in_progress")
    assert api.update_scenario_progress("s9", 1, "completed")
    assert not api.update_scenario_progress("s9", 99, "completed")
    assert not api.update_scenario_progress("s9", 2, "nearly")
    assert api.add_tool_call("s9", '{"toolName": "mine", "executionTime": 7}')
    assert api.set_hook_signal("s9", "ready", {"port": 1})
    assert (api.get_hook_signal("s9", "ready") or {})["data"] == {"port": 1}
    assert api.get_hook_signal("s9", "nothing") is None
    assert api.batch_update_session("s9", {"context": {"a": 1}}, '{"context": {"b": 2}}')
    assert not api.update_session_state("s9", "not json")
    assert api.write_session_state("s9", {**(api.read_session_state("s9") or {}), "mine": 3})
    assert api.cache_session("s9", {})
    state = api.get_cached_session("s9")
    assert state is not None
    assert (state["context"]["a"], state["context"]["b"], state["mine"]) == (1, 2, 3)
    assert (state["scenario"]["completedSteps"], state["performance"]["toolCallCount"]) == (1, 1)
    assert api.read_session_state("s-unknown") is None
    wait_until(lambda: api.validate_session_state("s9"), "the file is there")
    assert api.cleanup_session("s9")
    assert not api.is_session_active("s9")
    assert api.get_session_context("s9") is None
    assert api.cleanup_stale_sessions() == 0


def test_the_seeds_functions_from_a_shell(world: World, agent: Agent) -> None:
    ordered(agent)
    words = [sys.executable, "-m", "holdfast.api.uat"]
    run = partial(subprocess.run, env=world.env, cwd=world.project, capture_output=True, text=True, check=False)
    told = run([*words, "get_session_context", SESSION])
    assert json.loads(told.stdout)["scenario"] == "login-flow"
    assert told.stderr == "", "no warning of the interpreter"
    assert run([*words, "is_session_active", "s-unknown"]).returncode == 1
    absent = run([*words, "get_hook_signal", SESSION, "nothing"])
    assert (absent.stdout, absent.returncode) == ("null\n", 0)
    assert run([*words, "release_session_lock", "/nonexistent/x.lock"]).returncode == 0
    assert run([*words, "release_session_lock"]).returncode == 0


def test_a_lock_belongs_to_the_shell_that_asked_for_it(world: World, agent: Agent) -> None:
    """S3-11, S3-12."""
    ordered(agent)
    wait_until(lambda: the_file(world).exists(), "the file is there")
    door = f"{sys.executable} -m holdfast.api.uat"
    ran = subprocess.run(
        ["bash", "-c", f'lock=$({door} acquire_session_lock {SESSION}) && echo "$lock" && cat "$lock" && echo $$ && '
         f'{door} release_session_lock "$lock" && test ! -e "$lock" && echo released'],
        env=world.env, cwd=world.project, capture_output=True, text=True, check=False,
    )  # fmt: skip
    path, held, shell, released = ran.stdout.splitlines()
    assert path == str(the_file(world).with_suffix(".lock"))
    assert (held, released) == (shell, "released")


def test_locks_for_scripts_that_need_one(world: World, agent: Agent) -> None:
    """S3-11, S3-12, D9, O3-a."""
    ordered(agent)
    wait_until(lambda: the_file(world).exists(), "the file is there")
    lock = api.acquire_session_lock(SESSION)
    assert lock == str(the_file(world).with_suffix(".lock"))
    assert Path(lock).read_text().strip() == str(os.getpid())
    assert api.acquire_session_lock(SESSION, timeout=0.3) is None
    api.release_session_lock(lock)
    assert not Path(lock).exists()
    Path(lock).write_text("1\n")
    api.release_session_lock(lock)
    assert Path(lock).exists(), "another process's lock stays"
    os.utime(lock, (1, 1))
    assert api.acquire_session_lock(SESSION, timeout=1) == lock, "five minutes are enough"
    api.release_session_lock("/nonexistent/lock")
    gone = script(world, "pass")
    gone.wait()
    Path(lock).write_text(f"{gone.pid}\n")
    assert api.acquire_session_lock(SESSION, timeout=1) == lock, "a dead process holds no lock"


def test_every_door_of_the_command_line(world: World, agent: Agent) -> None:
    assert "Written:" in world.cli("uat", "init", "signup")
    (world.project / "uat" / "scenarios" / "bad.yaml").write_text("name: bad\nsteps:\n  - acton: click\n")
    assert "bad.yaml:3: steps.1.acton: is not known here" in world.cli("uat", "validate", code=1)
    assert "login-flow" in world.cli("uat", "list", "--scenarios")
    assert "there is no scenario 'nothing'" in world.cli("uat", "start", "nothing", "--session", "latest", code=1)
    unknown = world.cli("uat", "start", "login-flow", "--session", "ghost", code=1)
    assert "there is no session 'ghost'" in unknown
    assert "holdfast session list --all" in unknown
    assert "no session is known" in world.cli("uat", "start", "login-flow", code=1)
    one = world.json("uat", "start", "login-flow", "--session", "latest", "-m", "by hand")["id"]
    assert world.json("uat", "step", "1", "completed", "--run", one)["completed"] == 1
    world.cli("uat", "assert", "It is quick", "--fail", "--actual", "9 s", "--session", SESSION)
    world.cli("uat", "signal", "ready", '{"port": 3000}', "--session", SESSION)
    assert '"port":3000' in world.cli("uat", "signal", "ready", "--session", SESSION)
    assert "is over: failed" in world.cli("uat", "end", one)
    ordered(agent)
    the_rest(agent)
    two = latest()
    assert two["outcome"] == "passed"
    assert two["id"] in world.cli("uat", "list")
    assert "✓ 1. Navigate to login page" in world.cli("uat", "show", two["id"], "--calls")
    assert json.loads(world.cli("uat", "show", two["id"], "--raw"))["session"]["uatSessionId"] == two["id"]
    paths = [Path(r["path"]) for r in world.json("uat", "report", two["id"], "--format", "html,markdown,junit")]
    assert [p.suffix for p in paths if p.is_file()] == [".html", ".md", ".xml"]
    assert "<testsuites" in world.cli("uat", "report", two["id"], "-f", "junit", "-o", "-")
    assert "failed → passed" not in world.cli("uat", "compare", one, two["id"])
    (world.project / "junit.xml").write_text('<testsuite name="s"><testcase name="a"/></testsuite>')
    assert "passed: 1 passed" in world.cli("uat", "import", "junit.xml", "--name", "smoke")
    assert world.json("uat", "recover", two["id"])["now"] == "good"
    assert world.json("uat", "clean", "--days", "0", "--dry-run")["count"] > 0
    assert "there is no UAT run" in world.cli("uat", "show", "uat-nothing", code=1)


def test_a_result_of_50_mb_and_other_hostile_input(world: World, agent: Agent) -> None:
    """Issue 6, bad input: the run goes on, nothing is blocked."""
    ordered(agent)
    agent.tool(FILL, text("x" * (50 << 20)), selector="#email")
    agent.tool(CLICK, {"deep": [[[[[[[[[[1]]]]]]]]]]}, selector="\x00\ud800")
    agent.tool("mcp__playwright__browser_\x1b[31m" + "n" * 3000, None)
    agent.before(SNAPSHOT, "x")
    agent.fire("PostToolUse", tool_name=SNAPSHOT, tool_input="not an object", tool_use_id=7, tool_response=12)
    world.drained()
    wait_until(lambda: latest()["calls"] >= 3, "the large one was spooled and came")
    assert latest()["status"] == "active"
    assert api.recover_session_state(SESSION)
    assert the_file(world).stat().st_size < 200_000
    assert client.ask_daemon("status")["errors"] == {}


def test_two_sessions_of_one_project_do_not_meet(world: World, agent: Agent) -> None:
    other = world.session("s-other")
    other.start()
    for one in (agent, other):
        ordered(one)
    agent.tool(FILL, text("ok"), selector="#x")
    runs = {r["session"]: r for r in client.ask_view("uat.list")["runs"]}
    assert (runs[SESSION]["calls"], runs["s-other"]["calls"]) == (2, 1)
    wait_until(lambda: the_file(world).exists() and the_file(world, "s-other").exists(), "both files are there")
