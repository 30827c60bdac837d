"""Sessions at 10,000 and at 1,000,000 events: lists cost the same; and what the room adds to an event.

`python -m tests.bench sessions` · HOLDFAST_BENCH_EVENTS=50000 for a quick look.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from holdfast.app import build_app
from holdfast.core.engine import Engine
from holdfast.core.event import Event
from holdfast.core.feature import Feature
from holdfast.core.ports import Doc, Ref, Store
from holdfast.core.replay import fold_events
from holdfast.core.state import state_row
from holdfast.features.sessions import FEATURE
from holdfast.features.sessions.settings import SessionsSettings
from holdfast.stores.sqlite import SqliteStore
from tests.bench.figures import fact, figure, heading, ms, p50
from tests.factories import an_engine, mark_made
from tests.kit import World, wait_until

MANY = int(os.environ.get("HOLDFAST_BENCH_EVENTS", "1000000"))
FEW = 10_000
EVENTS_A_SESSION = 50
LIVE = 20
BATCH = 20_000
ROUNDS = 200


def main() -> None:
    heading(f"Sessions: {MANY:,} events in {MANY // EVENTS_A_SESSION:,} sessions, against {FEW:,}")
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as folder:
        few, many = World(Path(folder) / "few"), World(Path(folder) / "many")
        try:
            began = time.perf_counter()
            for world, count in ((few, FEW), (many, MANY)):
                fill(world, a_log(count))
            fact("stored events a second, filling", f"{(FEW + MANY) / (time.perf_counter() - began):,.0f}")
            _answers(few, many)
        finally:
            few.close()
            many.close()
        _cost_of_an_event(Path(folder))


# ---- reading


def _answers(few: World, many: World) -> None:
    for world in (few, many):
        world.start()
        # A daemon begins with a check and a backup of the whole file; those are not what is measured here.
        wait_until(lambda world=world: list(world.paths.backups.glob("*.db")), "the first backup is made", 300)
    for name, view, args in (
        ("session list page (50)", "sessions.list", {"all": True}),
        ("one session's timeline page (100)", "sessions.timeline", {"id": "s-7"}),
        ("who", "sessions.who", {}),
    ):
        times: dict[str, list[int]] = {"few": [], "many": []}
        for n in range(ROUNDS + 20):
            for label, world in (("few", few), ("many", many)):
                took = timed(lambda world=world, view=view, args=args: world.view(view, **args))
                if n >= 20:
                    times[label].append(took)
        small, large = p50(times["few"]), p50(times["many"])
        figure(f"{name}: p50 at {MANY:,}", large / 1e6, 10, unit="ms")
        figure(f"{name}: {MANY:,} to {FEW:,} events", large / small, 1.5, note=f"{ms(small)} → {ms(large)}")


def timed(work: Callable[[], object]) -> int:
    began = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - began


# ---- filling: appended and folded by hand, many times quicker than hook by hook, and the same in the end


def fill(world: World, log: Iterable[Event]) -> None:
    """Appended and folded by hand: quicker than an engine, and the same in the end."""
    app = build_app(world.paths.prepare())
    docs: dict[Ref, Doc] = {}
    batch: list[Event] = []
    for event in log:
        batch.append(event)
        fold_events(FEATURE, [event], docs)
        if len(batch) == BATCH:
            _keep(app.store, batch, docs)
    _keep(app.store, batch, docs)
    mark_made(app.store, app.features)
    app.store.close()


def _keep(store: Store, batch: list[Event], docs: dict[Ref, Doc]) -> None:
    with store.transaction():
        if batch:
            store.append(batch)
        store.save([state_row(FEATURE, ref, doc) for ref, doc in docs.items()])
    batch.clear()
    for ref in [ref for ref, doc in docs.items() if getattr(doc, "status", "") == "completed"]:
        del docs[ref]


def a_log(count: int) -> Iterator[Event]:
    """Ten sessions at a time, each of fifty events; the last twenty of all are still at work."""
    now = int(time.time() * 1000)
    sessions = max(1, count // EVENTS_A_SESSION)
    seq = 0
    for first in range(0, sessions, 10):
        group = range(first, min(first + 10, sessions))
        for step in range(EVENTS_A_SESSION):
            for session in group:
                seq += 1
                at = now - (count - seq) * 20
                yield an_event(seq, at, session, step, ends=session < sessions - LIVE)


TEXT = "collected 42 items, all of them passed in a reasonable time on this machine. " * 3


def an_event(seq: int, at: int, session: int, step: int, *, ends: bool, call: int | None = None) -> Event:
    """`call`: the number in the id of its tool call; a session of more than one round has to give one."""
    kind, tool, data = _step(step, ends, step // 2 if call is None else call)
    return Event(
        key=f"{seq:032x}", kind=kind, at=at, session=f"s-{session}", project=f"/home/dev/project-{session % 40}",
        agent="claude-code", tool=tool, data={"cwd": "/home/dev", "branch": "main", **data}, seq=seq,
    )  # fmt: skip


def _step(step: int, ends: bool, call: int) -> tuple[str, str, dict]:
    if step == 0:
        return "session.started", "", {"source": "startup"}
    if step == EVENTS_A_SESSION - 1 and ends:
        return "session.ended", "", {"reason": "other"}
    place = step % 12
    if place == 1:
        return "prompt.submitted", "", {"prompt": f"Please do the thing number {step} and then look at it again."}
    if place == 0:
        return "turn.ended", "", {"message": TEXT[:120]}
    data = {"call": f"toolu_{call:024}", "action": "shell", "command": "pytest -q tests/unit"}
    if place % 2 == 0:
        return "tool.started", "Bash", data
    return "tool.finished", "Bash", {**data, "ok": True, "exit_code": 0, "output": TEXT, "ms": 12}


# ---- writing


def _cost_of_an_event(folder: Path) -> None:
    """One event in one transaction, with and without the room; the disk's own wait is left out of both."""
    times: dict[str, list[int]] = {"without": [], "with": []}
    engines = {
        "without": _engine(folder / "without.db", Feature(name="nothing")),
        "with": _engine(folder / "with.db", FEATURE),
    }
    for n in range(4000):
        for name, engine in engines.items():
            event = an_event(0, 1_760_000_000_000 + n, n // 500, n % EVENTS_A_SESSION, ends=False)
            event = msgspec.structs.replace(event, key=f"{name}{n}")
            took = timed(lambda engine=engine, event=event: engine.handle([event]))
            if n >= 500:
                times[name].append(took)
    base, full = p50(times["without"]), p50(times["with"])
    figure(
        "the room adds to an event: p50", (full - base) / 1000, 60, unit="µs", note=f"engine alone {base / 1000:.0f}"
    )


def _engine(path: Path, feature: Feature) -> Engine:
    store = SqliteStore(path)
    store._db.pragma("synchronous", "off")  # type: ignore[attr-defined]
    sections = {"sessions": SessionsSettings()}
    return an_engine(store, feature, settings=lambda _project: sections)


if __name__ == "__main__":
    main()
