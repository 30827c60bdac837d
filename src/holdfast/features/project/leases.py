"""Who holds what, who waits for it, and nobody waits in a circle. One document holds them all, so that a circle shows.

Pure: an event in, the table after it out. The fencing token of a lease is the number of the event that granted it:
it only grows, so a store can refuse the writes of an owner who lost the lease without knowing it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.project.model import number

MOST_LEASES, MOST_HOLDERS, MOST_WAITERS, MOST_ANSWERS, MOST_WITHIN = 500, 64, 64, 64, 8
Entry = dict[str, Any]
"""`owner` (pid:start@host), `pid`, `start`, `host`, `boot`, `mode`, `at`, `until`, `ttl`, `token`, `request`, …"""
Lease = dict[str, Any]


def empty() -> Doc:
    return {"leases": {}, "answers": [], "at": 0, "touched": ""}


def reduce(doc: Doc | None, event: Event) -> Doc:
    doc = doc or empty()
    name = str(event.get("name") or "")
    if not name:
        return doc
    doc = {**doc, "at": event.at, "touched": name, "seq": event.seq}
    return TABLE[event.kind](doc, event, name)


def _asked(doc: Doc, event: Event, name: str) -> Doc:
    entry = _entry(event)
    lease = _lease(doc, name)
    if _mine(lease["holders"], entry["owner"]):
        return _again(doc, name, entry, event)
    if grantable(lease, entry):
        held = {**entry, "token": event.seq}
        return _answered(_put(doc, name, {**lease, "holders": [*lease["holders"], held]}), held, "granted")
    if full := _no_room(doc, lease, name):
        return _answered(doc, entry, "refused", why=full)
    if not event.get("wait"):
        return _answered(doc, entry, "busy", why=_held_by(name, lease))
    waiting = _put(doc, name, {**lease, "waiters": _in_line(lease["waiters"], entry)})
    if circle := cycle(waiting, entry["owner"]):
        return _answered(doc, entry, "refused", why=circle)
    return _answered(waiting, entry, "waiting", why=_held_by(name, lease))


def _in_line(waiters: list[Entry], entry: Entry) -> list[Entry]:
    """At the end; who waits already gets it for both requests at once, or it would come to wait behind itself."""
    mine = [n for n, one in enumerate(waiters) if one["owner"] == entry["owner"]]
    if not mine:
        return [*waiters, entry]
    modes = {entry["mode"], *(waiters[n]["mode"] for n in mine)}
    both = {"mode": "exclusive" if "exclusive" in modes else "shared"}
    line = [{**one, **both} if n in mine else one for n, one in enumerate(waiters)]
    return [*line[: mine[-1] + 1], {**entry, **both}, *line[mine[-1] + 1 :]]


def _again(doc: Doc, name: str, entry: Entry, event: Event) -> Doc:
    """Asked for once more by its holder: renewed. From shared to exclusive only when nobody shares it."""
    lease = _lease(doc, name)
    held = _mine(lease["holders"], entry["owner"])
    if held["mode"] == "shared" and entry["mode"] == "exclusive":
        if len(lease["holders"]) > 1:
            return _wait_to_upgrade(doc, name, entry, event)
        held = {**held, "mode": "exclusive"}
    held = {**held, "until": entry["until"], "ttl": entry["ttl"], "request": entry["request"]}
    others = [one for one in lease["holders"] if one["owner"] != held["owner"]]
    return _answered(_put(doc, name, {**lease, "holders": [*others, held]}), held, "granted")


def _wait_to_upgrade(doc: Doc, name: str, entry: Entry, event: Event) -> Doc:
    lease = _lease(doc, name)
    if not event.get("wait"):
        return _answered(doc, entry, "busy", why=_held_by(name, lease))
    waiting = _put(doc, name, {**lease, "waiters": [entry, *lease["waiters"]]})
    circle = cycle(waiting, entry["owner"])
    return _answered(doc, entry, "refused", why=circle) if circle else _answered(waiting, entry, "waiting")


def _kept(doc: Doc, event: Event, name: str) -> Doc:
    lease, owner = _lease(doc, name), str(event.get("owner"))
    holders = [{**h, "until": event.at + h["ttl"]} if h["owner"] == owner else h for h in lease["holders"]]
    return _put(doc, name, {**lease, "holders": holders})


def _released(doc: Doc, event: Event, name: str) -> Doc:
    """Also a waiter that gives up. Whoever is next gets it in the same moment."""
    lease, owner = _lease(doc, name), str(event.get("owner"))
    left = {
        "holders": [h for h in lease["holders"] if h["owner"] != owner],
        "waiters": [w for w in lease["waiters"] if w["owner"] != owner],
    }
    return _promoted(doc, event, name, left)


def _promoted(doc: Doc, event: Event, name: str, lease: Lease) -> Doc:
    granted = []
    while lease["waiters"] and _fits(lease, lease["waiters"][0]):
        first, *rest = lease["waiters"]
        held = {**first, "token": event.seq, "at": event.at, "until": event.at + first["ttl"]}
        others = [h for h in lease["holders"] if h["owner"] != first["owner"]]
        lease = {"holders": [*others, held], "waiters": rest}
        granted.append(held)
    doc = _put(doc, name, lease)
    for held in granted:
        doc = _answered(doc, held, "granted")
    return doc


TABLE = {
    "project.lease_asked": _asked,
    "project.lease_kept": _kept,
    "project.lease_released": _released,
    "project.lease_freed": _released,
}


def grantable(lease: Lease, entry: Entry) -> bool:
    """Nobody overtakes: behind a waiter even a shared lease waits."""
    return not lease["waiters"] and _fits(lease, entry)


def _fits(lease: Lease, entry: Entry) -> bool:
    others = [h for h in lease["holders"] if h["owner"] != entry["owner"]]
    if len(others) >= MOST_HOLDERS:
        return False
    return not others or (entry["mode"] == "shared" and all(h["mode"] == "shared" for h in others))


def _no_room(doc: Doc, lease: Lease, name: str) -> str:
    if len(lease["waiters"]) >= MOST_WAITERS:
        return f"{MOST_WAITERS} wait for {name} already"
    if name not in doc["leases"] and len(doc["leases"]) >= MOST_LEASES:
        return f"there are {MOST_LEASES} leases already"
    return ""


# ── circles ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def cycle(doc: Doc, start: str) -> str:
    """The circle in which `start` would wait for itself, told in words; empty when there is none."""
    path = _circle(doc, start)
    if not path:
        return ""
    return "that would be a deadlock: " + "; ".join(_told(*step) for step in path)


Step = tuple[str, str, str, str]
WITHIN = "within"
"""A command that `lease run` runs may ask for another lease: its owner waits for it to end."""


def _told(owner: str, name: str, how: str, other: str) -> str:
    if how == WITHIN:
        return f"{_who(owner)} waits for {_who(other)}, which it started and which waits for {name}"
    return f"{_who(owner)} waits for {name}, which {_who(other)} {how}"


def _circle(doc: Doc, start: str) -> list[Step]:
    """The shortest one. Step by step, not by recursion: thousands may wait in a line."""
    paths: dict[str, list[Step]] = {start: []}
    frontier = [start]
    while frontier:
        owner = frontier.pop(0)
        for name, how, other in _waits_for(doc, owner):
            path = [*paths[owner], (owner, name, how, other)]
            if other == start:
                return path
            if other not in paths:
                paths[other] = path
                frontier.append(other)
    return []


def _waits_for(doc: Doc, owner: str) -> Iterator[tuple[str, str, str]]:
    """The holders of what it waits for, those before it in the line, and what it started itself and waits for."""
    for name, lease in doc["leases"].items():
        yield from ((name, WITHIN, w["owner"]) for w in lease["waiters"] if owner in w["within"])
        place = next((n for n, w in enumerate(lease["waiters"]) if w["owner"] == owner), None)
        if place is None:
            continue
        me = lease["waiters"][place]
        yield from ((name, "holds", h["owner"]) for h in _against(me, lease["holders"]))
        yield from ((name, "waits for before it", w["owner"]) for w in _against(me, lease["waiters"][:place]))


def _against(entry: Entry, others: Iterable[Entry]) -> Iterator[Entry]:
    for other in others:
        if other["owner"] != entry["owner"] and "exclusive" in (entry["mode"], other["mode"]):
            yield other


def _who(owner: str) -> str:
    return f"process {owner.partition(':')[0]}"


# ── small parts ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _entry(event: Event) -> Entry:
    data = event.data
    ttl = number(data.get("ttl_ms")) or 300_000
    return {
        "owner": str(data.get("owner")),
        "pid": number(data.get("pid")),
        "start": number(data.get("start")),
        "host": str(data.get("host") or ""),
        "boot": str(data.get("boot") or ""),
        "mode": "shared" if data.get("mode") == "shared" else "exclusive",
        "at": event.at,
        "until": event.at + ttl,
        "ttl": ttl,
        "request": str(data.get("request") or event.key),
        "project": event.project,
        "within": [str(owner)[:200] for owner in data.get("within") or ()][:MOST_WITHIN],
        "why": str(data.get("why") or "")[:200],
        "token": 0,
    }


def _lease(doc: Doc, name: str) -> Lease:
    return doc["leases"].get(name) or {"holders": [], "waiters": []}


def _mine(entries: Iterable[Entry], owner: str) -> Entry:
    return next((entry for entry in entries if entry["owner"] == owner), {})


def _put(doc: Doc, name: str, lease: Lease) -> Doc:
    leases = {**doc["leases"], name: lease}
    if not lease["holders"] and not lease["waiters"]:
        del leases[name]
    return {**doc, "leases": leases}


def _answered(doc: Doc, entry: Entry, answer: str, why: str = "") -> Doc:
    """What became of a request, for the one who asked to read; the last few of them."""
    told = {"request": entry["request"], "answer": answer, "token": entry["token"], "until": entry["until"], "why": why}
    others = [one for one in doc["answers"] if one["request"] != entry["request"]]
    return {**doc, "answers": [*others, told][-MOST_ANSWERS:]}


def _held_by(name: str, lease: Lease) -> str:
    holders = lease["holders"] or lease["waiters"]
    pids = ", ".join(str(h["pid"] or h["owner"]) for h in holders[:5])
    return f"{name} is held by process {pids}" if lease["holders"] else f"others wait for {name} already"


def lock(lease: Lease | None) -> dict[str, Any]:
    """The seed's form of a lock: who holds it now and until when (S1-13)."""
    holders = (lease or {}).get("holders") or []
    if not holders:
        return {}
    first: Mapping[str, Any] = holders[0]
    return {
        "pid": first["pid"],
        "at": first["at"],
        "until": max(h["until"] for h in holders),
        "why": first["why"],
        "mode": first["mode"],
        "holders": [h["pid"] for h in holders][:8],
        "waiters": [w["pid"] for w in (lease or {}).get("waiters") or ()][:8],
        "token": first["token"],
    }
