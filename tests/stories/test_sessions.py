"""Seed 004 as its users live it: real hooks, a real daemon, the real command line."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.campaign.agent_deaths import FakeAgent
from tests.kit import World, needs, wait_until


@pytest.fixture
def agents(world: World) -> Iterator[Any]:
    made: list[FakeAgent] = []

    def start(session: str, **kw: Any) -> FakeAgent:
        made.append(FakeAgent(world, session, **kw))
        return made[-1]

    yield start
    for agent in made:
        agent.kill()


def of(world: World, session: str) -> dict[str, Any]:
    return world.view("sessions.show", id=session)


def all_sessions(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.view("sessions.list", all=True, limit=200)["sessions"]
    return found


def states(world: World) -> dict[str, str]:
    return {row["id"]: row["state"] for row in world.view("sessions.who")["sessions"]}


def unchanged_by_replay(world: World) -> None:
    told = world.json("rebuild")
    assert told["differences"] == []


@pytest.mark.quick
def test_a_day_with_one_session(world: World) -> None:
    """S4-3 to S4-7, S4-9: start, prompt, tools, stop, exit; every step can be looked at."""
    ada = world.session("a1b2c3d4-0001")
    ada.start()
    assert states(world) == {ada.id: "idle"}
    ada.prompt("Fix the login bug")
    ada.before("Bash", "c1", command="pytest -q")
    assert "Bash: pytest -q" in world.cli("who")
    ada.after("Bash", "c1", command="pytest -q")
    ada.tool("Edit", file_path=str(world.project / "auth.py"), old_string="a", new_string="b")
    ada.stop("The login works again.")
    assert "has finished its turn: The login works again." in world.cli("who")
    ada.end()
    assert states(world) == {}
    wait_until(lambda: world.events(kinds=("session.summarised",)), "the summary is written")
    shown = of(world, "a1b2")
    assert (shown["status"], shown["reason"], shown["title"]) == ("completed", "exit", "Fix the login bug")
    assert shown["summary"]["files"] == [str(world.project / "auth.py")]
    assert [c["command"] for c in shown["summary"]["tests"]] == ["pytest -q"]
    assert [(t["prompt"], t["tools"], t["how"]) for t in shown["turns"]] == [("Fix the login bug", 2, "stopped")]
    text = world.cli("sessions", "timeline", "a1b2")
    assert "turn 1" in text and text.count("pytest -q") == 1
    unchanged_by_replay(world)


def test_who_shows_a_session_whose_hook_was_spooled(world: World) -> None:
    """The daemon was too slow to answer; the first look after it shows the session all the same."""
    world.start()
    os.kill(world.pid, signal.SIGSTOP)
    try:
        ada = world.session("a1b2c3d4-0002")
        ada.start()
    finally:
        os.kill(world.pid, signal.SIGCONT)
    assert states(world) == {ada.id: "idle"}


def test_two_at_once_and_which_needs_me(world: World) -> None:
    """S4-15: starting one closes no other."""
    left, right = world.session("left-1"), world.session("right-2")
    left.start()
    left.prompt("Port it to Windows")
    told = right.start()
    assert "Port it to Windows" in told["hookSpecificOutput"]["additionalContext"]
    right.prompt("Write the changelog")
    left.fire("PermissionRequest", tool_name="Bash", tool_input={"command": "git push --force"})
    who = world.view("sessions.who")
    assert [(r["id"], r["state"]) for r in who["sessions"]] == [("left-1", "waiting"), ("right-2", "working")]
    assert who["sessions"][0]["needs"]["text"] == "Bash: git push --force"
    assert "1 waits for you" in world.cli("who")


def test_killed_with_9_it_is_gone_within_ten_seconds(world: World, agents: Any) -> None:
    """S4-8, decision 10: no hook fires, and nothing is guessed by a timeout."""
    dies, lives = agents("dies-1"), agents("lives-2", shell=True)
    for agent in (dies, lives):
        agent.fire("SessionStart", "start", source="startup")
        agent.fire("UserPromptSubmit", prompt="work")
    assert (of(world, "dies-1")["pid"], of(world, "lives-2")["pid"]) == (dies.process.pid, lives.process.pid)
    dies.kill()
    died = time.time() * 1000
    wait_until(lambda: states(world) == {"lives-2": "working"}, "the dead one is noticed")
    assert world.events(kinds=("session.lost",))[0].at - died < 10_000
    gone = of(world, "dies")
    assert (gone["reason"], gone["turns"][0]["how"]) == ("process-gone", "lost")
    wait_until(lambda: world.events(kinds=("session.summarised",)), "also without SessionEnd there is a summary")
    assert of(world, "dies")["summary"]["open"] == ["the last prompt was not finished: work"]
    unchanged_by_replay(world)


def test_agents_killed_right_after_their_first_hook_are_gone_within_ten_seconds(world: World, agents: Any) -> None:
    """Issue 17, point 7: the process is known before the first answer leaves, so it does not matter how soon it dies."""
    world.start()
    made = [agents(f"short-{n}", shell=n % 2 == 1) for n in range(16)]
    for n, agent in enumerate(made):
        agent.fire_and_die("SessionStart" if n % 3 else "UserPromptSubmit", after_ms=n * 13)
    killed = time.time() * 1000
    names = {agent.session for agent in made}
    wait_until(lambda: names <= {row["id"] for row in all_sessions(world)}, "every first hook is in the log")
    wait_until(lambda: not states(world), "nobody is left working", patience=20)
    assert {row["reason"] for row in all_sessions(world)} == {"process-gone"}
    assert max(event.at for event in world.events(kinds=("session.lost",))) - killed < 10_000


def test_what_died_while_the_daemon_was_down_is_noticed_when_it_is_back(world: World, agents: Any) -> None:
    """Pain: closed terminals and reboots leave nothing dangling."""
    agent = agents("night-1")
    agent.fire("SessionStart", "start", source="startup")
    assert of(world, "night-1")["pid"] == agent.process.pid
    world.kill(signal.SIGTERM)
    agent.kill()
    world.start()
    wait_until(lambda: of(world, "night-1")["reason"] == "process-gone", "noticed")


@pytest.mark.quick
def test_the_daemon_dies_in_the_middle_and_nothing_is_lost(world: World) -> None:
    """S4-18, known issue "state synchronisation": there is one state, and it is in the log."""
    ada = world.session("mid-1")
    ada.start()
    ada.prompt("one")
    ada.tool("Bash", command="true")
    world.kill()
    ada.tool("Bash", command="false")
    world.kill()
    ada.stop("done")
    world.drained()
    shown = of(world, "mid-1")
    assert (shown["tools"], shown["turns"][0]["tools"], shown["state"]) == (2, 2, "waiting")
    commands = [e["text"] for e in world.view("sessions.timeline", id="mid-1")["entries"] if e["tool"]]
    assert commands == ["true", "false"]
    unchanged_by_replay(world)


def test_installed_in_the_middle_of_a_session(world: World) -> None:
    """S4-13, S4-16: an unknown session is taken in, its activities get a turn."""
    ada = world.session("late-1")
    ada.tool("Bash", command="make")
    wait_until(lambda: world.events(kinds=("turn.adopted",)), "the orphans are adopted")
    ada.stop("made")
    ada.prompt("and now?")
    turns = of(world, "late-1")["turns"]
    assert [(t["n"], t["origin"], t["tools"]) for t in turns] == [(1, "recovery", 1), (2, "person", 0)]


def test_resume_clear_and_compact(world: World) -> None:
    """C1: the id decides identity, the source what is injected; a clear has a parent."""
    ada = world.session("first-1")
    ada.start()
    ada.prompt("Refactor the store")
    assert "Refactor the store" in json.dumps(ada.start("compact"))
    ada.stop()
    ada.end("clear")
    world.session("second-2").start("clear")
    wait_until(lambda: of(world, "second-2")["parent"] == "first-1", "the clear is linked")
    assert (of(world, "second-2")["parent_reason"], of(world, "first-1")["children"]) == ("clear", ["second-2"])
    assert ada.start("resume") == {}
    shown = of(world, "first-1")
    assert (shown["status"], shown["restarts"], shown["turn"]["n"]) == ("active", 1, 1)


def test_starts_and_ends_are_lines_in_the_daemons_log(world: World) -> None:
    """S4-20: "grep lifecycle lines in daemon.log"."""
    ada, bob = world.session("logged-1"), world.session("logged-2")
    for agent in (ada, bob):
        agent.start()
    ada.end()
    world.cli("sessions", "close", "logged-2")
    lines = [json.loads(line) for line in world.paths.log_file.read_text().splitlines()]
    told = [(line["event"], line["session"]) for line in lines if line["event"].startswith("session.")]
    assert told == [
        ("session.started", "logged-1"), ("session.started", "logged-2"),
        ("session.ended", "logged-1"), ("session.closed", "logged-2"),
    ]  # fmt: skip


def test_close_reopen_recover(world: World) -> None:
    """S4-20: force-close is a command."""
    ada = world.session("close-me-1")
    ada.start()
    assert "Closed: close-me-1" in world.cli("sessions", "close", "close")
    assert "ended already" in world.cli("sessions", "close", "close-me-1")
    assert of(world, "close-me-1")["reason"] == "closed-by-user"
    assert "Open again" in world.cli("sessions", "reopen", "close-me-1")
    assert "stale    0 sessions" in world.cli("sessions", "recover")
    assert "unknown recovery job" in world.cli("sessions", "recover", "nonsense", code=1)
    assert "no session 'zzz'" in world.cli("sessions", "close", "zzz", code=1)


def test_exports(world: World) -> None:
    ada = world.session("export-1")
    ada.start()
    ada.prompt("Say <b>hello</b>")
    ada.tool("Bash", command="echo hello")
    ada.stop("hello")
    page = world.root / "page.html"
    assert "Written" in world.cli("sessions", "export", "export-1", "--format", "html", "-o", str(page))
    assert "Say &lt;b&gt;hello&lt;/b&gt;" in page.read_text()
    assert "# Say" in world.cli("sessions", "export", "export-1")
    lines = world.cli("sessions", "export", "export-1", "-f", "jsonl").splitlines()
    assert [json.loads(line)["type"] for line in lines[:2]] == ["session", "event"]
    assert world.json("sessions", "export", "export-1")["text"].startswith("# Say")


BAD_IDS: dict[str, Any] = {
    "missing": "(left out)",
    "null": None,
    "number": 7,
    "list": ["x"],
    "ten kilobytes": "k" * 10_240,
    "control characters": "a\x00b\x1b[31m\n",
    "path": "../../etc/passwd",
    "sql": "'; drop table events; --",
    "half a surrogate": "\ud800",
    "empty": "",
}


def test_bad_ids_are_kept_and_hold_up_nobody(world: World) -> None:
    """Bad input: kept as events, never a crash, never a held-up agent."""
    world.start()
    for name, bad in BAD_IDS.items():
        payload = {"cwd": str(world.project), "source": "startup", "transcript_path": "/x"}
        if name != "missing":
            payload["session_id"] = bad
        for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"):
            fields = {"prompt": "p", "tool_name": "Bash", "tool_input": {"command": "x"}, "tool_use_id": f"{name}-1"}
            done = world.hook(event, {**payload, **fields}, env={"CLAUDECODE": "1"})
            assert (done.returncode, done.stderr) == (0, b""), (name, event)
    world.drained()
    assert len([e for e in world.hooks_seen() if e.kind != "decision.made"]) == 6 * len(BAD_IDS)
    rows = world.view("sessions.list", all=True)["sessions"]
    assert all(row["status"] == "completed" for row in rows)
    assert "\x1b" not in world.cli("sessions", "list", "--all")
    assert world.json("status")["errors"] == {}
    unchanged_by_replay(world)


def test_hooks_in_a_wild_order(world: World) -> None:
    """Stop before its prompt, the end of a tool before its start, SessionEnd twice, then a prompt after all."""
    ada = world.session("wild-1")
    ada.stop(prompt_id="p1")
    ada.after("Bash", "c1", command="x")
    ada.before("Bash", "c1", command="x")
    ada.end()
    ada.end()
    ada.prompt("hello", prompt_id="p1")
    ada.start("whatever")
    shown = of(world, "wild-1")
    assert (shown["status"], shown["tools"], shown["running"]) == ("active", 1, {})
    unchanged_by_replay(world)


@pytest.mark.skipif(bool(needs("sqlite3")), reason=needs("sqlite3"))
def test_the_seeds_queries_run_on_our_database(world: World) -> None:
    """S4-20: with the system's own sqlite3."""
    ada, ben = world.session("sql-1"), world.session("sql-2")
    for agent in (ada, ben):
        agent.start()
        agent.prompt(f"I am {agent.id}")
        agent.tool("Bash", command="make")
    ada.stop("ok")
    ada.end()
    wait_until(lambda: world.events(kinds=("session.summarised",)), "the summary is written")
    seeds = "SELECT id, status, started_at, ended_at FROM sessions ORDER BY started_at DESC LIMIT 5;"
    rows = {row[0]: row[1:] for row in query(world, seeds)}
    assert set(rows) == {"sql-1", "sql-2"}
    assert (rows["sql-1"][0], rows["sql-2"][0], rows["sql-2"][2]) == ("completed", "active", "")
    assert query(world, "select session_id, prompt_number, status, activity_count from prompt_batches order by 1") == [
        ["sql-1", "1", "completed", "1"], ["sql-2", "1", "active", "1"],
    ]  # fmt: skip
    assert query(world, "select user_prompt, source_type from prompt_batches where session_id = 'sql-1'") == [
        ["I am sql-1", "user"]
    ]
    tools = query(world, "select a.session_id, tool_name, success, b.prompt_number from activities a "
                         "join prompt_batches b on b.id = a.prompt_batch_id order by 1")  # fmt: skip
    assert tools == [["sql-1", "Bash", "1", "1"], ["sql-2", "Bash", "1", "1"]]
    force_close = "UPDATE sessions SET status='completed' WHERE id='sql-2';"
    done = subprocess.run(["sqlite3", world.paths.database, force_close], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "holdfast sessions close ID" in done.stderr


def query(world: World, sql: str) -> list[list[str]]:
    program = shutil.which("sqlite3") or ""
    url = f"file:{Path(world.paths.database)}?mode=ro"
    done = subprocess.run([program, "-separator", "\t", url, sql], capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_everything_has_json_and_a_schema(world: World) -> None:
    ada = world.session("json-1")
    ada.start()
    for words in (
        ("who",), ("sessions", "list"), ("sessions", "list", "--all", "--here"), ("sessions", "show"),
        ("sessions", "timeline"), ("sessions", "recover"), ("sessions", "close", "json-1"),
        ("sessions", "reopen", "json-1"),
    ):  # fmt: skip
        told = json.loads(world.cli(*words, "--json"))
        assert told["schema"] == 1 and "data" in told


def test_a_hook_without_a_session_id_gets_one(world: World) -> None:
    """S4-16: "no id -> new UUID", the same for all hooks of the agent."""
    world.start()
    for event, fields in (("SessionStart", {"source": "startup"}), ("UserPromptSubmit", {"prompt": "work"})):
        payload = {"transcript_path": "/t.jsonl", "cwd": str(world.project), **fields}
        assert world.reply(event, payload, "ask", env={"CLAUDECODE": "1"}) is not None
    wait_until(lambda: len(all_sessions(world)) == 1, "there is a session")
    (row,) = all_sessions(world)
    assert (row["prompts"], len(row["id"]), row["agent"]) == (1, 36, "claude-code")


def test_events_of_a_session_are_found_by_the_beginning_of_its_id(world: World) -> None:
    ada, bob = world.session("aaaa1111-0001"), world.session("bbbb2222-0002")
    for agent in (ada, bob):
        agent.start()
    assert [e["session"] for e in world.json("events", "list", "--session", "aaaa")["events"]][:1] == [ada.id]
    assert "session.started" in world.cli("events", "list", "--session", "bbbb2222")
    assert "No events of kind tool.failed in session aaaa1111-0001." in world.cli(
        "events", "list", "--session", "aaaa", "--kind", "tool.failed"
    )
    assert "there is no session 'zzzz'" in world.cli("events", "list", "--session", "zzzz", code=None)
    assert "Put the hooks in" not in world.cli("events", "list", "--kind", "tool.failed")
