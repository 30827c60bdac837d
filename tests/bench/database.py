"""PostgreSQL directly under a daemon: hooks with the database near and 30 ms away, and a far daemon beside a near one."""

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

import psycopg

from tests.bench import event, floors
from tests.bench.figures import fact, heading, ms, p50, percentile
from tests.kit import NATIVE_HOOK, World
from tests.stores import server
from tests.stores.proxy import DatabaseProxy

ROUNDS = int(os.environ.get("HOLDFAST_BENCH_ROUNDS", "60"))
FAR_S = 0.015
"""Each way."""
TOGETHER_S = 8.0


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="hfdatabase", dir="/tmp"))
    try:
        with server.postgres() as url, DatabaseProxy(url, folder, FAR_S) as way:
            _compare(folder, url, way.url)
            _together(folder, url, way.url)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_schema(url: str, name: str) -> str:
    return f"{url}&options=-c%20search_path%3D{name}"


def _compare(folder: Path, near_url: str, far_url: str) -> None:
    heading(f"Hooks, the database near and 30 ms away, {ROUNDS} rounds in shuffled order, each after a pause")
    worlds = [
        World(folder / "file"),
        World(folder / "near", HOLDFAST_STORE__URL=_in_schema(near_url, "near")),
        World(folder / "far", HOLDFAST_STORE__URL=_in_schema(far_url, "far")),
    ]
    try:
        for world in worlds:
            world.start()
        for hook in ("PostToolUse", "PreToolUse"):
            payload = event.write(folder / f"{hook}.json", cwd=str(worlds[0].project))
            commands = [_hook_in(world, hook) for world in worlds]
            floors.measure(commands, payload, 10, env=worlds[0].env)
            found: list[list[int]] = [[], [], []]
            for _ in range(ROUNDS):
                # As agents do: the write behind an answer is through before the next hook comes.
                time.sleep(0.2)
                for times, took in zip(found, floors.measure(commands, payload, 1, env=worlds[0].env), strict=True):
                    times += took
            way_and_back = _round_trip(far_url) - _round_trip(near_url)
            for name, times in zip(("a file", "near", "30 ms away"), found, strict=True):
                fact(f"{hook}, {name}: p50, p95", f"{ms(p50(times))}, {ms(percentile(times, 0.95))}")
            fact(f"{hook}, 30 ms away to near", f"{floors.ratio(found[2], found[1]):.2f} ×")
            more = p50(found[2]) - p50(found[1])
            fact(
                f"{hook}, what it waits more, in ways there and back of {ms(way_and_back)}",
                f"{more / way_and_back:.1f}",
            )
    finally:
        for world in worlds:
            world.close()


def _round_trip(url: str) -> int:
    times: list[int] = []
    with psycopg.connect(url, autocommit=True) as db:
        for _ in range(30):
            began = time.perf_counter_ns()
            db.execute("select 1", prepare=False)
            times.append(time.perf_counter_ns() - began)
    return p50(times)


def _together(folder: Path, near_url: str, far_url: str) -> None:
    heading(f"One database, a near daemon alone and beside a far one, both without a pause, {TOGETHER_S:g} s each")
    near = World(folder / "one", HOLDFAST_STORE__URL=_in_schema(near_url, "both"))
    far = World(folder / "two", HOLDFAST_STORE__URL=_in_schema(far_url, "both"))
    try:
        for world in (near, far):
            world.start()
        payload = event.write(folder / "both.json", cwd=str(near.project))
        alone = _rate(near, payload)
        rates: dict[str, float] = {}
        threads = [
            threading.Thread(target=lambda name=name, world=world: rates.update({name: _rate(world, payload)}))
            for name, world in (("near", near), ("far", far))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        fact("the near daemon alone", f"{alone:.0f}/s")
        fact("the near daemon beside the far one", f"{rates['near']:.0f}/s, {rates['near'] / alone:.2f} × of that")
        fact("the far daemon", f"{rates['far']:.0f}/s")
    finally:
        for world in (near, far):
            world.close()


def _rate(world: World, payload: Path) -> float:
    """Hooks a second that are answered, one after the other."""
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < TOGETHER_S:
        floors.measure([_hook_in(world, "PreToolUse")], payload, 10, env=world.env)
        done += 10
    return done / (time.perf_counter() - began)


def _hook_in(world: World, name: str) -> list[str | Path]:
    env = [f"{one}={world.env[one]}" for one in ("HOLDFAST_STATE", "HOLDFAST_CONFIG", "HOME")]
    return ["/usr/bin/env", *env, NATIVE_HOOK, "ask", "claude-code", name]
