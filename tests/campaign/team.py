"""A team in a simulated world: seeded clocks and network over the pure core that the server and the forwarder use.

Machines append to their logs, send, crash, are restored from backups (the log alone, or the whole state folder as in a
snapshot of a virtual machine), are copied, and lose their network; messages are dropped, doubled, delayed and overtake one
another; clocks are wrong and run unequally fast; the server comes back from a backup. At the end the network heals, and the
server must have every shared event once, of every stream, in its tenant; leases must never have been relied on twice.

Nothing goes from one tenant to another except through the server, so each has a clockwork of its own, and all of them are run
from one partition or restore of the server to the next.
"""

import contextlib
import gc
import heapq
import itertools
import multiprocessing
import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from math import log
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import msgspec

from holdfast_team import core
from holdfast_team.protocol import Batch, FeedItem, LeaseRequest, SharedEvent

FULL = 10_000
MACHINES = 1_000
END_MS = 360_000
"""After this the network is whole and nothing new happens."""
QUIET_MS = 110_000
"""Several signs of life of every machine: the least that a machine needs to learn that the server was restored."""
SHARED = 0.7
LEASE_NAMES = 3
DRIFT, YEAR_MS = 0.03, 365 * 86_400_000
# Events of one act of work, and the most in a batch: a machine that was away needs several, as real ones do.
MOST_WORK, MOST_IN_BATCH = 8, 12
# Milliseconds on the average: between two acts of work, and until a machine without an answer sends again.
WORK_MS, PATIENCE_MS = 15_000, 7_000
# At least so long after a message comes an empty one, as a sign of life.
BEAT_MS = 8_000
Act = Callable[[], Any]


class Clockwork:
    """What happens when: a heap of acts by true time."""

    def __init__(self) -> None:
        self.now = 0
        self._acts: list[tuple[int, int, Act]] = []
        self._numbers = itertools.count()

    def later(self, ms: float, act: Act) -> None:
        heapq.heappush(self._acts, (self.now + int(ms), next(self._numbers), act))

    def run(self, until: int) -> None:
        acts, pop = self._acts, heapq.heappop
        while acts and acts[0][0] <= until:
            self.now, _, act = pop(acts)
            act()
        self.now = until


class Server:
    """What is committed. Requests are handled one after the other, as the locked row of a machine makes them."""

    def __init__(self) -> None:
        self.cursors: dict[tuple[str, str], core.MachineCursor] = {}
        self.events: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
        self.leases: dict[tuple[str, str], core.Lease] = {}
        self.feeds: dict[str, list[FeedItem]] = {}
        self.accepted_tokens: dict[tuple[str, str], int] = {}
        self.backup: tuple[dict[Any, Any], dict[Any, Any]] | None = None
        self.restored = False

    def copy_events(self) -> tuple[dict[Any, Any], dict[Any, Any]]:
        return dict(self.cursors), {key: list(events) for key, events in self.events.items()}

    def restore_events(self) -> None:
        """The database came back from a backup: what it had acknowledged since must come again."""
        if self.backup:
            self.cursors, self.events = self.backup
            self.backup, self.restored = None, True

    def take_batch(self, tenant: str, machine: str, batch: Batch) -> core.Accepted:
        key = tenant, machine
        have = self.cursors.get(key, core.MachineCursor())
        stored: set[str] = set()
        if needed := core.keys_needed(have, batch):
            stored = {one for _, seq, one in self.events.get(key, ()) if needed[0] <= seq <= needed[1]}
        taken = core.accept_batch(have, batch, stored)
        if taken.gap or taken.copied:
            # Who sends is kept all the same; where the machine stands is not.
            self.cursors[key] = msgspec.structs.replace(have, run=taken.cursor.run, past_runs=taken.cursor.past_runs)
        else:
            self.cursors[key] = taken.cursor
            self.events.setdefault(key, []).extend((batch.stream, e.seq, e.key) for e in taken.fresh)
        return taken

    def take_lease(self, tenant: str, machine: str, request: LeaseRequest, now: int) -> tuple[core.Lease, str]:
        key = tenant, request.name
        lease, outcome = core.change_lease(self.leases.get(key, core.Lease()), request, machine, machine, now)
        assert lease.token >= self.leases.get(key, core.Lease()).token, "a token went back"
        self.leases[key] = lease
        return lease, outcome

    def add_item(self, tenant: str) -> None:
        feed = self.feeds.setdefault(tenant, [])
        feed.append(FeedItem(id=len(feed) + 1, kind="rule"))

    def write_guarded(self, tenant: str, name: str, token: int) -> bool:
        """What a lease protects: it refuses a token older than one it has seen."""
        newest = self.accepted_tokens.get((tenant, name), 0)
        self.accepted_tokens[tenant, name] = max(newest, token)
        return token >= newest


