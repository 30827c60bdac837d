"""Each delivery three times, by socket and spool, in any order, over restarts: one event (P3)."""

import random
from pathlib import Path

from holdfast.core.ids import delivery_key
from holdfast.daemon.ingest.frames import as_record
from tests.campaign.acks import frame, judge, send, serving
from tests.kit import World

FULL = 3_000


def run(folder: Path, size: int) -> str:
    world, chance = World(folder), random.Random(size)
    requests = {f"e{n}": frame(f"e{n}", key=delivery_key()) for n in range(size)}
    visits = [call for call in requests for _ in range(3)]
    chance.shuffle(visits)
    by_spool = 0
    try:
        serving(world)
        for number, call in enumerate(visits):
            if chance.random() < 0.4 or send(world, requests[call]) is None:
                partial = world.paths.spool / f"{number}.partial"
                partial.write_bytes(as_record(requests[call]))
                partial.rename(partial.with_suffix(".log"))  # At once, because the daemon may take it at any moment.
                by_spool += 1
            if number % max(1, len(visits) // 6) == 5:
                world.kill()
                serving(world)
        judge(world, set(requests))
    finally:
        world.close()
    return f"{len(visits)} deliveries ({by_spool} by spool) of {size} keys = {size} events"
