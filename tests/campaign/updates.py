"""64 processes × 1,000 updates of one session make exactly 64,000 (P4)."""

import subprocess
import sys
from pathlib import Path

from holdfast.core.ports import Ref
from tests.campaign.acks import frame, send, serving, settled
from tests.kit import World

FULL = 64_000
PROCESSES = 64
ROOT = Path(__file__).parents[2]


def run(folder: Path, size: int, processes: int = PROCESSES) -> str:
    each = size // processes
    world = World(folder, HOLDFAST_FEATURES="tests.sample_features.refusing", PYTHONPATH=str(ROOT))
    try:
        serving(world)
        command = [sys.executable, "-m", "tests.campaign.updates", str(folder), str(each)]
        clients = [subprocess.Popen([*command, str(n)], env=world.env) for n in range(processes)]
        assert all(client.wait(600) == 0 for client in clients)
        found = settled(world)
        assert len(found) == sum(found.values()) == each * processes
        with world.reader() as reader:
            doc = reader.state(Ref("refusing", "s-1"))
        assert doc and doc["calls"] == each * processes, doc
    finally:
        world.close()
    return f"{processes} × {each} updates of one document = exactly {doc['calls']}"


def client(folder: Path, times: int, number: str) -> None:
    world = World(folder)
    for n in range(times):
        request = frame(f"{number}-{n}")
        while send(world, request) is None:
            pass  # The same delivery again, as often as it takes: it counts once.


if __name__ == "__main__":
    client(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
