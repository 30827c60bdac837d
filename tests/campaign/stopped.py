"""A daemon that is stopped (SIGSTOP), not dead: hooks end inside their deadlines, and all is there after SIGCONT."""

import os
import signal
import time
from pathlib import Path

from tests.campaign.acks import fire, judge, serving
from tests.kit import World

FULL = 20
DEADLINES = {"ask": 2.0, "tell": 0.25, "start": 5.0}
SLACK_S = 1.5
"""For a machine that is busy with other tests."""


def run(folder: Path, size: int) -> str:
    world, promised = World(folder), set()
    slowest = 0.0
    try:
        for time_ in range(size):
            pid = serving(world)
            os.kill(pid, signal.SIGSTOP)
            for n in range(6):
                mode = ("ask", "tell", "start")[(n + time_) % 3]
                began = time.monotonic()
                assert fire(world, f"s{time_}-{n}", mode) == 0
                took = time.monotonic() - began
                # Only the first waits in full; then `run/slow` says what to expect.
                assert took < DEADLINES[mode] + SLACK_S, f"{mode} took {took:.1f} s"
                slowest = max(slowest, took)
                promised.add(f"s{time_}-{n}")
            assert world.pid == pid, "another daemon took over a lease that is held"
            os.kill(pid, signal.SIGCONT)
        judge(world, promised)
    finally:
        world.close()
    return f"{size} × stopped and continued, {len(promised)} hooks, slowest {slowest:.2f} s, 0 lost, 0 doubled"
