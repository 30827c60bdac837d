"""What members of a team do, each as statements in one transaction of their tenant."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
from psycopg.types.json import Jsonb

from holdfast.team import core
from holdfast.team.protocol import (
    LONGEST_NAME,
    Batch,
    BatchAnswer,
    CodeIssued,
    CodeRequest,
    FeedItem,
    FeedPage,
    ForgetReceipt,
    ForgetRequest,
    HandoverRequest,
    LeaseAnswer,
    LeaseRequest,
    MemoryProposal,
    RevokeRequest,
    RuleRequest,
    SharedEvent,
)
from holdfast.team.server.database import TenantTransaction

FEED_PAGE = 100
LONGEST_TEXT = 20_000
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


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def store_batch(tx: TenantTransaction, who: Member, batch: Batch, now: int) -> tuple[BatchAnswer, int]:
    """The answer, and how many events are new. Nobody else moves this machine's cursor meanwhile: its row is locked."""
    row = await tx.one(LOCK_MACHINE, {"machine": who.machine})
    if row is None or row["revoked_at"]:
        raise Refused(401, "this machine was revoked", "Ask an admin of your team for a new code.")
    try:
        taken = core.accept_batch(core.MachineCursor(row["stream"], row["cursor"]), batch)
    except core.BatchRefused as error:
        raise Refused(422, str(error), "Run: holdfast team status") from error
    answer = BatchAnswer(
        stream=taken.cursor.stream, cursor=taken.cursor.cursor, taken=len(taken.fresh), known=taken.known,
        gap=taken.gap, feed=row["feed_head"],
    )  # fmt: skip
    if not taken.gap:
        await _write_events(tx, who, batch, taken.fresh, now)
        await tx.execute(MOVE_CURSOR, {
            "machine": who.machine, "stream": taken.cursor.stream, "cursor": taken.cursor.cursor, "now": now,
            "level": batch.level, "skew": batch.sent_at - now if batch.sent_at else 0,
        })  # fmt: skip
    return answer, len(taken.fresh)


LOCK_MACHINE = """
select m.stream, m.cursor, m.revoked_at, t.feed_head from machines m join tenants t on t.tenant = m.tenant
where m.tenant = %(tenant)s and m.machine = %(machine)s for update of m
"""
MOVE_CURSOR = """
update machines set stream = %(stream)s, cursor = %(cursor)s, seen_at = %(now)s, level = %(level)s, skew_ms = %(skew)s
where tenant = %(tenant)s and machine = %(machine)s
"""


async def _write_events(
    tx: TenantTransaction, who: Member, batch: Batch, fresh: Sequence[SharedEvent], now: int
) -> None:
    if not fresh:
        return
    common = {"machine": who.machine, "person": who.person, "now": now}
    if batch.projects:
        in_order = sorted(batch.projects, key=lambda one: one.id)  # Two machines never wait for each other.
        await tx.execute(ADD_PROJECTS, {**common, "rows": _rows(in_order)})
    await tx.execute(ADD_EVENTS, {**common, "stream": batch.stream, "level": batch.level, "rows": _rows(fresh)})
    sessions = core.sum_up_sessions(fresh)
    if sessions:
        await tx.execute(SAVE_SESSIONS, {**common, "rows": _rows(sessions)})
    edited = [(s.project, path, s.session) for s in sessions if s.project for path in s.edited]
    if edited:
        projects, paths, of = zip(*sorted(edited), strict=True)
        await tx.execute(SAVE_EDITED, {**common, "projects": list(projects), "paths": list(paths), "of": list(of)})
    spent = _sum_spending(core.list_spending(fresh), now)
    if spent:
        await tx.execute(ADD_SPENDING, {**common, "rows": _encode(spent).decode()})


def _rows(values: Sequence[Any]) -> str:
    return _without_nul(_encode(values).decode())


def _json(value: object) -> Jsonb:
    return Jsonb(value, dumps=lambda given: _without_nul(_encode(given).decode()))


