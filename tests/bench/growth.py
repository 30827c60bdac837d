"""A million events later: the hook costs the same, the daemon stays small, reads stay quick (P11)."""

import os
import tempfile
import time
from pathlib import Path

import msgspec
import psutil

from holdfast.app import build_app
from holdfast.core.decision import Delivery
from holdfast.core.event import Event
from holdfast.core.ids import delivery_key
from holdfast.core.ports import EventQuery, StateQuery
from holdfast.stores.sqlite_reader import SqliteReader
from tests.bench import event, floors
from tests.bench.figures import fact, figure, heading, ms, p50, p99
from tests.bench.rest import at_rest
from tests.bench.sessions import timed
from tests.factories import mark_made
from tests.kit import NATIVE_HOOK, World

EVENTS = int(os.environ.get("HOLDFAST_BENCH_EVENTS", "1000000"))
RUN, AT_ONCE = 5_000, 100
SESSIONS = EVENTS // RUN * AT_ONCE
BATCH = 2_000


def main() -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as folder:
        root = Path(folder)
        heading(f"Growth: {EVENTS:,} stored events, {SESSIONS:,} sessions")
        full, empty = World(root / "full"), World(root / "empty")
        _fill(full)
        for world in (full, empty):
            world.start()
        try:
            at_rest(full)
            at_rest(empty)
            _hooks(root, full, empty)
            _memory(full)
            _reads(full)
        finally:
            full.close()
            empty.close()


def _fill(world: World) -> None:
    app = build_app(world.paths.prepare())
    mark_made(app.store, app.features)
    payload = event.write(world.root / "fill.json", 700).read_bytes()
    delivery = Delivery(key="", agent="claude-code", event="PostToolUse", at=1, cwd="/", body=payload)
    tool = app.engine.ports.read(delivery)
    end = msgspec.structs.replace(tool, kind="session.ended", tool="", data={"reason": "exit"}, body=b"")
    began = time.perf_counter()
    for start in range(0, EVENTS, BATCH):
        app.engine.handle([_nth(tool, end, start + n) for n in range(BATCH)], imported=True)
    app.store.close()
    fact("filled through the engine", f"{EVENTS / (time.perf_counter() - began):,.0f} /s")


def _nth(tool: Event, end: Event, n: int) -> Event:
    """Sessions come in runs, as they do in life: a hundred are open at any time, and at last each of them ends."""
    return msgspec.structs.replace(
        end if n % RUN >= RUN - AT_ONCE else tool,
        key=delivery_key(),
        at=1_700_000_000_000 + n * 50,
        session=_session(n),
        project="/p",
    )


def _session(n: int) -> str:
    return f"session-{n // RUN * AT_ONCE + n % AT_ONCE}"


def _hooks(root: Path, full: World, empty: World) -> None:
    payload = event.write(root / "small.json")
    runs = {}
    for name, world in (("empty", empty), ("full", full)):
        state = ["--state", str(world.paths.state)]
        runs[name] = [NATIVE_HOOK, *state, "ask", "claude-code", "PostToolUse"]
    floors.measure(list(runs.values()), payload, 50, env=full.env)
    on_empty, on_full = floors.measure(list(runs.values()), payload, 300, env=full.env)
    figure("hook p50, full to empty store", floors.ratio(on_full, on_empty), 1.1, note=f"{ms(p50(on_full))}")


def _memory(world: World) -> None:
    resident = psutil.Process(world.pid).memory_info().rss
    figure("daemon resident", resident / 1e6, 80, unit="MB")


def _reads(world: World) -> None:
    reader = SqliteReader(world.paths.database)
    last = _session(EVENTS - 1)
    reads = {
        "timeline page of one session (100)": lambda: reader.events(EventQuery(session=last, newest=True)),
        "newest page of everything (100)": lambda: reader.events(EventQuery(newest=True)),
        "session list (50 newest)": lambda: reader.states(StateQuery(kind="session")),
        "counters": reader.counts,
    }
    for name, read in reads.items():
        figure(f"{name}: p99", p99([timed(read) for _ in range(300)]) / 1e6, 1.0, unit="ms")
    reader.close()
