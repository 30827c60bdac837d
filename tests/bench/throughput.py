"""Durable answers per second, a connection per event, all features on, against the store's own limit in this run."""

import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from holdfast.app import build_app
from holdfast.core.decision import Delivery
from holdfast.core.ids import delivery_key
from holdfast.paths import Paths
from tests.bench import event, floors
from tests.bench.figures import fact, figure, heading, ms, p50, p99
from tests.bench.rest import at_rest
from tests.kit import NATIVE_HOOK, World

EVENTS = 12_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        payload = event.write(root / "small.json")
        heading(f"Throughput with durable answers, {EVENTS} events, a connection per event, all features on")
        limits = {size: _store_limit(root / f"limit-{size}", payload, size) for size in (64, 256)}
        world = World(root / "w")
        world.start()
        try:
            floors.measure([[NATIVE_HOOK, "ask", "claude-code", "PostToolUse"]], payload, 50, env=world.env)
            at_rest(world)
            for clients in (1, 8, 64, 256):
                _load(world, payload, clients, limits)
        finally:
            world.close()


def _store_limit(root: Path, payload: Path, size: int) -> float:
    """The same events straight into the store in this process, in batches of that size: no socket, no features."""
    app = build_app(Paths(root).prepare())
    delivery = Delivery(key="", agent="claude-code", event="PostToolUse", at=1, cwd="/", body=payload.read_bytes())
    template = app.engine.ports.read(delivery)
    batches = [
        [msgspec.structs.replace(template, key=delivery_key()) for _ in range(size)] for _ in range(EVENTS // size)
    ]
    began, seq = time.perf_counter(), 0
    for batch in batches:
        with app.store.transaction():
            app.store.seqs_of_keys([e.key for e in batch])
            app.store.append([msgspec.structs.replace(e, seq=seq + n) for n, e in enumerate(batch, 1)])
            seq += size
    rate = seq / (time.perf_counter() - began)
    app.store.close()
    fact(f"store alone, batches of {size}", f"{rate:,.0f} /s")
    return rate


def _load(world: World, payload: Path, clients: int, limits: dict[int, float]) -> None:
    events = EVENTS if clients >= 64 else 3000
    words = [floors.program("load"), world.paths.hook_socket, str(clients), str(events), payload]
    done = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    seconds, latencies = float(done[0]), [int(x) for x in done[2:]]
    rate = events / seconds
    fact(f"{clients} clients: events/s, p50, p99", f"{rate:,.0f}  {ms(p50(latencies))}  {ms(p99(latencies))}")
    if clients in limits:
        figure(
            f"share of the store's limit at {clients} clients",
            rate / limits[clients],
            0.5,
            more_is_better=True,
            unit="",
        )
    if clients == 64:
        figure("p99 to p50 at 64 clients", p99(latencies) / p50(latencies), 5.0)
