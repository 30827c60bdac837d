"""The rules of both sides as pure functions: batches and cursors, feeds, leases, backoff."""

# Server, forwarder and simulation call these functions and have no rules of their own. Times are in ms of the caller's
# clock; the server never uses a machine's clock.

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from holdfast.core.kinds import SESSION_ENDS, TURN_ENDS
from holdfast_team.protocol import (
    LARGEST_NUMBER,
    MOST_EVENTS,
    Batch,
    FeedItem,
    LeaseRequest,
    Level,
    SharedEvent,
    SharedProject,
)

# In seconds; requests are clamped to these.
SHORTEST_TTL_S, LONGEST_TTL_S = 5, 3600
HOLDER_SHARE = 0.9
"""The holder relies on its lease for this share of its time only, because machines' clocks differ in speed."""
FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 500, 60_000


# ── the server: batches ──────────────────────────────────────────────────────────────────────────────────────────────


class MachineCursor(msgspec.Struct, frozen=True):
    """How much of a machine's log the server has: everything shared up to `cursor` of this `stream`."""

    stream: int = 0
    cursor: int = 0
    key: str = ""
    """The key of the log's event at `cursor`, shared or not; empty if unknown."""
    top: int = 0
    """The highest number that any stream reached."""
    run: str = ""
    past_runs: tuple[str, ...] = ()
    """The process that sent last and those it replaced, which never come back."""
    restores: tuple[tuple[int, int], ...] = ()
    """(stream, how much of the previous stream is its beginning), for every stream but the first."""


class Accepted(msgspec.Struct, frozen=True):
    """With `gap` or `copied` nothing was accepted."""

    cursor: MachineCursor
    fresh: tuple[SharedEvent, ...]
    known: int
    gap: bool = False
    copied: bool = False


class BatchRefused(Exception):
    """A batch that no machine of ours makes"""


def accept_batch(have: MachineCursor, batch: Batch, stored_keys: Container[str] = ()) -> Accepted:
    """Return what is new, and the new cursor. After a gap nothing is accepted: the machine checks its log and sends
    from the cursor or starts a new stream. `stored_keys`: see `keys_needed`."""
    check_batch(batch)
    if batch.run and batch.run in have.past_runs:
        # Two processes alternate: the state folder was copied, and both copies are in use.
        return Accepted(have, (), 0, copied=True)
    have = _with_run(have, batch.run)
    if batch.stream < have.stream:
        if not batch.run:
            raise BatchRefused(f"stream {batch.stream} is over; this machine is at stream {have.stream}")
        return Accepted(have, (), 0, gap=True)
    if batch.stream > have.stream:
        have = _in_stream(have, batch, stored_keys)
    if batch.after > have.cursor or not _is_same_log(have, batch):
        return Accepted(have, (), 0, gap=True)
    fresh = tuple(event for event in batch.events if event.seq > have.cursor and event.key not in stored_keys)
    return Accepted(_moved_by(have, batch), fresh, len(batch.events) - len(fresh))


def _moved_by(have: MachineCursor, batch: Batch) -> MachineCursor:
    if batch.upto < have.cursor:
        return have
    return msgspec.structs.replace(have, cursor=batch.upto, key=batch.upto_event, top=max(have.top, batch.upto))


MOST_RUNS, MOST_STREAMS = 8, 64


def _in_stream(have: MachineCursor, batch: Batch, stored_keys: Container[str]) -> MachineCursor:
    common = _common_prefix(have, batch, stored_keys)
    restores = (*have.restores, (batch.stream, common))[-MOST_STREAMS:]
    return msgspec.structs.replace(have, stream=batch.stream, cursor=common, key="", restores=restores)


def _with_run(have: MachineCursor, run: str) -> MachineCursor:
    if run in ("", have.run):
        return have
    past = (*have.past_runs, have.run) if have.run else have.past_runs
    return msgspec.structs.replace(have, run=run, past_runs=past[-MOST_RUNS:])


def _is_same_log(have: MachineCursor, batch: Batch) -> bool:
    """Return whether the machine's log is still the one the server knows. A machine restored from an older copy reuses
    numbers without knowing it: taken for repeats, its new events would be lost."""
    # Without keys nothing can be compared.
    if not (batch.run and have.key):
        return True
    if batch.after == have.cursor:
        return batch.after_event == have.key
    # An exact resend. For anything else the machine must check its log.
    return batch.upto == have.cursor and batch.upto_event == have.key