class Snapshot(NamedTuple):
    log: tuple[tuple[str, SharedEvent | None], ...]
    sent: int
    saved: core.Upstream
    received: int


class Machine:
    def __init__(self, world: "World", tenant: str, name: str) -> None:
        self.world, self.tenant, self.name = world, tenant, name
        self.clock, self.chance, self.random = world.clocks[tenant], world.chance, world.chance.random
        self.rate, self.offset = 1 + self.chance.uniform(-DRIFT, DRIFT), self.chance.randrange(-YEAR_MS, YEAR_MS)
        self.log: list[tuple[str, SharedEvent | None]] = []
        """Keys, with the event as it is sent where it is shared."""
        self.backup = 0
        self.snapshot: Snapshot | None = None
        self.sent: list[tuple[int, str]] = []
        self.saved = self.state = core.Upstream(stream=1)
        self.received: list[int] = []
        self.held: dict[str, tuple[core.HeldLease, int]] = {}
        self.given_back: dict[str, int] = {}
        self.life = 0
        self.session = self.run = f"run-{next(world.runs)}"
        self.waiting = self.copied = False
        self.looked = 0  # When it last sent something.

    def local_now(self) -> int:
        return int(self.clock.now * self.rate) + self.offset

    def true_time(self, local: int) -> float:
        return (local - self.offset) / self.rate

    # ── its own life ───────────────────────────────────────────────────────────────────────────────────────────────

    def work(self) -> None:
        random, clock = self.random, self.clock
        if clock.now >= END_MS:
            return
        for _ in range(1 + int(random() * MOST_WORK)):
            self.add_event(random() < SHARED)
        clock.later(random() * 3_000, self.look)
        if (luck := random()) < self.FATEFUL:
            self.be_struck(luck)
        clock.later(-WORK_MS * log(1 - random()), self.work)

    def be_struck(self, luck: float) -> None:
        """What seldom happens to a machine; one draw for all, at most one of them at a time."""
        for share, act in self.FATES:
            if luck < share:
                act(self)
                return
            luck -= share

    def take_snapshot(self) -> None:
        self.snapshot = Snapshot(tuple(self.log), len(self.sent), self.saved, len(self.received))

    def add_event(self, shared: bool) -> None:
        key, seq = f"{self.name}-{next(self.world.keys)}", len(self.log) + 1
        self.log.append((key, SharedEvent(seq=seq, key=key, at=0, kind="k") if shared else None))
        if shared:
            self.world.shared_keys[key] = seq

    def crash(self) -> None:
        self.life += 1
        self.run = f"run-{next(self.world.runs)}"
        self.state, self.waiting = self.saved, False
        for name in list(self.held):
            self.end_lease(name)

    def return_to_backup(self) -> None:
        """Also the newest part of the log is gone."""
        self.crash()
        del self.log[self.backup or len(self.log) :]

    def return_to_snapshot(self) -> None:
        """The whole state folder as it was: the log, and all that the machine remembers of what left."""
        if self.snapshot and not self.copied:
            self.crash()
            old = self.snapshot
            self.log, self.backup = list(old.log), min(self.backup, len(old.log))
            self.state = self.saved = old.saved
            del self.sent[old.sent :], self.received[old.received :]

    def beat(self) -> None:
        """Its sign of life, an empty batch where there is nothing to send, and its question for news."""
        if self.clock.now - self.looked > BEAT_MS:
            self.look()
        if self.clock.now >= END_MS or self.random() < 0.6:
            self.poll_feed()
        if self.clock.now < END_MS + QUIET_MS:
            self.clock.later(BEAT_MS + self.random() * 20_000, self.beat)

    def look(self) -> None:
        if self.copied or (self.waiting and self.random() < 0.7):
            return  # It times out some time.
        self.notice_restore()
        state, head = self.state, len(self.log)
        shared = [event for _, event in self.log[state.cursor :] if event]
        batch = core.build_batch(state, head, shared, (), "facts", 0)
        batch = Batch(
            stream=batch.stream, after=batch.after, upto=batch.upto, restores=batch.restores, events=batch.events,
            common_event=state.common_key, run=self.run, after_event=self.key_at(batch.after), upto_event=self.key_at(batch.upto),
        )  # fmt: skip
        if batch.upto > state.sent:
            self.sent += [(event.seq, event.key) for event in batch.events if event.seq > state.sent]
            self.state = core.before_sending(state, batch.upto, batch.upto_event)
            self.saved = msgspec.structs.replace(self.saved, sent=self.state.sent, sent_key=self.state.sent_key)
        self.waiting, self.looked = True, self.clock.now
        self.call(
            lambda: self.world.server.take_batch(self.tenant, self.name, batch), self.take_answer, self.send_again
        )

    def send_again(self, asked: int) -> None:
        """No answer came, or none yet, and nothing else was sent since."""
        if self.waiting and self.looked == asked:
            self.waiting = False
            self.look()

    def notice_restore(self) -> None:
        if core.was_replaced(self.state, len(self.log), self.key_at(self.state.sent)):
            self.begin_stream()

    def key_at(self, seq: int) -> str:
        return self.log[seq - 1][0] if 0 < seq <= len(self.log) else ""

    def begin_stream(self, server: core.MachineCursor = core.MachineCursor()) -> None:  # noqa: B008 - frozen
        bound = core.restore_bound(self.state, server.stream, server.restores)
        common = max((seq for seq, key in self.sent if seq <= bound and self.key_at(seq) == key), default=0)
        self.state = self.saved = core.after_restore(self.state, common, self.key_at(common), server.stream)

    def take_answer(self, answer: core.Accepted) -> None:
        self.waiting = False
        cursor = answer.cursor
        if answer.copied:
            self.copied = True
            return
        place = cursor.stream, cursor.cursor
        if answer.gap and core.is_other_log(self.state, *place, cursor.key, len(self.log), self.key_at(cursor.cursor)):
            self.begin_stream(cursor)
        elif self.state.stream == cursor.stream:
            self.state = core.after_answer(self.state, *place, answer.gap)
            if self.random() < 0.9:
                self.saved = self.state
        if self.state.cursor != len(self.log):
            self.clock.later(500 + self.random() * 3_500, self.look)

    def poll_feed(self) -> None:
        after = self.state.feed
        self.call(lambda: self.world.server.feeds.get(self.tenant, [])[after : after + 50], self.take_items)

    def take_items(self, items: list[FeedItem]) -> None:
        """The event and the cursor are on disk together."""
        for item in core.new_items(self.state, items):
            self.received.append(item.id)
            self.state = msgspec.structs.replace(self.state, feed=item.id)
            self.saved = msgspec.structs.replace(self.saved, feed=item.id)

    # ── leases ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask_lease(self) -> None:
        name = f"lease-{self.chance.randrange(LEASE_NAMES)}"
        self.send_lease(LeaseRequest(act="acquire", project="p", name=name, session=self.session, ttl_s=30))

    def send_lease(self, request: LeaseRequest) -> None:
        asked, life = self.local_now(), self.life

        def take(answer: tuple[core.Lease, str]) -> None:
            lease, outcome = answer
            if life == self.life and outcome in ("granted", "renewed"):
                over = self.given_back.get(request.name, 0)
                if held := core.rely_on_lease(lease.token, lease.ttl_s, asked, over):
                    self.rely(request.name, held)

        self.call(lambda: self.world.server.take_lease(self.tenant, self.name, request, self.clock.now), take)

    def rely(self, name: str, held: core.HeldLease) -> None:
        before = self.held.get(name)
        if held.until <= self.local_now() or (before and before[0].until >= held.until):
            return
        if before and before[0].until < self.local_now():
            self.end_lease(name)
            before = None
        since = before[1] if before and before[0].token == held.token else self.clock.now
        self.held[name] = held, since
        assert self.world.server.write_guarded(self.tenant, name, held.token), "an older token after a newer one"
        renew = LeaseRequest(act="renew", project="p", name=name, session=self.session, token=held.token)
        done = LeaseRequest(act="release", project="p", name=name, session=self.session, token=held.token)
        more = self.random() < 0.6
        self.clock.later(10_000, lambda: self.send_lease(renew) if more else self.give_back(done))

    def give_back(self, request: LeaseRequest) -> None:
        self.end_lease(request.name)
        self.given_back[request.name] = request.token
        self.send_lease(request)

    def end_lease(self, name: str) -> None:
        if name in self.held:
            held, since = self.held.pop(name)
            until = min(self.clock.now, self.true_time(held.until))
            if until > since:
                self.world.relied.setdefault((self.tenant, name), []).append((since, until, self.session))

    # ── the network ────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, act: Act, take: Callable[[Any], None], unanswered: Callable[[int], None] | None = None) -> None:
        """There and back, each with its own luck; an answer to a process that died is not heard. `unanswered` is done some
        time after a message that is lost or late."""
        life, asked = self.life, self.clock.now

        def there() -> None:
            try:
                answer = act()
            except core.BatchRefused:
                return
            if not self.send(lambda: take(answer) if life == self.life else None):
                remind()

        def remind() -> None:
            if unanswered and life == self.life:
                self.clock.later(-PATIENCE_MS * log(1 - self.random()), lambda: unanswered(asked))

        if not self.send(there):
            remind()

    def send(self, act: Act) -> bool:
        """Whether it arrives soon."""
        random, clock = self.random, self.clock
        if clock.now >= END_MS:
            clock.later(-150 * log(1 - random()), act)
            return True
        luck = random()
        if luck < 0.1 or self.name in self.world.cut:
            return False
        slow = random() < 0.05
        clock.later((-20_000 if slow else -150) * log(1 - random()), act)
        if luck < 0.19:
            clock.later((-20_000 if random() < 0.05 else -150) * log(1 - random()), act)
        return not slow

    FATES: tuple[tuple[float, Callable[["Machine"], None]], ...] = (
        (0.03, lambda self: setattr(self, "backup", len(self.log))),
        (0.03, take_snapshot),
        (0.035, crash),
        (0.01, return_to_backup),
        (0.02, return_to_snapshot),
        (0.005, lambda self: self.world.copy_machine(self)),
        (0.2, ask_lease),
        (0.03, lambda self: self.world.server.add_item(self.tenant)),
    )
    """How often each, for every act of work."""
    FATEFUL = sum(share for share, _ in FATES)


