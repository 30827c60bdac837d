"""Leases (S1-13, C5): one owner or several sharers, in order, fenced, never in a circle."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import machine
from holdfast.core.caller import LEASE_OWNERS_VARIABLE
from holdfast.features.project.state import ALL, LEASES, Lease, LeaseEntry, LeaseTable, leases
from tests.factories import NOON, an_event
from tests.features.project.stage import Stage
from tests.kit import World


class Table:
    """The table under a run of events, numbered as the log numbers them."""

    def __init__(self) -> None:
        self.doc = LeaseTable()
        self.seq = 0

    def say(self, kind: str, name: str, who: int, **data: Any) -> str:
        """What became of it."""
        self.seq += 1
        fields = {"name": name, "owner": f"{who}:1@h", "pid": who, "start": 1, "request": f"r{self.seq}", **data}
        event = an_event(kind=f"project.lease_{kind}", at=NOON + self.seq, seq=self.seq, data=fields)
        self.doc = leases.reduce_leases(self.doc, event)
        return next((a.answer for a in self.doc.answers if a.request == f"r{self.seq}"), "")

    def ask(self, name: str, who: int, **data: Any) -> str:
        return self.say("asked", name, who, **{"wait": True, **data})

    def release(self, name: str, who: int) -> None:
        self.say("released", name, who)

    def holders(self, name: str) -> list[int]:
        return [h.pid for h in self.doc.leases.get(name, Lease()).holders]

    def why(self) -> str:
        return self.doc.answers[-1].why


def test_one_holds_it_and_the_others_wait_in_order() -> None:
    table = Table()
    assert [table.ask("db", who) for who in (1, 2, 3)] == ["granted", "waiting", "waiting"]
    table.release("db", 1)
    assert table.holders("db") == [2]
    table.release("db", 2)
    assert table.holders("db") == [3]
    table.release("db", 3)
    assert table.doc.leases == {}


def test_who_does_not_wait_is_told_who_holds_it() -> None:
    table = Table()
    table.ask("db", 1)
    assert table.ask("db", 2, wait=False) == "busy"
    assert table.why() == "db is held by process 1"


def test_readers_share_and_a_writer_waits_for_all_of_them() -> None:
    """O1-a: reader/writer locks; nobody overtakes a waiting writer."""
    table = Table()
    assert [table.ask("db", who, mode="shared") for who in (1, 2)] == ["granted", "granted"]
    assert table.ask("db", 3) == "waiting"
    assert table.ask("db", 4, mode="shared") == "waiting"
    table.release("db", 1)
    assert table.holders("db") == [2]
    table.release("db", 2)
    assert table.holders("db") == [3]
    table.release("db", 3)
    assert table.holders("db") == [4]


def test_all_sharers_at_the_head_of_the_line_get_it_together() -> None:
    table = Table()
    table.ask("db", 1)
    for who in (2, 3):
        table.ask("db", who, mode="shared")
    table.ask("db", 4)
    table.release("db", 1)
    assert table.holders("db") == [2, 3]


def test_asking_again_renews_and_keeps_the_token() -> None:
    table = Table()
    table.ask("db", 1, ttl_ms=1000)
    (before,) = table.doc.leases["db"].holders
    assert table.ask("db", 1, ttl_ms=9000) == "granted"
    (after,) = table.doc.leases["db"].holders
    assert after.token == before.token
    assert after.until > before.until


def test_a_heartbeat_moves_the_end() -> None:
    table = Table()
    table.ask("db", 1, ttl_ms=1000)
    until = table.doc.leases["db"].holders[0].until
    table.seq += 500
    table.say("kept", "db", 1)
    assert table.doc.leases["db"].holders[0].until > until


def test_from_shared_to_exclusive() -> None:
    table = Table()
    table.ask("db", 1, mode="shared")
    assert table.ask("db", 1) == "granted"
    assert table.doc.leases["db"].holders[0].mode == "exclusive"


def test_two_sharers_who_both_want_it_alone_is_a_deadlock() -> None:
    table = Table()
    for who in (1, 2):
        table.ask("db", who, mode="shared")
    assert table.ask("db", 1) == "waiting"
    assert table.ask("db", 2) == "refused"
    assert "process 2 waits for db, which process 1 holds" in table.why()
    table.release("db", 2)
    assert table.holders("db") == [1]
    assert table.doc.leases["db"].holders[0].mode == "exclusive"


@pytest.mark.parametrize("length", [2, 3, 20])
def test_circles_of_any_length_are_refused_and_named(length: int) -> None:
    table = Table()
    for n in range(length):
        table.ask(f"l{n}", n + 1)
    for n in range(length - 1):
        assert table.ask(f"l{n + 1}", n + 1) == "waiting"
    assert table.ask("l0", length) == "refused"
    assert table.why().startswith("that would be a deadlock: ")
    assert table.why().count("waits for") == length
    assert f"process {length} waits for l0, which process 1 holds" in table.why()


def test_a_command_under_a_lease_may_not_wait_for_that_lease() -> None:
    table = Table()
    table.ask("db", 1)
    assert table.ask("db", 2, within=["1:1@h"]) == "refused"
    assert "process 1 waits for process 2, which it started" in table.why()


def test_circles_through_commands_that_run_under_leases() -> None:
    """1 holds a and runs 2, which wants b; 3 holds b and runs 4, which wants a."""
    table = Table()
    table.ask("a", 1)
    table.ask("b", 3)
    assert table.ask("b", 2, within=["1:1@h"]) == "waiting"
    assert table.ask("a", 4, within=["3:1@h"]) == "refused"
    assert table.why().count("waits for") == 6
    table.release("b", 3)
    assert table.holders("b") == [2], "without the circle all goes on"


def test_tokens_only_grow() -> None:
    table = Table()
    seen = []
    for who in range(1, 20):
        table.ask("db", who)
        seen.append(table.doc.leases["db"].holders[0].token)
        table.release("db", who)
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("modes", [("exclusive", "exclusive"), ("shared", "exclusive"), ("exclusive", "shared")])
def test_who_asks_twice_while_it_waits_does_not_come_to_wait_behind_itself(modes: tuple[str, str]) -> None:
    table = Table()
    table.ask("db", 3)
    assert [table.ask("db", 1, mode=modes[0]), table.ask("db", 2), table.ask("db", 1, mode=modes[1])] == ["waiting"] * 3
    table.release("db", 3)
    told = {answer.request: answer.answer for answer in table.doc.answers}
    assert (told["r2"], told["r3"], told["r4"]) == ("granted", "waiting", "granted")
    assert [w.pid for w in table.doc.leases["db"].waiters] == [2]
    table.release("db", 1)
    assert table.holders("db") == [2]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "share", "release", "freed", "try"]), st.sampled_from("abc"), st.integers(1, 5)
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_whatever_happens_nobody_overlaps_and_nobody_waits_for_nothing(steps: list[tuple[str, str, int]]) -> None:
    table = Table()
    for step, name, who in steps:
        if step in ("ask", "share", "try"):
            table.ask(name, who, mode="shared" if step == "share" else "exclusive", wait=step != "try")
        else:
            table.say("released" if step == "release" else "freed", name, who)
        for lease in table.doc.leases.values():
            modes = [h.mode for h in lease.holders]
            assert modes, "where somebody waits somebody holds"
            assert len(modes) == 1 or set(modes) == {"shared"}
            assert len({h.owner for h in lease.holders}) == len(modes)
        for who_waits in range(1, 6):
            assert leases.describe_cycle(table.doc, f"{who_waits}:1@h") == ""


def test_the_table_is_bounded() -> None:
    table = Table()
    for n in range(leases.MAX_WAITERS + 20):
        table.ask("db", n + 1)
    assert len(table.doc.leases["db"].waiters) == leases.MAX_WAITERS
    assert table.doc.answers[-1].answer == "refused"
    assert len(table.doc.answers) <= leases.MAX_ANSWERS


# ── owners ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def held_by(process: subprocess.Popen[bytes]) -> LeaseEntry:
    owner = leases.owner_of(process.pid)
    assert owner
    return LeaseEntry(
        owner=owner.owner, pid=owner.pid, start=owner.start, machine=owner.machine, host="", boot=owner.boot, mode="exclusive",
        at=0, until=NOON, ttl=1, request="r", project="/p", within=[], why="",
    )  # fmt: skip


def test_liveness_is_pid_and_start_time_and_not_a_zombie() -> None:
    """C5, D6: a reused pid, a zombie and another boot are not the owner; a live one is never robbed by time."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    entry = held_by(process)
    try:
        assert leases.why_lost(entry, NOON * 2) == "", "its time is up, but it lives"
        assert "another one" in leases.why_lost(replace(entry, start=entry.start + 1), NOON)
        assert "restarted" in leases.why_lost(replace(entry, boot="another"), NOON)
        assert leases.why_lost(replace(entry, machine="elsewhere"), NOON - 1) == ""
        assert leases.why_lost(replace(entry, machine="elsewhere"), NOON + 1) == "its time was up"
    finally:
        process.kill()
    while leases.start_time(process.pid) is not None:
        pass  # The kernel takes a moment; then it is a zombie until we wait for it.
    assert "is gone" in leases.why_lost(entry, NOON)
    process.wait()
    assert "is gone" in leases.why_lost(entry, NOON)
    assert leases.owner_of(0) is None
    assert leases.owner_of(-1) is None