def _without_nul(text: str) -> str:
    """PostgreSQL takes no NUL in text or jsonb; one hostile name must not stop a whole batch."""
    return text.replace("\\u0000", "\\ufffd") if "\\u0000" in text else text


ADD_PROJECTS = """
insert into projects (tenant, project, remote, root, first_at)
select %(tenant)s, r.id, r.remote, r.root, %(now)s from json_to_recordset(%(rows)s::json) as r(id text, remote text, root text)
on conflict do nothing
"""
ADD_EVENTS = """
insert into events (tenant, received_at, machine, stream, seq, key, at, kind, session, project, agent, tool, level, data)
select %(tenant)s, %(now)s, %(machine)s, %(stream)s, r.seq, r.key, r.at, r.kind, coalesce(r.session, ''), coalesce(r.project, ''),
       coalesce(r.agent, ''), coalesce(r.tool, ''), coalesce(nullif(r.level, ''), %(level)s), coalesce(r.data, '{}')
from json_to_recordset(%(rows)s::json)
  as r(seq bigint, key text, at bigint, kind text, session text, project text, agent text, tool text, level text, data jsonb)
"""
SAVE_SESSIONS = """
insert into sessions as s (tenant, machine, session, person, project, agent, branch, state, title, first_at, at, seen_at)
select %(tenant)s, %(machine)s, r.session, %(person)s, coalesce(r.project, ''), coalesce(r.agent, ''), coalesce(r.branch, ''),
       coalesce(r.state, ''), coalesce(r.title, ''), coalesce(r.first_at, 0), coalesce(r.at, 0), %(now)s
from json_to_recordset(%(rows)s::json)
  as r(session text, project text, agent text, branch text, state text, title text, first_at bigint, at bigint)
on conflict (tenant, machine, session) do update set
  person = excluded.person, at = greatest(s.at, excluded.at), seen_at = excluded.seen_at,
  project = coalesce(nullif(excluded.project, ''), s.project), agent = coalesce(nullif(excluded.agent, ''), s.agent),
  branch = coalesce(nullif(excluded.branch, ''), s.branch), state = coalesce(nullif(excluded.state, ''), s.state),
  title = coalesce(nullif(excluded.title, ''), s.title)
"""
SAVE_EDITED = """
insert into edited_files (tenant, project, path, machine, session, at)
select distinct %(tenant)s, r.project, r.path, %(machine)s, r.session, %(now)s::bigint
from unnest(%(projects)s::text[], %(paths)s::text[], %(of)s::text[]) as r(project, path, session)
on conflict (tenant, project, path, machine, session) do update set at = excluded.at
"""
ADD_SPENDING = """
insert into spending as s (tenant, week, person, project, model, kind, tokens)
select %(tenant)s, r.week, %(person)s, r.project, r.model, r.kind, r.tokens
from json_to_recordset(%(rows)s::json) as r(week date, project text, model text, kind text, tokens bigint)
on conflict (tenant, week, person, project, model, kind) do update set tokens = s.tokens + excluded.tokens
"""


def _sum_spending(spent: Sequence[core.Spending], now: int) -> list[dict[str, Any]]:
    sums: dict[tuple[str, str, str, str], int] = {}
    for one in spent:
        for kind, tokens in one.tokens.items():
            key = _week_of(one.at, now).isoformat(), one.project, one.model[:LONGEST_NAME], kind
            sums[key] = sums.get(key, 0) + tokens
    names = ("week", "project", "model", "kind")
    return [{**dict(zip(names, key, strict=True)), "tokens": n} for key, n in sorted(sums.items())]


def _week_of(at: int, now: int) -> date:
    """The Monday. A machine's clock that is ahead counts as the server's; one that is behind may be late news."""
    day = datetime.fromtimestamp(min(max(at, 0), now) / 1000, UTC).date()
    return day - timedelta(days=day.weekday())


