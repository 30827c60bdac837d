"""kill -9 of daemon and hooks at random, while eight clients go on."""

import random
import signal
import subprocess
import threading
import time
from pathlib import Path

from tests.campaign.acks import Acks, judge, payload
from tests.kit import World, hook_command

FULL = 1000
CLIENTS = 8


def run(folder: Path, size: int, **env: str) -> str:
    world, chance = World(folder, **env), random.Random(size)
    storm = Storm(world, Acks(folder / "acks"), size)
    try:
        world.start()
        storm.blow(chance)
        judge(world, storm.acks.all(), storm.maybe)
    finally:
        storm.over.set()
        world.close()
    promised = len(storm.acks.all())
    return f"{size} kills ({storm.hooks_killed} of hooks), {promised} events acknowledged, 0 lost, 0 doubled"


class Storm:
    def __init__(self, world: World, acks: Acks, kills: int) -> None:
        self.world, self.acks, self.kills = world, acks, kills
        self.maybe: set[str] = set()
        """Hooks that were killed themselves: nobody was promised anything, and both outcomes are right."""
        self.over = threading.Event()
        self.hooks_killed = 0
        self._lock = threading.Lock()
        self._flying: set[subprocess.Popen[bytes]] = set()

    def blow(self, chance: random.Random) -> None:
        clients = [threading.Thread(target=self._client, args=(n,)) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        for _ in range(self.kills):
            time.sleep(chance.uniform(0.02, 0.3))
            if chance.random() < 0.3:
                self._kill_a_hook(chance)
            else:
                self._kill_the_daemon()
        self.over.set()
        for client in clients:
            client.join()

    def _kill_the_daemon(self) -> None:
        """Whenever there is one: mostly while it starts, drains or commits."""
        deadline = time.monotonic() + 30
        while self.world.kill() <= 0:
            self.world.paths.failed.unlink(missing_ok=True)
            assert time.monotonic() < deadline, "no hook starts the daemon any more"
            time.sleep(0.01)

    def _kill_a_hook(self, chance: random.Random) -> None:
        with self._lock:
            flying = [p for p in self._flying if p.poll() is None]
            if flying:
                chance.choice(flying).send_signal(signal.SIGKILL)
                self.hooks_killed += 1

    def _client(self, number: int) -> None:
        n = 0
        while not self.over.is_set():
            self._fire(f"c{number}-{n}")
            n += 1

    def _fire(self, call: str) -> None:
        command = [*hook_command(), "ask" if call.endswith("3") else "tell", "claude-code", "PreToolUse"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with self._lock:
            self.maybe.add(call)
            hook = subprocess.Popen(command, env=self.world.env, **pipes)  # type: ignore[call-overload]
            self._flying.add(hook)
        try:
            hook.communicate(payload(call), timeout=60)
        except BrokenPipeError:
            hook.wait()
        with self._lock:
            self._flying.discard(hook)
        assert hook.returncode in (0, -signal.SIGKILL)
        if hook.returncode == 0:
            self.acks.add(call)
