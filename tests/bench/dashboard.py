"""The dashboard on a large log: the first screen, a session of 100,000 events, memory, and what viewers cost a hook.

`python -m tests.bench dashboard` · HOLDFAST_BENCH_EVENTS=50000 for a quick look.
"""

import contextlib
import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from holdfast.core.event import Event
from holdfast.doors.web.keys import Keys
from holdfast.doors.web.running import running_server
from tests.bench import event, floors
from tests.bench.figures import fact, figure, heading, ms, p50, percentile
from tests.bench.hook import HOOK
from tests.bench.sessions import a_log, an_event, fill
from tests.kit import World, wait_until

MANY = int(os.environ.get("HOLDFAST_BENCH_EVENTS", "1000000"))
LONG = max(2_000, MANY // 10)
ROUNDS = 30
HOOKS = 150
TURNS = 11
REST_S = 1.0


def main() -> None:
    heading(f"Dashboard: {MANY:,} events, one session of {LONG:,} of them")
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_BENCH_DIR")) as folder:
        world = World(Path(folder) / "w")
        try:
            began = time.perf_counter()
            # The long session comes last and is still at work.
            fill(world, itertools.chain(a_log(MANY - LONG), a_long_session(MANY - LONG, LONG)))
            fact("filled in", f"{time.perf_counter() - began:.0f} s")
            world.start()
            wait_until(lambda: list(world.paths.backups.glob("*.db")), "the first backup is made", 300)
            with opened(world) as visitor:
                first_screen(visitor)
                screens(visitor)
                long_session(visitor)
                memory(world, visitor)
                viewers(world, visitor, Path(folder))
        finally:
            world.close()


def a_long_session(after: int, count: int) -> Iterator[Event]:
    now = int(time.time() * 1000)
    for n in range(count):
        seq = after + n + 1
        yield an_event(seq, now - (count - n) * 20, 999_999_999, 0 if n == 0 else 1 + n % 48, ends=False)


class Visitor:
    """A browser's requests: one connection that is kept."""

    def __init__(self, port: int, keys: Keys) -> None:
        self.port = port
        self.cookie = f"{keys.cookie_name}={keys.cookie}"
        self._wire = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def get(self, path: str) -> bytes:
        self._wire.request("GET", path, headers={"Cookie": self.cookie})
        answer = self._wire.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[:300])
        return body

    def timed(self, path: str) -> tuple[int, int]:
        began = time.perf_counter_ns()
        size = len(self.get(path))
        return time.perf_counter_ns() - began, size


@contextlib.contextmanager
def opened(world: World) -> Iterator[Visitor]:
    began = time.perf_counter()
    told = json.loads(world.cli("dashboard", "--no-open", "--json").splitlines()[-1])["data"]
    fact("`holdfast dashboard` until the link is there", f"{time.perf_counter() - began:.2f} s")
    port = int(told["address"].rpartition(":")[2])
    try:
        yield Visitor(port, Keys((world.paths.run / "http.token").read_text().strip(), port))
    finally:
        world.cli("dashboard", "--stop")


def first_screen(visitor: Visitor) -> None:
    """The page and every file it names: what must come before it is all there."""
    cold, size = _whole(visitor)
    warm = [_whole(visitor)[0] for _ in range(ROUNDS)]
    figure("first screen, first time, with style and scripts", cold / 1e6, 300, unit="ms")
    figure("first screen, p50", p50(warm) / 1e6, 300, unit="ms")
    figure("first screen, all of it", size / 1024, 150, unit="KB")


def _whole(visitor: Visitor) -> tuple[int, int]:
    began = time.perf_counter_ns()
    page = visitor.get("/")
    named = set(re.findall(rb'(?:href|src)="(/static/[^"]+)"', page))
    folder = next(iter(named)).rpartition(b"/")[0]
    modules = {b"times.js", b"live.js", b"morph.js", b"keys.js", b"act.js"}
    files = named | {folder + b"/" + name for name in modules}
    size = len(page) + sum(len(visitor.get(name.decode())) for name in sorted(files))
    return time.perf_counter_ns() - began, size