# ── the feed ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def add_item(
    tx: TenantTransaction, channel: str, by: str, kind: str, payload: Mapping[str, Any], now: int, **where: str
) -> int:
    """The counter's row is locked until the commit: whoever sees a number sees all below it."""
    row = await tx.one("update tenants set feed_head = feed_head + 1 where tenant = %(tenant)s returning feed_head")
    number = int(row["feed_head"]) if row else 0
    values = {"project": "", "person": "", "machine": "", **where}
    await tx.execute(ADD_ITEM, {
        "id": number, "kind": kind, "now": now, "by": by, "payload": _json(dict(payload)), **values,
    })  # fmt: skip
    await tx.execute("select pg_notify(%(channel)s, %(tenant)s)", {"channel": channel})
    return number


ADD_ITEM = """
insert into feed (tenant, id, kind, at, by_person, project, for_person, for_machine, payload)
values (%(tenant)s, %(id)s, %(kind)s, %(now)s, %(by)s, %(project)s, %(person)s, %(machine)s, %(payload)s)
"""


async def read_feed(tx: TenantTransaction, who: Member, after: int) -> FeedPage:
    head = await tx.one("select feed_head from tenants where tenant = %(tenant)s")
    rows = await tx.all(READ_FEED, {"after": after, "person": who.person, "machine": who.machine, "most": FEED_PAGE})
    items = tuple(
        FeedItem(id=r["id"], kind=r["kind"], at=r["at"], by=r["by_person"], project=r["project"], payload=r["payload"])
        for r in rows
    )
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


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def change_lease(
    tx: TenantTransaction, channel: str, who: Member, request: LeaseRequest, now: int
) -> LeaseAnswer:
    """Renewing counts as the heartbeat. Others are told when it changes hands, and again when half of its time is over."""
    _need_text("the lease's name", request.name)
    key = {"project": request.project, "name": request.name}
    await tx.execute(MAKE_LEASE, key)
    row = await tx.one(LOCK_LEASE, key)
    before = msgspec.convert(row["lease"], core.Lease) if row else core.Lease()
    lease, outcome = core.change_lease(before, request, who.machine, who.person, now)
    if lease != before:
        await tx.execute(SAVE_LEASE, {**key, "lease": _json(msgspec.to_builtins(lease))})
    if outcome in ("granted", "renewed"):
        await tx.execute(
            "update machines set seen_at = %(now)s where tenant = %(tenant)s and machine = %(machine)s",
            {"machine": who.machine, "now": now},
        )
        told = {**msgspec.to_builtins(lease), "name": request.name, "left_ms": lease.until - now}
        await add_item(tx, channel, who.person, "lease", told, now, project=request.project)
    elif outcome == "released":
        ended = {"name": request.name, "token": before.token}
        await add_item(tx, channel, who.person, "lease_ended", ended, now, project=request.project)
    granted = outcome in ("granted", "renewed", "released")
    return LeaseAnswer(
        granted=granted, token=lease.token, ttl_s=lease.ttl_s, person=lease.person, machine=lease.machine,
        session=lease.session, why=lease.why if granted else outcome,
    )  # fmt: skip


MAKE_LEASE = """
insert into leases (tenant, project, name, lease) values (%(tenant)s, %(project)s, %(name)s, '{}') on conflict do nothing
"""
LOCK_LEASE = (
    "select lease from leases where tenant = %(tenant)s and project = %(project)s and name = %(name)s for update"
)
SAVE_LEASE = """
update leases set lease = %(lease)s where tenant = %(tenant)s and project = %(project)s and name = %(name)s
"""


# ── memories, hand-overs, rules ──────────────────────────────────────────────────────────────────────────────────────


async def propose_memory(tx: TenantTransaction, who: Member, memory: MemoryProposal, now: int) -> None:
    _need_text("a memory", memory.text, LONGEST_TEXT)
    await tx.execute(ADD_MEMORY, {
        "id": memory.id, "project": memory.project, "type": memory.type, "text": memory.text, "by": who.person, "now": now,
    })  # fmt: skip


