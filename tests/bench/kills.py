"""5,000 events, 8 at once, 20 × kill -9 of the daemon: lost 0, doubled 0, refused 0."""

import json
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from tests.bench.figures import figure, heading
from tests.kit import World, hook_command, wait_until

EVENTS = 5_000
KILLS = 20
AT_ONCE = 8


def main(events: int = EVENTS, kills: int = KILLS) -> tuple[int, int, int]:
    heading(f"{events} events, {AT_ONCE} at once, {kills} × kill -9 of the daemon")
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.start()
        try:
            refused = _storm(world, events, kills)
            world.drained()
            wait_until(lambda: len(_calls(world)) >= events, "all are in the log", 60)
            seen = _calls(world)
        finally:
            world.close()
    lost = events - len(seen)
    doubled = sum(n - 1 for n in seen.values())
    figure("lost", lost, 0, unit="")
    figure("doubled", doubled, 0, unit="")
    figure("refused (exit other than 0)", refused, 0, unit="")
    return lost, doubled, refused


def _calls(world: World) -> Counter:
    return Counter(e.data["call"] for e in world.events(kinds=("tool.started",)))


def _storm(world: World, events: int, kills: int) -> int:
    numbers = iter(range(events))
    lock, refused = threading.Lock(), Counter()

    def work() -> None:
        while True:
            with lock:
                n = next(numbers, None)
            if n is None:
                return
            payload = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": f"c{n}"}
            done = subprocess.run(
                [*hook_command(), "ask", "claude-code", "PreToolUse"],
                input=json.dumps(payload).encode(), env=world.env, capture_output=True, check=False,
            )  # fmt: skip
            refused["n"] += done.returncode != 0

    threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    killed = 0
    while killed < kills and any(t.is_alive() for t in threads):
        time.sleep(0.25)
        killed += world.kill() > 0
    for thread in threads:
        thread.join()
    return refused["n"]
