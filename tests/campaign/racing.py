"""Many daemons at once on one state directory, and a kill between: always exactly one (P6)."""

import subprocess
import sys
from pathlib import Path

from tests.campaign.acks import fire, judge, serving
from tests.kit import World, wait_until

FULL = 20
DAEMONS = 32


def run(folder: Path, size: int, daemons: int = DAEMONS) -> str:
    world, promised = World(folder), set()
    command = [sys.executable, "-P", "-m", "holdfast.daemon", "--state", str(world.paths.state)]
    try:
        for number in range(size):
            racing = [subprocess.Popen(command, env=world.env) for _ in range(daemons)]
            wait_until(lambda racing=racing: sum(p.poll() is None for p in racing) == 1, "all but one gave way", 120)
            serving(world)  # A hook that is refused starts one more, which would win the next race.
            assert fire(world, f"r{number}", "ask") == 0
            promised.add(f"r{number}")
            running = [p for p in racing if p.poll() is None]
            assert [p.pid for p in running] == [world.pid]
            assert all(p.returncode == 0 for p in racing if p not in running)
            world.kill()
            running[0].wait()
        judge(world, promised)
    finally:
        world.close()
    return f"{size} × {daemons} daemons at once, 1 left each time, 0 events lost"