ADD_MEMORY = """
insert into memories (tenant, id, project, type, text, by_person, at)
values (%(tenant)s, %(id)s, %(project)s, %(type)s, %(text)s, %(by)s, %(now)s) on conflict do nothing
"""


async def promote_memory(tx: TenantTransaction, channel: str, who: Member, memory: str, now: int) -> None:
    """Once: promoting it again tells nobody anything new."""
    row = await tx.one(PROMOTE, {"id": memory, "by": who.person, "now": now})
    if row is None:
        raise Refused(404, "there is no such memory to promote", "See: holdfast team memories")
    told = {"id": row["id"], "type": row["type"], "text": row["text"], "words_of": row["by_person"]}
    await add_item(tx, channel, who.person, "memory", told, now, project=row["project"])
    await write_audit(tx, who, "memory.promoted", {"id": memory}, now)


PROMOTE = """
update memories set promoted_by = %(by)s, promoted_at = %(now)s
where tenant = %(tenant)s and id = %(id)s and promoted_at = 0 returning id, project, type, text, by_person
"""


async def hand_over(tx: TenantTransaction, channel: str, who: Member, request: HandoverRequest, now: int) -> None:
    _need_text("a hand-over", request.text, LONGEST_TEXT)
    if not await tx.one("select 1 from people where tenant = %(tenant)s and person = %(to)s", {"to": request.to}):
        raise Refused(404, f"there is nobody called {request.to[:40]!r} in your team", "See: holdfast team people")
    told = {"text": request.text, "session": request.session}
    await add_item(tx, channel, who.person, "handover", told, now, project=request.project, person=request.to)


async def set_rule(tx: TenantTransaction, channel: str, who: Member, rule: RuleRequest, now: int) -> None:
    values = {"name": rule.name, "requirement": _json(rule.requirement), "by": who.person}
    await tx.execute(SAVE_RULE, {**values, "now": now})
    told = {"name": rule.name, "requirement": rule.requirement}
    await add_item(tx, channel, who.person, "rule", told, now)
    await write_audit(tx, who, "rule.set", told, now)


SAVE_RULE = """
insert into rules (tenant, name, requirement, by_person, at)
values (%(tenant)s, %(name)s, %(requirement)s, %(by)s, %(now)s)
on conflict (tenant, name) do update
set requirement = excluded.requirement, by_person = excluded.by_person, at = excluded.at
"""


async def withdraw_rule(tx: TenantTransaction, channel: str, who: Member, name: str, now: int) -> None:
    if not await tx.execute("delete from rules where tenant = %(tenant)s and name = %(name)s", {"name": name}):
        raise Refused(404, f"there is no rule {name[:60]!r}", "See: holdfast team rules")
    await add_item(tx, channel, who.person, "rule_withdrawn", {"name": name}, now)
    await write_audit(tx, who, "rule.withdrawn", {"name": name}, now)


# ── people and machines ──────────────────────────────────────────────────────────────────────────────────────────────


async def issue_code(tx: TenantTransaction, who: Member, request: CodeRequest, now: int) -> CodeIssued:
    _need_text("a person's name", request.person)
    code, until = new_secret("join"), now + max(1, min(request.hours, 24 * 14)) * 3_600_000
    await tx.execute(ADD_CODE, {
        "hash": hash_secret(code), "person": request.person, "role": request.role, "until": until,
    })  # fmt: skip
    await write_audit(tx, who, "code.issued", {"person": request.person, "role": request.role}, now)
    return CodeIssued(code=code, person=request.person, role=request.role, until=until)


ADD_CODE = """
insert into codes (tenant, code_hash, person, role, until) values (%(tenant)s, %(hash)s, %(person)s, %(role)s, %(until)s)
"""


