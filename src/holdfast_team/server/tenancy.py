"""What every act of a tenant is made of: who asks, refusals, secrets, the feed, the audit log."""

import contextlib
import hashlib
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from psycopg.types.json import Jsonb

from holdfast_team import core
from holdfast_team.protocol import LONGEST_NAME, FeedItem, FeedPage
from holdfast_team.server.database import TenantTransaction

# Items in one answer.
FEED_PAGE = 100
_encode = msgspec.json.Encoder().encode


class Member(msgspec.Struct, frozen=True):
    """Who asks: a machine that a person of a tenant enrolled."""

    tenant: str
    machine: str
    person: str
    role: str


class Refused(Exception):
    """What a member may not do, or what cannot be done; `status` is HTTP's word for it."""

    def __init__(self, status: int, error: str, fix: str = "") -> None:
        super().__init__(error)
        self.status, self.error, self.fix = status, error, fix


def hash_secret(secret: str) -> bytes:
    """Secrets are long and random: one round is enough, and a lookup by hash needs no salt."""
    return hashlib.sha256(secret.encode()).digest()


def new_secret(prefix: str) -> str:
    return f"{prefix}_{secrets.token_urlsafe(32)}"


def need_text(what: str, text: str, longest: int = LONGEST_NAME) -> None:
    if not text.strip() or len(text) > longest:
        raise Refused(422, f"{what} has 1 to {longest} characters")


# ── JSON for PostgreSQL ──────────────────────────────────────────────────────────────────────────────────────────────


def json_rows(values: Sequence[Any]) -> str:
    return _without_nul(_encode(values).decode())


def json_value(value: object) -> Jsonb:
    return Jsonb(value, dumps=lambda given: _without_nul(_encode(given).decode()))


def _without_nul(text: str) -> str:
    """PostgreSQL takes no NUL in text or jsonb; one hostile name must not stop a whole batch."""
    return text.replace("\\u0000", "\\ufffd") if "\\u0000" in text else text


# ── the feed ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def add_item(
    tx: TenantTransaction, channel: str, by: str, kind: str, payload: Mapping[str, Any], now: int, **where: str
) -> int:
    """The counter's row is locked until the commit: whoever sees a number sees all below it."""
    row = await tx.one("update tenants set feed_head = feed_head + 1 where tenant = %(tenant)s returning feed_head")
    number = int(row["feed_head"]) if row else 0
    values = {"project": "", "person": "", "machine": "", **where}
    await tx.execute(ADD_ITEM, {
        "id": number, "kind": kind, "now": now, "by": by, "payload": json_value(dict(payload)), **values,
    })  # fmt: skip
    # PostgreSQL delivers it at the commit, when the item can be read.
    await tx.execute("select pg_notify(%(channel)s, %(tenant)s)", {"channel": channel})
    return number


ADD_ITEM = """
insert into feed (tenant, id, kind, at, by_person, project, for_person, for_machine, payload)
values (%(tenant)s, %(id)s, %(kind)s, %(now)s, %(by)s, %(project)s, %(person)s, %(machine)s, %(payload)s)
"""


async def read_feed(tx: TenantTransaction, who: Member, after: int, now: int) -> FeedPage:
    head = await tx.one("select feed_head from tenants where tenant = %(tenant)s")
    rows = await tx.all(READ_FEED, {"after": after, "person": who.person, "machine": who.machine, "most": FEED_PAGE})
    items = tuple(
        FeedItem(
            id=r["id"], kind=r["kind"], at=r["at"], by=r["by_person"], project=r["project"],
            payload=core.payload_as_of(r["kind"], r["payload"], now - r["at"]),
        )
        for r in rows
    )  # fmt: skip
    # There may be more after a full page: it reaches only to its last item.
    upto = (
        items[-1].id
        if len(items) == FEED_PAGE
        else max([int(head["feed_head"]) if head else 0, *(i.id for i in items)])
    )
    return FeedPage(items=items, upto=max(upto, after))


