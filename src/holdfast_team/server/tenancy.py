"""Shared parts of a tenant's acts: members, refusals, secrets, the feed, the audit log."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from psycopg.types.json import Jsonb

from holdfast_team import core
from holdfast_team.protocol import LONGEST_NAME, FeedItem, FeedPage
from holdfast_team.server.database import TenantTransaction

# Items in one answer.
FEED_PAGE = 100
_encode = msgspec.json.Encoder().encode


class Member(msgspec.Struct, frozen=True):
    """The caller: a machine that a person of a tenant enrolled."""

    tenant: str
    machine: str
    person: str
    role: str


class Refused(Exception):
    """What a member may not do, or what cannot be done; `status` is the HTTP status."""

    def __init__(self, status: int, error: str, fix: str = "") -> None:
        super().__init__(error)
        self.status, self.error, self.fix = status, error, fix


class Act(NamedTuple):
    """What a member does, in one transaction of their tenant."""

    tx: TenantTransaction
    channel: str
    who: Member
    now: int

    async def execute(self, query: str, **values: Any) -> int:
        """Every statement may also name the caller (`machine`, `by`) and the time (`now`)."""
        return await self.tx.execute(query, self._values(values))

    async def all(self, query: str, **values: Any) -> list[dict[str, Any]]:
        return await self.tx.all(query, self._values(values))

    async def one(self, query: str, **values: Any) -> dict[str, Any] | None:
        return await self.tx.one(query, self._values(values))

    def _values(self, values: dict[str, Any]) -> dict[str, Any]:
        return {"machine": self.who.machine, "by": self.who.person, "now": self.now, **values}

    async def tell(self, kind: str, payload: Mapping[str, Any], **where: str) -> None:
        """Add an item to the feed. The counter's row is locked until the commit: whoever sees a number sees all below
        it."""
        row = await self.one(NEXT_ITEM)
        number = int(row["feed_head"]) if row else 0
        values = {"project": "", "person": "", "for_machine": "", **where}
        await self.execute(ADD_ITEM, id=number, kind=kind, payload=json_value(dict(payload)), **values)
        # PostgreSQL delivers it at the commit, when the item is readable.
        await self.execute("select pg_notify(%(channel)s, %(tenant)s)", channel=self.channel)

    async def audit(self, act: str, about: Mapping[str, Any]) -> None:
        await self.execute(ADD_AUDIT, act=act, about=json_value(dict(about)))


def hash_secret(secret: str) -> bytes:
    """Secrets are long and random: one round suffices, and a lookup by hash needs no salt."""
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
    """PostgreSQL accepts no NUL in text or jsonb; one hostile name must not stop a whole batch."""
    return text.replace("\\u0000", "\\ufffd") if "\\u0000" in text else text


# ── the feed ─────────────────────────────────────────────────────────────────────────────────────────────────────────


NEXT_ITEM = "update tenants set feed_head = feed_head + 1 where tenant = %(tenant)s returning feed_head"
ADD_ITEM = """
insert into feed (tenant, id, kind, at, by_person, project, for_person, for_machine, payload)
values (%(tenant)s, %(id)s, %(kind)s, %(now)s, %(by)s, %(project)s, %(person)s, %(for_machine)s, %(payload)s)
"""
ADD_AUDIT = """
insert into audit (tenant, at, by_person, act, about) values (%(tenant)s, %(now)s, %(by)s, %(act)s, %(about)s)
"""


async def read_feed(act: Act, after: int) -> FeedPage:
    head = await act.one("select feed_head from tenants where tenant = %(tenant)s")
    rows = await act.all(READ_FEED, after=after, most=FEED_PAGE)
    items = tuple(
        FeedItem(
            id=r["id"], kind=r["kind"], at=r["at"], by=r["by_person"], project=r["project"],
            payload=core.payload_as_of(r["kind"], r["payload"], act.now - r["at"]),
        )
        for r in rows
    )  # fmt: skip
    # After a full page there may be more: it reaches only to its last item.
    upto = (
        items[-1].id
        if len(items) == FEED_PAGE
        else max([int(head["feed_head"]) if head else 0, *(i.id for i in items)])
    )
    return FeedPage(items=items, upto=max(upto, after))


READ_FEED = """
select id, kind, at, by_person, project, payload from feed
where tenant = %(tenant)s and id > %(after)s and for_person in ('', %(by)s) and for_machine in ('', %(machine)s)
order by id limit %(most)s
"""