async def revoke(tx: TenantTransaction, channel: str, who: Member, request: RevokeRequest, now: int) -> int:
    """In force when this commits: every request looks the token up, and a batch looks again under the lock."""
    if not (request.machine or request.person):
        raise Refused(422, "nothing was named that is to be revoked")
    rows = await tx.all(REVOKE, {"machine": request.machine, "person": request.person, "now": now})
    for row in rows:
        await add_item(tx, channel, who.person, "revoked", {}, now, machine=row["machine"])
    about = {"machines": [row["machine"] for row in rows], "person": request.person}
    await write_audit(tx, who, "machine.revoked", about, now)
    return len(rows)


REVOKE = """
update machines set revoked_at = %(now)s where tenant = %(tenant)s and revoked_at = 0
and (machine = %(machine)s or (%(person)s <> '' and person = %(person)s)) returning machine
"""


async def rotate_token(tx: TenantTransaction, who: Member, now: int) -> str:
    token = new_secret("hft")
    await tx.execute(
        "update machines set token_hash = %(hash)s where tenant = %(tenant)s and machine = %(machine)s",
        {"hash": hash_secret(token), "machine": who.machine},
    )
    await write_audit(tx, who, "token.rotated", {"machine": who.machine}, now)
    return token


async def write_audit(tx: TenantTransaction, who: Member, act: str, about: Mapping[str, Any], now: int) -> None:
    await tx.execute(
        "insert into audit (tenant, at, by_person, act, about) values (%(tenant)s, %(now)s, %(by)s, %(act)s, %(about)s)",
        {"now": now, "by": who.person, "act": act, "about": _json(dict(about))},
    )


# ── forgetting ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def forget(tx: TenantTransaction, who: Member, request: ForgetRequest, now: int) -> ForgetReceipt:
    """Of this machine only. Sums of tokens stay: they are not kept by session."""
    named = {
        "machine": who.machine, "person": who.person, "sessions": list(request.sessions),
        "projects": list(request.projects), "numbers": list(request.numbers),
    }  # fmt: skip
    events = await tx.execute(FORGET_EVENTS, named)
    rows = 0
    for statement in FORGET_MORE:
        rows += await tx.execute(statement, named)
    receipt = ForgetReceipt(id=secrets.token_hex(8), at=now, events=events, rows=rows)
    await tx.execute(ADD_RECEIPT, {
        "id": receipt.id, "machine": who.machine, "now": now, "events": events, "rows": rows,
        "asked": _json({name: len(value) for name, value in named.items() if isinstance(value, list)}),
    })  # fmt: skip
    await write_audit(tx, who, "forgotten", {"receipt": receipt.id, "events": events}, now)
    return receipt


_MINE = "tenant = %(tenant)s and machine = %(machine)s"
_NAMED = "(session = any(%(sessions)s) or project = any(%(projects)s))"
FORGET_EVENTS = f"delete from events where {_MINE} and ({_NAMED} or seq = any(%(numbers)s))"
FORGET_MORE = (
    f"delete from sessions where {_MINE} and {_NAMED}",
    f"delete from edited_files where {_MINE} and {_NAMED}",
    """update feed set payload = '{}' where tenant = %(tenant)s and kind = 'handover' and by_person = %(person)s
       and (payload->>'session' = any(%(sessions)s) or project = any(%(projects)s))""",
    """delete from memories where tenant = %(tenant)s and by_person = %(person)s and project = any(%(projects)s)
       and promoted_at = 0""",
)
ADD_RECEIPT = """
insert into receipts (tenant, id, machine, at, asked, events, rows)
values (%(tenant)s, %(id)s, %(machine)s, %(now)s, %(asked)s, %(events)s, %(rows)s)
"""


def _need_text(what: str, text: str, longest: int = LONGEST_NAME) -> None:
    if not text.strip() or len(text) > longest:
        raise Refused(422, f"{what} has 1 to {longest} characters")
