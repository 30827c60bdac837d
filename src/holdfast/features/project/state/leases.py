"""Leases: holders, waiters, and deadlock detection."""

# One document holds all of them, so that a circle shows. Pure but for the questions about processes at the end: an
# event in, the table after it out. The fencing token of a lease is the number of the event that granted it: it only
# grows, so a store can refuse the writes of an owner who lost the lease without knowing it.

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from holdfast.core.caller import LEASE_OWNERS_VARIABLE
from holdfast.core.event import Event, own_event
from holdfast.core.kinds.project_events import LeaseAsked, LeaseFreed, LeaseKept, LeaseLock, LeasePayload, LeaseReleased
from holdfast.core.machine import boot_id, is_here, look_up_process, machine_id, pids_marked
from holdfast.features.project.state import Lease, LeaseAnswer, LeaseEntry, LeaseTable

# Bounds of the table, so that a document cannot grow without limit.
MAX_LEASES, MAX_HOLDERS, MAX_WAITERS, MAX_ANSWERS, MAX_WITHIN = 500, 64, 64, 64, 8
MAX_LISTED = 8
DEFAULT_TTL_MS = 300_000
LEASE_KINDS = frozenset((LeaseAsked.KIND, LeaseKept.KIND, LeaseReleased.KIND, LeaseFreed.KIND))


def reduce_leases(table: LeaseTable | None, event: Event) -> LeaseTable:
    table = table or LeaseTable()
    data: LeasePayload = event.data
    if not data.name:
        return table
    table = replace(table, at=event.at, touched=data.name, seq=event.seq)
    if isinstance(data, LeaseAsked):
        return _request_lease(table, event, data)
    return _renew_lease(table, event, data) if isinstance(data, LeaseKept) else _release_lease(table, event, data)


def _request_lease(table: LeaseTable, event: Event, data: LeaseAsked) -> LeaseTable:
    name, entry = data.name, _lease_entry(event, data)
    lease = _lease_named(table, name)
    if held := next((holder for holder in lease.holders if holder.owner == entry.owner), None):
        return _ask_again(table, data, entry, held)
    # Nobody overtakes: behind a waiter even a shared lease waits.
    if not lease.waiters and _fits_holders(lease, entry):
        held = replace(entry, token=event.seq)
        return _record_answer(_put_lease(table, name, replace(lease, holders=[*lease.holders, held])), held, "granted")
    if full := _why_full(table, lease, name):
        return _record_answer(table, entry, "refused", why=full)
    return _wait(table, data, entry, _in_line(lease.waiters, entry), _describe_holders(name, lease))


def _wait(table: LeaseTable, data: LeaseAsked, entry: LeaseEntry, line: list[LeaseEntry], why: str = "") -> LeaseTable:
    """Puts the entry in line, unless it would not wait, or would come to wait for itself."""
    lease = _lease_named(table, data.name)
    if not data.wait:
        return _record_answer(table, entry, "busy", why=_describe_holders(data.name, lease))
    # Tested on the table as it would be; a circle leaves the table as it was.
    waiting = _put_lease(table, data.name, replace(lease, waiters=line))
    circle = describe_cycle(waiting, entry.owner)
    return _record_answer(table, entry, "refused", circle) if circle else _record_answer(waiting, entry, "waiting", why)


def _in_line(waiters: list[LeaseEntry], entry: LeaseEntry) -> list[LeaseEntry]:
    """At the end; who waits already gets it for both requests at once, or it would come to wait behind itself."""
    mine = [n for n, one in enumerate(waiters) if one.owner == entry.owner]
    if not mine:
        return [*waiters, entry]
    modes = {entry.mode, *(waiters[n].mode for n in mine)}
    mode = "exclusive" if "exclusive" in modes else "shared"
    line = [replace(one, mode=mode) if n in mine else one for n, one in enumerate(waiters)]
    return [*line[: mine[-1] + 1], replace(entry, mode=mode), *line[mine[-1] + 1 :]]


def _ask_again(table: LeaseTable, data: LeaseAsked, entry: LeaseEntry, held: LeaseEntry) -> LeaseTable:
    """Renews a lease its holder asks for again. From shared to exclusive only when nobody shares it."""
    lease = _lease_named(table, data.name)
    if held.mode == "shared" and entry.mode == "exclusive":
        if len(lease.holders) > 1:
            # Before all who wait: a holder that waits behind them would wait for itself.
            return _wait(table, data, entry, [entry, *lease.waiters])
        held = replace(held, mode="exclusive")
    held = replace(held, until=entry.until, ttl=entry.ttl, request=entry.request)
    others = [one for one in lease.holders if one.owner != held.owner]
    return _record_answer(_put_lease(table, data.name, replace(lease, holders=[*others, held])), held, "granted")