class World:
    def __init__(self, seed: int, machines: int) -> None:
        self.chance = random.Random(seed)
        self.server: Server = Server()
        self.keys, self.runs = itertools.count(1), itertools.count(1)
        self.shared_keys: dict[str, int] = {}
        """Every event that any machine ever shared, with its number."""
        self.relied: dict[tuple[str, str], list[tuple[float, float, str]]] = {}
        self.cut: set[str] = set()
        self.clocks = {f"tenant-{n}": Clockwork() for n in range(max(2, machines // 50))}
        tenants = list(self.clocks)
        self.machines = [Machine(self, self.chance.choice(tenants), f"machine-{n}") for n in range(machines)]

    def copy_machine(self, machine: Machine) -> None:
        """Its state folder is put onto a second machine, which goes on from there under the same id."""
        if any(one.name == machine.name for one in self.machines if one is not machine):
            return
        twin = Machine(self, machine.tenant, machine.name)
        twin.log, twin.sent, twin.received = list(machine.log), list(machine.sent), list(machine.received)
        twin.state = twin.saved = machine.saved
        self.machines.append(twin)
        self.begin(twin)

    def begin(self, machine: Machine) -> None:
        for act in (machine.work, machine.beat):
            machine.clock.later(self.chance.uniform(0, 5_000), act)

    def partition(self) -> None:
        """Some machines lose their network, others get it back."""
        self.cut = {m.name for m in self.machines if self.chance.random() < 0.2}
        if self.chance.random() < 0.2:
            self.server.backup = self.server.copy_events()
        elif self.chance.random() < 0.1:
            self.server.restore_events()

    def run(self) -> int:
        for machine in self.machines:
            self.begin(machine)
        now = 0.0
        while now < END_MS:
            self.partition()
            now += self.chance.uniform(5_000, 35_000)
            self.run_tenants(int(now))
        self.run_tenants(END_MS + QUIET_MS + 60_000)
        strangers = {*self.server.events, *self.server.cursors} - {(one.tenant, one.name) for one in self.machines}
        assert not strangers, f"in another tenant: {sorted(strangers)[:3]}"
        for machine in self.machines:
            for name in list(machine.held):
                machine.end_lease(name)
            self.check_machine(machine)
        self.check_leases()
        return sum(len(events) for events in self.server.events.values())

    def run_tenants(self, until: int) -> None:
        for clock in self.clocks.values():
            clock.run(until)

    def fall_apart(self) -> None:
        for part in (*self.machines, *self.clocks.values()):
            vars(part).clear()

    def check_machine(self, machine: Machine) -> None:
        stored = self.server.events.get((machine.tenant, machine.name), [])
        numbers = {key: seq for _, seq, key in stored}
        assert len(numbers) == len(stored), f"{machine.name}: doubled"
        assert numbers.items() <= self.shared_keys.items(), f"{machine.name}: mixed up or leaked"
        # A copy that was told to stop keeps what it has not sent in its log, until a person joins it anew; nor does it hear
        # that the server was restored.
        machine.notice_restore()
        stopped = 0 if self.server.restored else machine.state.cursor
        upto = stopped if machine.copied else len(machine.log)
        lost = [key for key, event in machine.log[:upto] if event and key not in numbers]
        assert not lost, f"{machine.name}: {len(lost)} lost"
        everything = list(range(1, len(self.server.feeds.get(machine.tenant, [])) + 1))
        assert machine.received == everything, f"{machine.name}: feed {machine.received[-3:]} of {len(everything)}"

    def check_leases(self) -> None:
        for name, spans in self.relied.items():
            spans.sort()
            for (_, until, holder), (since, _, next_holder) in itertools.pairwise(spans):
                assert until <= since or holder == next_holder, f"{name}: {holder} and {next_holder} both relied on it"


def run(_folder: Path, size: int, machines: int = 0) -> str:
    """`size` worlds; HOLDFAST_TEAM_SEED begins elsewhere, HOLDFAST_TEAM_MACHINES makes them smaller, HOLDFAST_TEAM_WORLDS fewer."""
    first = int(os.environ.get("HOLDFAST_TEAM_SEED", "0"))
    size = min(size, int(os.environ.get("HOLDFAST_TEAM_WORLDS", size)))
    machines = machines or int(os.environ.get("HOLDFAST_TEAM_MACHINES", str(MACHINES)))
    events = spans = 0
    for stored, relied in _run_worlds(range(first, first + size), machines):
        events, spans = events + stored, spans + relied
    return f"{size} worlds of {machines} machines, {events} events, {spans} leases: 0 lost, 0 doubled, 0 leaked, 0 held twice"


def _run_worlds(seeds: range, machines: int) -> Iterator[tuple[int, int]]:
    # A few small worlds, as in tests, are not worth processes.
    if len(seeds) * machines < 10_000:
        yield from map(_run_world, seeds, itertools.repeat(machines))
        return
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_run_world, seeds, itertools.repeat(machines), chunksize=4)


def _run_world(seed: int, machines: int) -> tuple[int, int]:
    """(events that the server has, times that a lease was relied on)."""
    with _simulated():
        world = World(seed, machines)
        try:
            events = world.run()
        except AssertionError as failure:
            raise AssertionError(f"seed {seed}: {failure}") from failure
        spans = sum(map(len, world.relied.values()))
        world.fall_apart()
        return events, spans


@contextlib.contextmanager
def _simulated() -> Iterator[None]:
    """Batches are small. A large world is all alive until its end, and falls apart then: looking for garbage in it over and
    over took a third of the time."""
    gc.disable()
    try:
        with mock.patch.object(core, "MOST_EVENTS", MOST_IN_BATCH):
            yield
    finally:
        gc.enable()