READ_FEED = """
select id, kind, at, by_person, project, payload from feed
where tenant = %(tenant)s and id > %(after)s and for_person in ('', %(person)s) and for_machine in ('', %(machine)s)
order by id limit %(most)s
"""


# ── the audit log ────────────────────────────────────────────────────────────────────────────────────────────────────


async def write_audit(tx: TenantTransaction, who: Member, act: str, about: Mapping[str, Any], now: int) -> None:
    await tx.execute(
        "insert into audit (tenant, at, by_person, act, about) values (%(tenant)s, %(now)s, %(by)s, %(act)s, %(about)s)",
        {"now": now, "by": who.person, "act": act, "about": json_value(dict(about))},
    )


# How much a machine and a tenant may ask of one server process, and what the process counted.

# Per machine, per tenant, per address.
REQUESTS_PER_S, TENANT_EVENTS_PER_S, ENROLMENTS_PER_S = 50.0, 50_000.0, 20.0
MACHINE_EVENTS_PER_S = 10_000.0
"""Over all processes: what a machine has left is kept in its row."""
BURST_S = 10
MOST_BUCKETS = 50_000


class Bucket:
    """Fills at a rate, holds `BURST_S` seconds of it. What it has not it does not give."""

    __slots__ = ("at", "left", "rate")

    def __init__(self, rate: float, now: float) -> None:
        self.rate, self.left, self.at = rate, rate * BURST_S, now

    def take_tokens(self, amount: float, now: float) -> float:
        """0.0 when it was given, else the seconds to wait."""
        self.left = min(self.rate * BURST_S, self.left + (now - self.at) * self.rate)
        self.at = now
        if self.left >= amount:
            self.left -= amount
            return 0.0
        return (amount - self.left) / self.rate


class Limits:
    """In this process only, against floods; quotas that hold over all processes are in the database."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, ...], Bucket] = {}

    def take_request(self, who: Member) -> None:
        self._take_tokens(("request", who.tenant, who.machine), REQUESTS_PER_S, 1)

    def take_events(self, who: Member, count: int) -> None:
        self._take_tokens(("events", who.tenant), TENANT_EVENTS_PER_S, count)

    def take_enrolment(self, address: str) -> None:
        self._take_tokens(("enrol", address), ENROLMENTS_PER_S, 1)

    def _take_tokens(self, key: tuple[str, ...], rate: float, amount: float) -> None:
        now = time.monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            # Addresses of strangers get buckets too: memory stays bounded, and all begin full again.
            if len(self._buckets) >= MOST_BUCKETS:
                self._buckets.clear()
            bucket = self._buckets[key] = Bucket(rate, now)
        if wait := bucket.take_tokens(amount, now):
            raise Refused(429, f"too much at once; try again in {max(1, round(wait))} s")


class Metrics:
    """In Prometheus' text format."""

    def __init__(self) -> None:
        self._counts: dict[str, float] = {}

    def add(self, name: str, amount: float) -> None:
        self._counts[name] = self._counts.get(name, 0) + amount

    def count_request(self, path: str, status: int) -> None:
        self.add(f'requests_total{{path="{path}",status="{status}"}}', 1)

    @contextlib.contextmanager
    def timing(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(f"{name}_seconds_sum", time.perf_counter() - began)
            self.add(f"{name}_seconds_count", 1)

    def text(self, gauges: Mapping[str, float]) -> str:
        counted = [f"holdfast_team_{name} {value:g}" for name, value in sorted(self._counts.items())]
        return "\n".join([*counted, *(f"holdfast_team_{name} {value:g}" for name, value in sorted(gauges.items())), ""])


def log_line(what: str, **more: object) -> None:
    """One JSON object a line, on standard error: requests that were refused, failed or slow, and what housekeeping did.

    Never a token, a body or the name of a person.
    """
    line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "what": what, **more}
    sys.stderr.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stderr.buffer.flush()