def test_a_lease_waits_for_what_runs_under_it() -> None:
    """The wrapper is gone, but what it started carries its owner's name; a record of another machine's boot does not count."""
    wrapper = subprocess.Popen(["sleep", "600"])
    entry = replace(held_by(wrapper), runs=True)
    wrapper.kill()
    wrapper.wait()
    assert "is gone" in leases.why_lost(entry, NOON)
    env = {**os.environ, LEASE_OWNERS_VARIABLE: f"1:1@other {entry.owner}"}
    started = subprocess.Popen(["sleep", "600"], env=env)
    try:
        assert leases.why_lost(entry, NOON) == ""
        assert "is gone" in leases.why_lost(replace(entry, runs=False), NOON), (
            "acquired, not run: nothing carries its name"
        )
    finally:
        started.kill()
        started.wait()
    assert "is gone" in leases.why_lost(entry, NOON)


def test_leases_from_before_machines_had_ids_are_known_by_the_host() -> None:
    process = subprocess.Popen(["sleep", "600"])
    old = replace(held_by(process), machine="", host=machine.local_host_name())
    process.kill()
    process.wait()
    assert "is gone" in leases.why_lost(old, NOON - 1)
    assert leases.why_lost(replace(old, host="elsewhere"), NOON - 1) == ""


