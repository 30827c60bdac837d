"""A team: what a hook costs with an upstream that is dead or slow, how fast a server takes events in, how soon others see them."""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil

from holdfast_team.core import project_id
from holdfast_team.membership import Membership, TeamFiles
from holdfast_team.protocol import MOST_EVENTS, Batch, SharedEvent, SharedProject
from holdfast_team.server.database import owner_connection
from holdfast_team.server.run import add_tenant
from tests.bench import event, floors
from tests.bench.figures import fact, figure, heading, ms, p50, percentile
from tests.kit import NATIVE_HOOK, World, wait_until
from tests.team import postgres as server
from tests.team.processes import TeamHost, TeamMachine, code_for

PARTS = os.environ.get("HOLDFAST_BENCH_PART", "")
"""One of its parts alone: ingest, live, hooks, visible or catch_up."""
MACHINES, BATCHES, SENDERS = 100, 4, 8
# Batches of one event for each sender: fewer than a machine may ask at once.
LIVE = 150
SLOW_S = 0.1
# Pairs of blocks, hooks of each machine in each, and seconds before each.
BLOCKS, BLOCK, SETTLE_S = int(os.environ.get("HOLDFAST_BENCH_BLOCKS", "60")), 20, 0.3
CATCH_UP = 20_000
SEEN = 40
PROJECT = SharedProject(id=project_id("example.org/bench/app", "c" * 40), remote="example.org/bench/app", root="c" * 40)


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="hfteam", dir="/tmp"))
    try:
        with server.postgres() as url:
            host = TeamHost(url, folder)
            host.start()
            try:
                for part in (_ingest, _live, _hooks, _visible, _catch_up):
                    if PARTS in ("", part.__name__.strip("_")):
                        part(host, folder)
                fact("memory of the server", f"{host.memory_mb():.0f} MB")
            finally:
                host.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _ingest(host: TeamHost, _folder: Path) -> None:
    heading(f"Ingest: {MACHINES} machines, {BATCHES} batches of 500 each, {SENDERS} connections, PostgreSQL here")
    work = [(token, body) for n in range(MACHINES) for token, body in _batches(host, n)]
    queues = [[one for m, one in enumerate(work) if m // BATCHES % SENDERS == n] for n in range(SENDERS)]
    began, spent = time.perf_counter(), _cpu_times(host)
    _send_together(host, queues)
    took = time.perf_counter() - began
    [row] = host.rows("select count(*) as n from events")
    assert row["n"] == len(work) * 500
    figure("events a second, committed", row["n"] / took, 10_000, unit="/s", more_is_better=True)
    # Of a machine that is busy with other things too, these say more than the rate.
    for name, seconds in _cpu_times(host).items():
        fact(f"processor time of {name}", f"{(seconds - spent[name]) / row['n'] * 1e6:.1f} µs an event")
    fact("load of the machine", f"{os.getloadavg()[0]:.1f}")


def _live(host: TeamHost, _folder: Path) -> None:
    """What machines send while people work: an event or two at a time. Here a request costs more than an event."""
    heading(f"Live: {SENDERS} machines, {LIVE} batches of one event each; then as many questions for news")
    machines = [_batches(host, 1_000 + n, LIVE, 1) for n in range(SENDERS)]
    for name, work in (
        ("a batch of one event", machines),
        ("a question for news", [[(token, b"") for token, _ in machine] for machine in machines]),
    ):
        spent = _cpu_times(host)
        _send_together(host, work)
        for who, seconds in _cpu_times(host).items():
            fact(f"processor time of {who}", f"{(seconds - spent[who]) / (SENDERS * LIVE) * 1e3:.2f} ms for {name}")


def _cpu_times(host: TeamHost) -> dict[str, float]:
    with owner_connection(host.database) as db:
        main = psutil.Process(db.info.backend_pid).parent()
        assert main
        postgres = sum(_cpu_of(one) for one in main.children(recursive=True))
    return {"the server": _cpu_of(host.process()), "PostgreSQL": postgres}


def _cpu_of(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def _batches(host: TeamHost, number: int, count: int = BATCHES, size: int = MOST_EVENTS) -> list[tuple[str, bytes]]:
    code = add_tenant(host.database, f"bench-{number % 5}", f"person-{number}").code
    connection = http.client.HTTPConnection("127.0.0.1", host.port)
    body = {"code": code, "machine": f"machine-{number:08}"}
    connection.request("POST", "/v1/enrol", msgspec.json.encode(body))
    token = msgspec.json.decode(connection.getresponse().read())["token"]
    found = []
    for n in range(count):
        events = tuple(_an_event(number, n * size + k + 1) for k in range(size))
        batch = Batch(stream=1, after=n * size, upto=n * size + size, projects=(PROJECT,), events=events)
        found.append((token, zlib.compress(msgspec.json.encode(batch), 1)))
    return found


def _an_event(machine: int, seq: int) -> SharedEvent:
    """A day's mixture: mostly tool calls, some answers of models, some turns."""
    kinds = ("tool.finished", "tool.finished", "model.answered", "tool.finished", "turn.ended")
    kind = kinds[seq % len(kinds)]
    action = "edit" if seq % 4 == 0 else "shell"
    data = {
        "tool.finished": {
            "branch": "main",
            "action": action,
            "paths": [f"src/module_{seq % 97}.py"],
            "ok": True,
            "ms": 212,
        },
        "model.answered": {"model": "model-x", "tokens": {"input": 1200, "output": 340, "cache_read": 45_000}},
    }.get(kind, {"branch": "main"})
    return SharedEvent(
        seq=seq, key=f"{machine:08x}{seq:024x}", at=time.time_ns() // 1_000_000, kind=kind,
        session=f"session-{machine}-{seq // 400}", project=PROJECT.id, agent="claude-code", tool="Edit", data=data,
    )  # fmt: skip


def _send_together(host: TeamHost, queues: list[list[tuple[str, bytes]]]) -> None:
    senders = [threading.Thread(target=_send_all, args=(host.port, queue)) for queue in queues]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()


def _send_all(port: int, work: list[tuple[str, bytes]]) -> None:
    """Batches; where there is no body, questions for news."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for token, body in work:
        what = ("POST", "/v1/batch", body) if body else ("GET", "/v1/feed?after=0", None)
        connection.request(*what, {"authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text


# ── hooks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _hooks(host: TeamHost, folder: Path) -> None:
    heading(f"Hook with an upstream: native client, durable answer, {BLOCKS} pairs of blocks of {BLOCK} rounds")
    machines = {"without a team": World(folder / "alone"), "without a team, too": World(folder / "also-alone")}
    dead, slow = TeamMachine(folder / "dead"), TeamMachine(folder / "slow")
    with _slow_way(host.port) as port:
        _pretend_joined(dead, "http://127.0.0.1:9")
        slow.start()
        slow.join(host, code_for(host, "slow", "bench-hooks"), "full")
        files = TeamFiles(slow.paths)
        membership = files.membership()
        assert membership
        files.save_membership(msgspec.structs.replace(membership, url=f"http://127.0.0.1:{port}"))
        slow.kill()
        machines |= {"with a dead upstream": dead, "with an upstream 100 ms away": slow}
        try:
            for world in machines.values():
                world.start()
            payload = event.write(folder / "small.json", cwd=str(slow.project))
            _compare_hooks(machines, [dead, slow], payload)
        finally:
            for world in machines.values():
                world.close()


def _compare_hooks(machines: dict[str, World], joined: list[TeamMachine], payload: Path) -> None:
    """Two daemons differ by more than a forwarder costs, and the load of the machine changes from second to second. So
    every machine is measured while all forwarders run and while all are stopped, each time to the first machine, which has
    none: what is left of the ratio of the two is the forwarder's. For the second machine, which has none either, it is what the
    measurement cannot tell from nothing."""
    forwarders = [_forwarder_of(world) for world in joined]
    floors.measure([_hook_in(world) for world in machines.values()], payload, 30, env=joined[0].env)
    found: dict[str, list[float]] = {name: [] for name in machines}
    plain: list[float] = []
    spent = [_cpu_of(one) for one in forwarders]
    for n in range(BLOCKS):
        blocks = {}
        for running in (True, False) if n % 2 else (False, True):
            blocks[running] = _measure_block(machines, forwarders, running, payload)
        plain.append(blocks[False]["without a team"])
        for name, ratios in found.items():
            on, off = (blocks[way][name] / blocks[way]["without a team"] for way in (True, False))
            ratios.append(on / off)
    fact("p50 without a team", ms(p50(plain)))
    for name, ratios in list(found.items())[1:]:
        low, high = floors.confidence(ratios)
        note = f"95 %: {low:.3f} to {high:.3f}"
        if "without" in name:
            fact("nothing to nothing: another machine without a team", f"{p50(ratios):.3f} × ({note})")
        else:
            figure(f"p50 {name}", p50(ratios), 1.05, note=note)
    for name, process, before in zip(list(machines)[2:], forwarders, spent, strict=True):
        each = (_cpu_of(process) - before) / (BLOCKS * 2 * BLOCK)
        fact(f"processor time of the forwarder {name}", f"{each * 1e6:.0f} µs a hook")


def _measure_block(
    machines: dict[str, World], forwarders: list[psutil.Process], running: bool, payload: Path
) -> dict[str, float]:
    """p50 of the hooks of each machine, in shuffled rounds."""
    for process in forwarders:
        process.send_signal(signal.SIGCONT if running else signal.SIGSTOP)
    try:
        # What lay waiting is sent first, outside of the measurement.
        time.sleep(SETTLE_S)
        commands = [_hook_in(world) for world in machines.values()]
        took = floors.measure(commands, payload, BLOCK, env=next(iter(machines.values())).env)
        return {name: p50(times) for name, times in zip(machines, took, strict=True)}
    finally:
        for process in forwarders:
            process.send_signal(signal.SIGCONT)


def _forwarder_of(world: TeamMachine) -> psutil.Process:
    wait_until(world.forwarder_pids, "the forwarder runs")
    [pid] = world.forwarder_pids()
    return psutil.Process(pid)


def _hook_in(world: World) -> list[str | Path]:
    env = [f"{name}={world.env[name]}" for name in ("HOLDFAST_STATE", "HOLDFAST_CONFIG", "HOME")]
    return ["/usr/bin/env", *env, NATIVE_HOOK, "ask", "claude-code", "PostToolUse"]


def _pretend_joined(world: TeamMachine, url: str) -> None:
    world.start()
    membership = Membership(url=url, token="t", tenant="t", person="p", role="member", machine="m", level="full")
    TeamFiles(world.paths).save_membership(membership)
    world.kill()


@contextlib.contextmanager
def _slow_way(port: int) -> Iterator[int]:
    """Bytes to a server arrive 100 ms later, each way."""
    listening = socket.create_server(("127.0.0.1", 0))

    def copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                time.sleep(SLOW_S)
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listening.accept()
                far = socket.create_connection(("127.0.0.1", port))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=copy, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()


# ── others see it ────────────────────────────────────────────────────────────────────────────────────────────────────


def _visible(host: TeamHost, folder: Path) -> None:
    heading(f"From the end of a hook to the team's database, {SEEN} prompts one after the other")
    machine = TeamMachine(folder / "seen")
    try:
        machine.start()
        machine.join(host, code_for(host, "seen", "bench-seen"))
        delays = []
        for n in range(SEEN):
            machine.fire("UserPromptSubmit", prompt=f"prompt {n}")
            began = time.perf_counter()
            wait_until(lambda n=n: _prompts(host, machine) > n, "it arrived")
            delays.append(time.perf_counter() - began)
        figure("p95 in seconds", percentile(delays, 0.95), 2.0, unit="s", note=f"p50 {p50(delays):.2f} s")
    finally:
        machine.close()


def _prompts(host: TeamHost, machine: TeamMachine) -> int:
    [row] = host.rows(
        "select count(*) as n from events where machine = %s and kind = 'prompt.submitted'", machine.machine
    )
    return int(row["n"])


def _catch_up(host: TeamHost, folder: Path) -> None:
    """A machine that was offline: its log goes out as fast as both sides can."""
    heading(f"Catching up: {CATCH_UP} events of a log, one machine")
    machine = TeamMachine(folder / "late")
    try:
        machine.start()
        _fill_log(machine)
        code, spent = code_for(host, "late", "bench-late"), _cpu_times(host)
        machine.cli("team", "join", host.url, "--code", code, "--history", "--yes")
        wait_until(machine.is_current, "everything was sent", 300)
        spent = {name: seconds - spent[name] for name, seconds in _cpu_times(host).items()}
        spent["the forwarder, with its start"] = _cpu_of(_forwarder_of(machine))
        [row] = host.rows(FIRST_TO_LAST, machine.machine)
        assert row["stored"] >= CATCH_UP, row
        rate = (row["stored"] - MOST_EVENTS) / max(0.001, row["ms"] / 1000)
        figure("events a second, from the first batch to the last", rate, 5_000, unit="/s", more_is_better=True)
        for name, seconds in spent.items():
            fact(f"processor time of {name}", f"{seconds / row['stored'] * 1e6:.1f} µs an event")
        fact("load of the machine", f"{os.getloadavg()[0]:.1f}")
    finally:
        machine.close()


FIRST_TO_LAST = """
select count(*) as stored, max(received_at) - min(received_at) as ms from events where machine = %s and kind = 'tool.finished'
"""


def _fill_log(machine: TeamMachine) -> None:
    for first in range(0, CATCH_UP, 5_000):
        events = [
            {
                "key": f"{n:032x}", "kind": "tool.finished", "at": 1_700_000_000_000 + n, "session": f"late-{n // 500}",
                "project": str(machine.project), "agent": "claude-code", "tool": "Edit",
                "data": {"action": "edit", "paths": [str(machine.project / f"src/{n % 50}.py")], "ok": True, "imported": "bench"},
            }
            for n in range(first + 1, first + 5_001)
        ]  # fmt: skip
        machine.ask(op="ingest", events=events)