def keys_needed(have: MachineCursor, batch: Batch) -> tuple[int, int] | None:
    """The range of the machine's stored events whose keys `accept_batch` needs, because another stream may have
    delivered some of the batch; None if it needs none."""
    if batch.stream > have.stream and batch.restores:
        return min(batch.restores[-1][1], batch.after + 1), batch.upto
    return (batch.after + 1, batch.upto) if batch.stream > 1 and batch.after < have.top else None


def _common_prefix(have: MachineCursor, batch: Batch, stored_keys: Container[str]) -> int:
    """How much of what the server has is still the beginning of the machine's log. If the named event is missing, the
    server was restored since: everything is sent again and known events are skipped."""
    if batch.common_event and batch.common_event not in stored_keys:
        return 0
    return min([have.cursor, *(common for stream, common in batch.restores if have.stream < stream <= batch.stream)])


def check_batch(batch: Batch) -> None:
    if len(batch.events) > MOST_EVENTS:
        raise BatchRefused(f"{len(batch.events)} events in a batch; at most {MOST_EVENTS}")
    if not (batch.stream > 0 and 0 <= batch.after <= batch.upto < LARGEST_NUMBER):
        raise BatchRefused("its numbers are not in order")
    last = batch.after
    for event in batch.events:
        if not last < event.seq <= batch.upto:
            raise BatchRefused(f"event {event.seq} is not in its place")
        last = event.seq


# ── the machine: what is sent next ───────────────────────────────────────────────────────────────────────────────────


class Upstream(msgspec.Struct, frozen=True):
    """A machine's position in its own log and in the team's feed; on disk, and corrected by the server's answers."""

    stream: int = 1
    cursor: int = 0
    feed: int = 0
    sent: int = 0
    """The highest number that may have left, acknowledged or not; on disk before it leaves."""
    sent_key: str = ""
    """The key of the log's event at `sent`: another key there means that the log was replaced."""
    restores: tuple[tuple[int, int], ...] = ()
    common_key: str = ""
    """The key of the event that the last of `restores` names."""
    failures: int = 0
    next_at: int = 0


def build_batch(
    state: Upstream, upto: int, events: Sequence[SharedEvent], projects: Iterable[SharedProject], level: Level, now: int
) -> Batch:
    """`events`: the shared part of the log in (cursor, upto]. If that is too much, `upto` is where it is cut."""
    some = tuple(events[:MOST_EVENTS])
    if len(events) > MOST_EVENTS:
        upto = some[-1].seq
    used = {event.project for event in some}
    return Batch(
        stream=state.stream, after=state.cursor, upto=upto, sent_at=now, level=level, events=some,
        restores=state.restores, projects=tuple(project for project in projects if project.id in used),
    )  # fmt: skip


def project_id(remote: str, root: str) -> str:
    """The same in every clone, and not chosen by anyone: the server derives it from the machine's data."""
    return hashlib.sha256(f"{remote}\n{root}".encode()).hexdigest()[:32]


def before_sending(state: Upstream, upto: int, key: str) -> Upstream:
    """Save before the batch leaves: the server may have it even if no answer comes."""
    return msgspec.structs.replace(state, sent=upto, sent_key=key) if upto >= state.sent else state


def after_answer(state: Upstream, stream: int, cursor: int, gap: bool) -> Upstream:
    """The server says how much it has; within one stream the machine believes it."""
    if stream != state.stream:
        # An answer about a finished stream says nothing of this one's cursor.
        return msgspec.structs.replace(state, failures=0, next_at=0)
    if not gap:
        cursor = max(cursor, state.cursor)  # An answer that was late.
    return msgspec.structs.replace(state, cursor=cursor, failures=0, next_at=0)


def after_failure(state: Upstream, now: int, chance: float) -> Upstream:
    """Twice as long after every failure, up to a minute, spread by `chance` (0 to 1) so that machines do not come at
    once."""
    # The shift is bounded too: days without a server would make ever larger numbers.
    pause = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << min(state.failures, 10))
    return msgspec.structs.replace(state, failures=state.failures + 1, next_at=now + int(pause * (0.5 + chance / 2)))