def _renew_lease(table: LeaseTable, event: Event, data: LeasePayload) -> LeaseTable:
    lease = _lease_named(table, data.name)
    holders = [replace(h, until=event.at + h.ttl) if h.owner == data.owner else h for h in lease.holders]
    return _put_lease(table, data.name, replace(lease, holders=holders))


def _release_lease(table: LeaseTable, event: Event, data: LeasePayload) -> LeaseTable:
    """Also a waiter that gives up. Whoever is next gets it in the same moment."""
    lease = _lease_named(table, data.name)
    left = Lease(
        [h for h in lease.holders if h.owner != data.owner], [w for w in lease.waiters if w.owner != data.owner]
    )
    return _grant_waiters(table, event, data.name, left)


def _grant_waiters(table: LeaseTable, event: Event, name: str, lease: Lease) -> LeaseTable:
    granted = []
    while lease.waiters and _fits_holders(lease, lease.waiters[0]):
        first, *rest = lease.waiters
        # The time begins now, not when it was asked for.
        held = replace(first, token=event.seq, at=event.at, until=event.at + first.ttl)
        others = [h for h in lease.holders if h.owner != first.owner]
        lease = Lease([*others, held], rest)
        granted.append(held)
    table = _put_lease(table, name, lease)
    for held in granted:
        table = _record_answer(table, held, "granted")
    return table


def _fits_holders(lease: Lease, entry: LeaseEntry) -> bool:
    others = [h for h in lease.holders if h.owner != entry.owner]
    if len(others) >= MAX_HOLDERS:
        return False
    return not others or (entry.mode == "shared" and all(h.mode == "shared" for h in others))


def _why_full(table: LeaseTable, lease: Lease, name: str) -> str:
    if len(lease.waiters) >= MAX_WAITERS:
        return f"{MAX_WAITERS} wait for {name} already"
    if name not in table.leases and len(table.leases) >= MAX_LEASES:
        return f"there are {MAX_LEASES} leases already"
    return ""


# ── circles ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class WaitStep(msgspec.Struct, frozen=True):
    """`owner` waits for `name`, which `other` has, or for what it started itself."""

    owner: str
    name: str
    how: str
    other: str


STARTED = "started"
"""A command that `lease run` runs may ask for another lease: its owner waits for it to end."""


def describe_cycle(table: LeaseTable, start: str) -> str:
    """The circle in which `start` would wait for itself, in words; empty when there is none."""
    path = find_cycle(table, start)
    return "that would be a deadlock: " + "; ".join(_describe_step(step) for step in path) if path else ""


def _describe_step(step: WaitStep) -> str:
    owner, other = _process_label(step.owner), _process_label(step.other)
    if step.how == STARTED:
        return f"{owner} waits for {other}, which it started and which waits for {step.name}"
    return f"{owner} waits for {step.name}, which {other} {step.how}"


def find_cycle(table: LeaseTable, start: str) -> list[WaitStep]:
    """The shortest one. Step by step, not by recursion: thousands may wait in a line."""
    paths: dict[str, list[WaitStep]] = {start: []}
    frontier = [start]
    while frontier:
        owner = frontier.pop(0)
        for step in _waits_for(table, owner):
            path = [*paths[owner], step]
            if step.other == start:
                return path
            if step.other not in paths:
                paths[step.other] = path
                frontier.append(step.other)
    return []


def _waits_for(table: LeaseTable, owner: str) -> Iterator[WaitStep]:
    """The holders of what it waits for, those before it in the line, and what it started itself and waits for."""
    for name, lease in table.leases.items():
        # A wrapper waits for the command that it started, which may wait for another lease.
        yield from (WaitStep(owner, name, STARTED, w.owner) for w in lease.waiters if owner in w.within)
        position = next((n for n, w in enumerate(lease.waiters) if w.owner == owner), None)
        if position is None:
            continue
        me = lease.waiters[position]
        yield from (WaitStep(owner, name, "holds", h.owner) for h in _conflicting_entries(me, lease.holders))
        before = _conflicting_entries(me, lease.waiters[:position])
        yield from (WaitStep(owner, name, "waits for before it", w.owner) for w in before)