def test_the_watch_frees_what_the_dead_hold_and_wait_for(stage: Stage) -> None:
    process = subprocess.Popen(["sleep", "600"])
    owner = leases.owner_of(process.pid)
    assert owner
    stage.say("project.lease_asked", name="db", request="r1", **msgspec.structs.asdict(owner))
    stage.say("project.lease_asked", name="db", request="r2", wait=True, owner="9:9@elsewhere", pid=9, host="elsewhere")
    process.kill()
    process.wait()
    reader = stage.store.reader()
    events = list(leases.free_lost(LEASES.load(reader, ALL), stage.now))
    assert [e.data.owner for e in events] == [owner.owner]
    stage.engine.handle(events)
    doc = LEASES.load(reader, ALL)
    assert doc
    assert [h.owner for h in doc.leases["db"].holders] == ["9:9@elsewhere"]
    reader.close()


CYCLES = """
import sys, os, time
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from tests.kit import World
from tests.features.project.daemon_calls import command, view
world = World(Path(sys.argv[1]))
os.chdir(world.paths.run)
inside = Path(sys.argv[1]) / "inside"
last = 0
for n in range(int(sys.argv[2])):
    told = command(world, "project.acquire", lease="x", pid=os.getpid(), exactly=True, wait=True)
    while told["answer"] == "waiting":
        time.sleep(0.002)
        told |= view(world, "project.lease_answer", lease="x", request=told["request"])
    assert told["answer"] == "granted", told
    assert told["token"] > last, "fencing tokens only grow"
    last = told["token"]
    fd = os.open(inside, os.O_CREAT | os.O_EXCL)  # fails if the other one is inside
    os.close(fd)
    inside.unlink()
    command(world, "project.release", lease="x", pid=os.getpid(), exactly=True)
print("done")
"""


def test_two_processes_in_hundreds_of_cycles_never_overlap(world: World) -> None:
    """Issue 5: real processes, the real daemon; the file inside can be made by one at a time only."""
    world.start()
    root = str(Path(__file__).parents[4])
    words = [sys.executable, "-c", CYCLES, str(world.root), "300", root]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=170)[0] for process in running] == ["done\n", "done\n"]
    assert len(world.events(kinds=("project.lease_asked",))) == 600