def restore_bound(state: Upstream, stream: int = 0, restores: Sequence[tuple[int, int]] = ()) -> int:
    """Up to which number the server may have this log, if the log was replaced. `stream` and `restores` are the
    server's, if it is further."""
    unknown = [shared for number, shared in restores if number > state.stream]
    if len(unknown) < stream - state.stream:
        return 0
    # The server's copy begins like the machine's known stream only as far as each later stream did.
    return min([state.cursor, *unknown])


def after_restore(state: Upstream, common: int, common_key: str, stream: int = 0) -> Upstream:
    """The log was replaced by one that is equal up to `common` only, a shared event within `restore_bound`: later
    numbers mean other events."""
    new = max(state.stream, stream) + 1
    return msgspec.structs.replace(
        # Nothing of the new stream has left yet.
        state,
        stream=new,
        cursor=min(common, state.cursor),
        sent=0,
        sent_key="",
        restores=(*state.restores, (new, common)),
        common_key=common_key,
        failures=0,
        next_at=0,
    )


def is_other_log(state: Upstream, stream: int, cursor: int, key: str, head: int, key_here: str) -> bool:
    """After a gap: whether the server has something of this machine that this log lacks. Then the state folder was
    restored with everything it remembered. `key_here` is the key of this log's event at `cursor`."""
    if stream != state.stream:
        return stream > state.stream
    return cursor > head or bool(key and cursor and key_here != key)


def was_replaced(state: Upstream, head: int, key_at_sent: str) -> bool:
    """Whether the log is no longer the one that was sent."""
    return head < max(state.cursor, state.sent) or bool(state.sent_key and key_at_sent != state.sent_key)


def new_items(state: Upstream, items: Iterable[FeedItem]) -> list[FeedItem]:
    """Those that did not arrive before, in order."""
    return sorted((item for item in items if item.id > state.feed), key=lambda item: item.id)


# ── leases: the server ───────────────────────────────────────────────────────────────────────────────────────────────


class Lease(msgspec.Struct, frozen=True):
    """`until` is by the server's clock. An expired lease keeps its token, so that the next one is higher."""

    token: int = 0
    machine: str = ""
    session: str = ""
    person: str = ""
    since: int = 0
    until: int = 0
    ttl_s: int = 0
    paths: tuple[str, ...] = ()
    why: str = ""
    words: str = ""
    """Machine and record number by which the holder can have it forgotten."""

    def is_held(self, now: int) -> bool:
        return bool(self.machine) and now < self.until

    def held_by(self, machine: str, session: str, now: int) -> bool:
        return self.is_held(now) and (self.machine, self.session) == (machine, session)


Outcome = Literal["granted", "renewed", "busy", "released", "lost"]


def change_lease(lease: Lease, request: LeaseRequest, machine: str, person: str, now: int) -> tuple[Lease, Outcome]:
    """The one place where a lease changes hands."""
    mine = lease.held_by(machine, request.session, now)
    ttl = max(SHORTEST_TTL_S, min(request.ttl_s, LONGEST_TTL_S))
    if request.act == "release":
        # 0 is a release without a token, by the machine and session that hold the lease.
        if not mine or request.token not in (0, lease.token):
            return lease, "lost"
        # An expired lease only needs its token and name; `words` stays for a later erasure.
        return Lease(token=lease.token, words=lease.words), "released"
    if request.act == "renew":
        if not mine or request.token != lease.token:
            return lease, "lost"
        return msgspec.structs.replace(lease, until=now + lease.ttl_s * 1000), "renewed"
    # Requesting one's own lease again extends it; the token stays.
    if mine:
        return msgspec.structs.replace(lease, until=now + ttl * 1000, ttl_s=ttl), "granted"
    if lease.is_held(now):
        return lease, "busy"
    taken = Lease(
        token=lease.token + 1, machine=machine, session=request.session, person=person, since=now,
        until=now + ttl * 1000, ttl_s=ttl, paths=request.paths, why=request.why,
        words=words_key(machine, request.words),
    )  # fmt: skip
    return taken, "granted"


def words_key(machine: str, words: str) -> str:
    """A key over all machines, including the machine, so that nobody can forget another one's words."""
    return f"{machine}/{words[:64]}" if words else ""


def payload_as_of(kind: str, payload: Mapping[str, Any], age_ms: int) -> dict[str, Any]:
    """A feed item as sent now. A machine that was away hears of a lease late and cannot know how late: the server
    counts the remaining time."""
    if kind != "lease":
        return dict(payload)
    return {**payload, "left_ms": max(0, int(payload.get("left_ms", 0)) - max(0, age_ms))}


