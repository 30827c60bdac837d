"""Agents that are killed 0 to 200 ms after their first hook began or was answered: none stays "working"."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.agents import build
from tests.kit import World, hook_command, wait_until

FULL = 100
LATEST_MS = 200
NOTICED_MS = 10_000


def run(folder: Path, size: int) -> str:
    world, chance = World(folder), random.Random(size)
    agents: list[FakeAgent] = []
    try:
        world.start()
        agents += [FakeAgent(world, f"short-{n}", shell=n % 2 == 1) for n in range(size)]
        for n, agent in enumerate(agents):
            die = agent.fire_and_die_waiting if n % 4 == 3 else agent.fire_and_die
            die("SessionStart" if n % 3 else "UserPromptSubmit", chance.randrange(LATEST_MS + 1))
        return judge(world, {agent.session: agent.died for agent in agents})
    finally:
        for agent in agents:
            agent.kill()
        world.close()


def judge(world: World, died: dict[str, float]) -> str:
    """Every session that is on record ended, and soon. A hook that was killed before it was read leaves none."""

    def sessions() -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in world.view("sessions.list", all=True, limit=500)["sessions"]}

    wait_until(lambda: all(row["state"] == "ended" for row in sessions().values()), "all are ended", patience=30)
    found = sessions()
    assert {row["reason"] for row in found.values()} == {"process-gone"}, found
    late = max(event.at - died[event.session] for event in world.events(kinds=("session.lost",)))
    assert late < NOTICED_MS, f"noticed after {late:.0f} ms"
    return f"{len(died)} agents killed, {len(found)} sessions on record, all process-gone, the last after {late / 1000:.1f} s"


FAKE_AGENT = """
import json, subprocess, sys
for line in sys.stdin:
    words, payload = json.loads(line)
    done = subprocess.run(words, input=json.dumps(payload).encode(), capture_output=True)
    print(json.dumps([done.returncode, done.stdout.decode(), done.stderr.decode()]), flush=True)
"""


class FakeAgent:
    """A process of its own that fires hooks, so that it can be killed."""

    def __init__(self, world: World, session: str, shell: bool = False) -> None:
        self.world, self.session, self.shell = world, session, shell
        self.died = 0.0
        env = {**world.env, "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(world.project)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", FAKE_AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
            cwd=world.project,
        )  # fmt: skip

    def fire(self, event: str, mode: str = "ask", **fields: Any) -> None:
        self.send(event, mode, **fields)
        assert self.process.stdout
        assert json.loads(self.process.stdout.readline())[0::2] == [0, ""]

    def send(self, event: str, mode: str, **fields: Any) -> None:
        payload = {
            "session_id": self.session, "transcript_path": str(self.world.home / f"{self.session}.jsonl"),
            "cwd": str(self.world.project), "hook_event_name": event, **fields,
        }  # fmt: skip
        assert self.process.stdin
        words = [*hook_command(), mode, "claude-code", event]
        words = ["sh", "-c", build.shell_line(words)] if self.shell else words
        self.process.stdin.write(json.dumps([words, payload]) + "\n")
        self.process.stdin.flush()

    def fire_and_die(self, event: str, after_ms: int) -> None:
        """Killed so long after the hook's answer has reached it."""
        self.fire(event, "start" if event == "SessionStart" else "ask", source="startup", prompt="work")
        time.sleep(after_ms / 1000)  # What is tried is the moment of the kill.
        self.kill()

    def fire_and_die_waiting(self, event: str, after_ms: int) -> None:
        """Killed so long after it began the hook, whose answer it may never see."""
        self.send(event, "start" if event == "SessionStart" else "ask", source="startup", prompt="work")
        time.sleep(after_ms / 1000)
        self.kill()

    def kill(self) -> None:
        self.died = self.died or time.time() * 1000
        self.process.kill()
        self.process.wait()