def _conflicting_entries(entry: LeaseEntry, others: Iterable[LeaseEntry]) -> Iterator[LeaseEntry]:
    for other in others:
        if other.owner != entry.owner and "exclusive" in (entry.mode, other.mode):
            yield other


def _process_label(owner: str) -> str:
    return f"process {owner.partition(':')[0]}"


# ── small parts ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _lease_entry(event: Event, data: LeaseAsked) -> LeaseEntry:
    ttl = data.ttl_ms if data.ttl_ms > 0 else DEFAULT_TTL_MS
    same = {name: getattr(data, name) for name in ("owner", "pid", "start", "host", "machine", "boot", "runs")}
    return LeaseEntry(
        **same,
        mode="shared" if data.mode == "shared" else "exclusive",
        at=event.at,
        until=event.at + ttl,
        ttl=ttl,
        request=data.request or event.key,
        project=event.project,
        within=[owner[:200] for owner in data.within][:MAX_WITHIN],
        why=data.why[:200],
    )


def _lease_named(table: LeaseTable, name: str) -> Lease:
    return table.leases.get(name) or Lease()


def _put_lease(table: LeaseTable, name: str, lease: Lease) -> LeaseTable:
    leases = {**table.leases, name: lease}
    if not lease.holders and not lease.waiters:
        del leases[name]
    return replace(table, leases=leases)


def _record_answer(table: LeaseTable, entry: LeaseEntry, answer: str, why: str = "") -> LeaseTable:
    """What became of a request, for the one who asked to read; the last few of them."""
    lease_answer = LeaseAnswer(request=entry.request, answer=answer, token=entry.token, until=entry.until, why=why)
    others = [one for one in table.answers if one.request != entry.request]
    return replace(table, answers=[*others, lease_answer][-MAX_ANSWERS:])


def _describe_holders(name: str, lease: Lease) -> str:
    pids = ", ".join(str(h.pid or h.owner) for h in lease.holders[:5])
    return f"{name} is held by process {pids}" if lease.holders else f"others wait for {name} already"


def lock_of(lease: Lease | None) -> LeaseLock:
    """The documented form of a lock: who holds it now and until when."""
    if lease is None or not lease.holders:
        return LeaseLock()
    first = lease.holders[0]
    return LeaseLock(
        **{name: getattr(first, name) for name in ("pid", "at", "why", "mode", "token")},
        until=max(h.until for h in lease.holders),
        holders=[h.pid for h in lease.holders][:MAX_LISTED],
        waiters=[w.pid for w in lease.waiters][:MAX_LISTED],
    )


# ── owners are processes ─────────────────────────────────────────────────────────────────────────────────────────────


class Owner(msgspec.Struct, frozen=True):
    """A process, identified by its start time and boot."""

    owner: str
    pid: int
    start: int
    machine: str
    boot: str


def owner_of(pid: int) -> Owner | None:
    """None when there is no such process."""
    start = start_time(pid)
    return None if start is None else Owner(f"{pid}:{start}@{machine_id()}", pid, start, machine_id(), boot_id())


def why_lost(entry: LeaseEntry, now: int) -> str:
    """Why this owner counts as gone; empty while it may live. Time alone decides only where nothing else can."""
    if not entry.pid or not is_here(entry.machine, entry.host):
        return "its time was up" if now > entry.until else ""
    # After a restart the same pid can only be another process.
    if entry.boot and entry.boot != boot_id():
        return f"the machine was restarted since process {entry.pid} took it"
    return _why_process_gone(entry)


def _why_process_gone(entry: LeaseEntry) -> str:
    try:
        start = start_time(entry.pid)
    except OSError:
        return ""  # The kernel would not say.
    # A command outlives a wrapper that was killed, and still works on what the lease is for.
    if start == entry.start or (entry.runs and pids_marked(LEASE_OWNERS_VARIABLE, entry.owner)):
        return ""
    return f"process {entry.pid} is gone" if start is None else f"process {entry.pid} is another one now"


def start_time(pid: int) -> int | None:
    """When it was started, in the kernel's own count."""
    process = look_up_process(pid)
    return process.start if process else None


def free_lost(table: LeaseTable | None, now: int) -> Iterator[Event]:
    """Frees holders and waiters that are dead, or whose time is up where that cannot be known."""
    for name, lease in table.leases.items() if table else ():
        for entry in (*lease.holders, *lease.waiters):
            if why := why_lost(entry, now):
                freed = LeaseFreed(name=name, owner=entry.owner, why=f"{name} was freed: {why}")
                yield own_event(freed, now, project=entry.project)