# ── leases: the holder ───────────────────────────────────────────────────────────────────────────────────────────────


class HeldLease(msgspec.Struct, frozen=True):
    """What a machine may rely on: until when it holds the lease, by its own monotonic clock."""

    token: int
    until: int


def rely_on_lease(token: int, ttl_s: int, asked_at: int, given_back: int = 0) -> HeldLease | None:
    """Counted from before the request, because the server counts from its arrival, which is later.

    None for a late answer about a lease that was returned since (`given_back`: the newest such token).
    """
    return HeldLease(token, asked_at + int(ttl_s * 1000 * HOLDER_SHARE)) if token > given_back else None


# ── the board ────────────────────────────────────────────────────────────────────────────────────────────────────────

# After these an agent waits for a person.
WAITS = frozenset(("permission.requested", "notification", "elicitation.requested"))
WORKS = frozenset(("prompt.submitted", "tool.started", "tool.finished", "tool.failed", "session.started"))
# Per session, and characters of a path: a longer one is stored in the event but not matched with others.
MOST_FILES, LONGEST_PATH = 200, 1000
# In bytes: larger data is stored, but not inspected.
LARGEST_NOTED = 256 << 10


class Presence(msgspec.Struct, omit_defaults=True):
    """What a batch says of one session: its state after the last event."""

    session: str
    project: str = ""
    agent: str = ""
    branch: str = ""
    state: str = ""
    """working, waiting, idle or over; empty: nothing in the batch says."""
    title: str = ""
    first_at: int = 0
    at: int = 0
    edited: dict[str, int] = {}
    """Files the session wrote, with the event number."""


class Noted(msgspec.Struct):
    """What the board and the cost need of an event's data. Machines are not trusted: any field may have any type."""

    branch: Any = None
    title: Any = None
    action: Any = None
    paths: Any = None
    model: Any = None
    tokens: Any = None


_decode_noted = msgspec.json.Decoder(Noted).decode


def _look_into(event: SharedEvent) -> Noted:
    data = event.data
    if isinstance(data, dict):
        return msgspec.convert(data, Noted)
    return _decode_noted(data) if len(memoryview(data)) <= LARGEST_NOTED else Noted()


def sum_up_sessions(events: Iterable[SharedEvent]) -> list[Presence]:
    by_session: dict[str, Presence] = {}
    for event in events:
        if not event.session:
            continue
        presence = by_session.get(event.session)
        if presence is None:
            presence = by_session[event.session] = Presence(event.session, first_at=event.at, edited={})
        _note_event(presence, event)
    return list(by_session.values())


def _note_event(presence: Presence, event: SharedEvent) -> None:
    presence.at = max(presence.at, event.at)
    presence.project = event.project or presence.project
    presence.agent = event.agent or presence.agent
    noted = _look_into(event)
    presence.branch = noted.branch if isinstance(noted.branch, str) else presence.branch
    presence.title = noted.title if isinstance(noted.title, str) else presence.title
    presence.state = _state_after(event.kind) or presence.state
    if event.kind == "tool.finished" and noted.action == "edit":
        for path in _text_items(noted.paths)[: MOST_FILES - len(presence.edited)]:
            presence.edited[path] = event.seq


def _state_after(kind: str) -> str:
    if kind in SESSION_ENDS:
        return "over"
    if kind in TURN_ENDS:
        return "idle"
    if kind in WAITS:
        return "waiting"
    return "working" if kind in WORKS else ""


def _text_items(value: object) -> list[str]:
    """Paths that a column accepts: PostgreSQL has no NUL in text."""
    texts = (one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
    return [one for one in texts if len(one) <= LONGEST_PATH and "\0" not in one]


class Spending(msgspec.Struct, frozen=True):
    """Tokens that one answer of a model used."""

    at: int
    project: str
    model: str
    tokens: dict[str, int]


def list_spending(events: Iterable[SharedEvent]) -> list[Spending]:
    answers = ((event, _look_into(event)) for event in events if event.kind == "model.answered")
    return [
        Spending(event.at, event.project, str(noted.model or ""), tokens)
        for event, noted in answers
        if (tokens := _valid_counts(noted.tokens))
    ]


def _valid_counts(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        return {}
    # Machines are not trusted: names, their number and the counts are bounded.
    return {str(name)[:40]: n for name, n in list(value.items())[:20] if isinstance(n, int) and 0 <= n < 1 << 40}