def screens(visitor: Visitor) -> None:
    for path in ("/", "/session/s-7", "/activity", "/health", "/gates", "/tasks", "/state", "/uat", "/memory"):
        with contextlib.suppress(AssertionError):
            times = [visitor.timed(f"{path}?n={n}") for n in range(ROUNDS)]  # Another address each: nothing is cached.
            fact(f"{path}: p50, {times[-1][1] / 1024:.0f} KB", ms(p50([took for took, _ in times])))


def long_session(visitor: Visitor) -> None:
    session = "s-999999999"
    took, _ = visitor.timed(f"/session/{session}")
    figure(f"a session of {LONG:,} events, its page", took / 1e6, 300, unit="ms")
    began = time.perf_counter_ns()
    marks = json.loads(visitor.get(f"/api/v1/sessions/{session}/marks"))["data"]
    fact(f"where every 200th of its {marks['total']:,} rows is", ms(time.perf_counter_ns() - began))
    places = marks["marks"][:: max(1, len(marks["marks"]) // ROUNDS)]
    times = [visitor.timed(f"/rows?id={session}&start={start}&limit=200")[0] for start in places]
    figure("200 of its rows, anywhere: p50", p50(times) / 1e6, 50, unit="ms")
    took, _ = visitor.timed(f"/session/{session}?q=nowhere-to-be-found")
    fact("words in it that are nowhere (10,000 events a go)", ms(took))


def memory(world: World, visitor: Visitor) -> None:
    fact("the daemon's memory before anybody looks on", f"{psutil.Process(world.pid).memory_info().rss >> 20} MB")
    with watched(visitor, 20, "/"):
        for n in range(20):
            visitor.get(f"/session/s-{n}")
        daemon, web = (psutil.Process(pid).memory_info().rss for pid in (world.pid, running_server(world.paths)["pid"]))
        figure("the daemon's memory with 20 open pages", daemon / (1 << 20), 150, unit="MB")
        figure("the web server's memory with 20 open pages", web / (1 << 20), 150, unit="MB")


@contextlib.contextmanager
def watched(visitor: Visitor, count: int, path: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.viewers", str(visitor.port), visitor.cookie, str(count), path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert process.stdin and process.stdout
    try:
        assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.stdin.close()
        process.wait(20)


def viewers(world: World, visitor: Visitor, folder: Path) -> None:
    """Turn and turn about: what else the machine does falls on both, and the median of the turns is what counts."""
    payload = event.write(folder / "small.json")
    for name, path in (("50 live viewers", ""), ("50 viewers that each look at the page anew", "/")):
        turns = [_turn(world, visitor, payload, path) for _ in range(TURNS)]
        spent = [them.cpu / max(1e-9, none.cpu) for none, them in turns]
        p95 = [percentile(them.took, 0.95) / percentile(none.took, 0.95) for none, them in turns]
        half = [p50(them.took) / p50(none.took) for none, them in turns]
        alone = p50([percentile(none.took, 0.95) for none, _ in turns])
        figure(f"{name}: hook p95 to none", p50(p95), 1.05, note=f"of {ms(alone)}; p50 {p50(half):.2f} ×")
        fact(f"{name}: processor time of the daemon to none", f"{p50(spent):.2f} ×")


def _turn(world: World, visitor: Visitor, payload: Path, path: str) -> tuple["Hooks", "Hooks"]:
    time.sleep(REST_S)
    none = _hooks(world, payload)
    with watched(visitor, 50, path):
        time.sleep(REST_S)
        return none, _hooks(world, payload)


class Hooks(NamedTuple):
    took: list[int]
    cpu: float
    """Seconds the daemon's threads ran for them: what viewers cost it even where the machine is noisy."""


def _hooks(world: World, payload: Path) -> Hooks:
    """One after the other, as fast as they are answered."""
    daemon = psutil.Process(world.pid)
    before = daemon.cpu_times()
    (taken,) = floors.measure([HOOK], payload, HOOKS, env=world.env)
    after = daemon.cpu_times()
    return Hooks(taken, after.user + after.system - before.user - before.system)
