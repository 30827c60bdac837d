"""Cold start: no daemon at all until the first hook has its durable answer."""

import tempfile
import time
from pathlib import Path

from tests.bench.figures import figure, heading, p50
from tests.kit import World


def main() -> None:
    heading("Cold start to the first durable answer (SessionStart, native hook)")
    took = []
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            for n in range(8):
                began = time.monotonic()
                world.session(f"s{n}").start()
                took.append((time.monotonic() - began) * 1000)
                assert len(world.events(kinds=("session.started",))) == n + 1
                world.kill()
        finally:
            world.close()
    figure("p50", p50(took[1:]), 250, unit="ms")
