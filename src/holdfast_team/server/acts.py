"""What members of a team do, each as statements in one transaction of their tenant."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import msgspec

from holdfast_team import core, protocol
from holdfast_team.server import spending
from holdfast_team.server.limits import BURST_S, MACHINE_EVENTS_PER_S
from holdfast_team.server.tenancy import Act, Refused, hash_secret, json_rows, json_value, need_text, new_secret

LONGEST_TEXT, LONGEST_REMOTE = 20_000, 2_000


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def store_batch(act: Act, batch: protocol.Batch) -> tuple[protocol.BatchAnswer, int]:
    """Return the answer, and how many events are new. The machine's row is locked, so nobody else moves its cursor."""
    # Locked before anything is judged: two batches of one machine are processed in turn.
    row = await act.one(LOCK_MACHINE, today=_day_of(act.now))
    if row is None or row["revoked_at"]:
        raise Refused(401, "this machine was revoked", "Ask an admin of your team for a new code.")
    have = _cursor_of(row)
    taken = await _accept_batch(act, have, batch)
    cursor = taken.cursor
    if cursor.run != have.run:
        await act.execute(SAVE_RUN, run=cursor.run, past=list(cursor.past_runs))
    if cursor.stream != have.stream and not taken.gap:
        await act.execute(SAVE_STREAMS, restores=json_value(cursor.restores))
    if not (taken.gap or taken.copied):
        await _store_events(act, batch, taken, row)
    answer = protocol.BatchAnswer(
        stream=cursor.stream, cursor=cursor.cursor, key=cursor.key if taken.gap else "",
        taken=len(taken.fresh), known=taken.known, gap=taken.gap, copied=taken.copied, feed=row["feed_head"],
    )  # fmt: skip
    return answer, len(taken.fresh)


def _cursor_of(row: Mapping[str, Any]) -> core.MachineCursor:
    return core.MachineCursor(
        stream=row["stream"], cursor=row["cursor"], key=row["cursor_key"] if row["key_at"] == row["cursor"] else "",
        top=max(row["top"], row["cursor"]), run=row["run"], past_runs=tuple(row["past_runs"]),
        restores=tuple((int(stream), int(common)) for stream, common in row["restores"]),
    )  # fmt: skip


async def _accept_batch(act: Act, have: core.MachineCursor, batch: protocol.Batch) -> core.Accepted:
    try:
        needed = core.keys_needed(have, batch)
        rows = await act.all(STORED_KEYS, first=needed[0], last=needed[1]) if needed else []
        return core.accept_batch(have, batch, frozenset(row["key"] for row in rows))
    except core.BatchRefused as error:
        raise Refused(422, str(error), "Run: holdfast team status") from error


async def _store_events(act: Act, batch: protocol.Batch, taken: core.Accepted, row: Mapping[str, Any]) -> None:
    cursor, fresh = taken.cursor, taken.fresh
    place = {
        "key": cursor.key, "top": cursor.top, "stream": cursor.stream, "cursor": cursor.cursor, "level": batch.level,
        "skew": batch.sent_at - act.now if batch.sent_at else 0, "allowance": take_allowance(row, len(fresh), act.now),
    }  # fmt: skip
    # Nothing to store: only the cursor moves.
    if not fresh:
        await act.execute(MOVE_CURSOR, **place)
        return
    spent = spending.sum_rows(core.list_spending(fresh), act.now)
    await act.execute(STORE_BATCH, **place, **_rows_of(batch, fresh, act.now), spent=json_rows(spent))
    # Skipped without budgets.
    if spent and row["has_budgets"]:
        await spending.tell_budgets(act)


LOCK_MACHINE = """
select m.stream, m.cursor, m.cursor_key, m.key_at, m.top, m.run, m.past_runs, m.restores, m.revoked_at, m.allowance, m.allowance_at,
       t.feed_head, t.events_per_day,
       exists (select 1 from budgets b where b.tenant = t.tenant) as has_budgets,
       case when t.events_per_day > 0 then (
         select coalesce(sum(u.events), 0) from daily_use u where u.tenant = t.tenant and u.day = %(today)s
       ) else 0 end as used_today
from machines m join tenants t on t.tenant = m.tenant
where m.tenant = %(tenant)s and m.machine = %(machine)s for update of m
"""
READ_MACHINE = """
select m.stream, m.cursor, t.feed_head from machines m join tenants t on t.tenant = m.tenant
where m.tenant = %(tenant)s and m.machine = %(machine)s
"""
SAVE_RUN = """
update machines set run = %(run)s, past_runs = %(past)s where tenant = %(tenant)s and machine = %(machine)s
"""
SAVE_STREAMS = "update machines set restores = %(restores)s where tenant = %(tenant)s and machine = %(machine)s"
MOVE_CURSOR = """
update machines set stream = %(stream)s, cursor = %(cursor)s, cursor_key = %(key)s, key_at = %(cursor)s, top = %(top)s,
  seen_at = %(now)s, level = %(level)s, skew_ms = %(skew)s,
  allowance = %(allowance)s, allowance_at = %(now)s
where tenant = %(tenant)s and machine = %(machine)s
"""


STORED_KEYS = """
select key from events where tenant = %(tenant)s and machine = %(machine)s and seq between %(first)s and %(last)s
"""


def take_allowance(row: Mapping[str, Any], count: int, now: int) -> float:
    """What the machine may send after this. Kept in its row, so that all server processes share the limit."""
    if row["events_per_day"] and count and row["used_today"] + count > row["events_per_day"]:
        raise Refused(
            429, f"the team's {row['events_per_day']} events of today are used up", "It continues at 0:00 UTC."
        )
    most = MACHINE_EVENTS_PER_S * BURST_S
    waited = max(0, now - row["allowance_at"]) / 1000
    # A bucket that fills with time, up to ten seconds' worth.
    left: float = min(most, row["allowance"] + waited * MACHINE_EVENTS_PER_S) - count
    if left < 0:
        raise Refused(429, f"too much at once; try again in {max(1, round(-left / MACHINE_EVENTS_PER_S))} s")
    return left


def _day_of(now: int) -> date:
    return datetime.fromtimestamp(now / 1000, UTC).date()


def _rows_of(batch: protocol.Batch, fresh: Sequence[protocol.SharedEvent], now: int) -> dict[str, Any]:
    sessions = core.sum_up_sessions(fresh)
    edited = [(s.project, path, s.session) for s in sessions if s.project for path in s.edited]
    projects, paths, of = (list(column) for column in zip(*sorted(edited), strict=True)) if edited else ([], [], [])
    return {
        # An unknown level would never expire.
        "levels": list(protocol.LEVELS),
        "today": _day_of(now), "count": len(fresh), "batch_stream": batch.stream, "events": json_rows(fresh),
        "projects": json_rows(_known_projects(batch)),
        "sessions": json_rows(sessions), "edited_projects": projects, "edited_paths": paths, "edited_sessions": of,
    }  # fmt: skip


def _known_projects(batch: protocol.Batch) -> list[protocol.SharedProject]:
    """In order, so that two machines never deadlock. Ids that do not match their address are left out: otherwise the
    first sender could name a project for everyone."""
    fit = (one for one in batch.projects if len(one.remote) <= LONGEST_REMOTE)
    return sorted((one for one in fit if one.id == core.project_id(one.remote, one.root)), key=lambda one: one.id)


STORE_BATCH = f"""
with moved as ({MOVE_CURSOR}),
projects_added as (
  insert into projects (tenant, project, remote, root, first_at)
  select %(tenant)s, r.id, r.remote, r.root, %(now)s
  from json_to_recordset(%(projects)s::json) as r(id text, remote text, root text)
  on conflict do nothing
),
events_added as (
  insert into events (tenant, received_at, machine, stream, seq, key, at, kind, session, project, agent, tool, level, data)
  select %(tenant)s, %(now)s, %(machine)s, %(batch_stream)s, r.seq, r.key, r.at, r.kind, coalesce(r.session, ''),
    coalesce(r.project, ''), coalesce(r.agent, ''), coalesce(r.tool, ''),
    case when r.level = any(%(levels)s) then r.level else %(level)s end, coalesce(r.data, '{{}}')
  from json_to_recordset(%(events)s::json)
    as r(seq bigint, key text, at bigint, kind text, session text, project text, agent text, tool text, level text, data jsonb)
),
counted as (
  insert into daily_use as u (tenant, day, machine, events) values (%(tenant)s, %(today)s, %(machine)s, %(count)s)
  on conflict (tenant, day, machine) do update set events = u.events + excluded.events
),
sessions_saved as (
  insert into sessions as s (tenant, machine, session, person, project, agent, branch, state, title, first_at, at, seen_at)
  select %(tenant)s, %(machine)s, r.session, %(by)s, coalesce(r.project, ''), coalesce(r.agent, ''),
    coalesce(r.branch, ''), coalesce(r.state, ''), coalesce(r.title, ''), coalesce(r.first_at, 0), coalesce(r.at, 0), %(now)s
  from json_to_recordset(%(sessions)s::json)
    as r(session text, project text, agent text, branch text, state text, title text, first_at bigint, at bigint)
  on conflict (tenant, machine, session) do update set
    person = excluded.person, at = greatest(s.at, excluded.at), seen_at = excluded.seen_at,
    project = coalesce(nullif(excluded.project, ''), s.project), agent = coalesce(nullif(excluded.agent, ''), s.agent),
    branch = coalesce(nullif(excluded.branch, ''), s.branch), state = coalesce(nullif(excluded.state, ''), s.state),
    title = coalesce(nullif(excluded.title, ''), s.title)
),
edited_saved as (
  insert into edited_files (tenant, project, path, machine, session, at)
  select distinct %(tenant)s, r.project, r.path, %(machine)s, r.session, %(now)s::bigint
  from unnest(%(edited_projects)s::text[], %(edited_paths)s::text[], %(edited_sessions)s::text[])
    as r(project, path, session)
  on conflict (tenant, project, path, machine, session) do update set at = excluded.at
)
{spending.ADD_SPENDING}
"""
"""All changes of a batch as one statement, i.e. one round trip."""


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def change_lease(act: Act, request: protocol.LeaseRequest) -> protocol.LeaseAnswer:
    """A renewal is a heartbeat. Others are informed when it changes hands, and again after half its time."""
    need_text("the lease's name", request.name)
    key = {"project": request.project, "name": request.name}
    # There must be a row to lock: two machines that request a new name at once then wait for each other.
    await act.execute(MAKE_LEASE, **key)
    row = await act.one(LOCK_LEASE, **key)
    before = msgspec.convert(row["lease"], core.Lease) if row else core.Lease()
    lease, outcome = core.change_lease(before, request, act.who.machine, act.who.person, act.now)
    if lease != before:
        await act.execute(SAVE_LEASE, **key, lease=json_value(msgspec.to_builtins(lease)))
    if outcome in ("granted", "renewed"):
        await act.execute("update machines set seen_at = %(now)s where tenant = %(tenant)s and machine = %(machine)s")
        item = {**msgspec.to_builtins(lease), "name": request.name, "left_ms": lease.until - act.now}
        await act.tell("lease", item, project=request.project)
    elif outcome == "released":
        ended = {"name": request.name, "token": before.token}
        await act.tell("lease_ended", ended, project=request.project)
    granted = outcome in ("granted", "renewed", "released")
    return protocol.LeaseAnswer(
        granted=granted, token=lease.token, ttl_s=lease.ttl_s, person=lease.person, machine=lease.machine,
        session=lease.session, why=lease.why if granted else outcome,
    )  # fmt: skip


MAKE_LEASE = """
insert into leases (tenant, project, name, lease)
select t.tenant, %(project)s, %(name)s, jsonb_build_object('token', t.lease_floor) from tenants t where t.tenant = %(tenant)s
on conflict do nothing
"""
"""A forgotten name that is taken again must not reuse an old token."""
LOCK_LEASE = (
    "select lease from leases where tenant = %(tenant)s and project = %(project)s and name = %(name)s for update"
)
SAVE_LEASE = """
update leases set lease = %(lease)s where tenant = %(tenant)s and project = %(project)s and name = %(name)s
"""


# ── memories, hand-overs, rules ──────────────────────────────────────────────────────────────────────────────────────


async def propose_memory(act: Act, memory: protocol.MemoryProposal) -> dict[str, str]:
    need_text("a memory", memory.text, LONGEST_TEXT)
    await act.execute(ADD_MEMORY, id=memory.id, project=memory.project, type=memory.type, text=memory.text)
    return {"id": memory.id}


ADD_MEMORY = """
insert into memories (tenant, id, project, type, text, by_person, at, machine)
values (%(tenant)s, %(id)s, %(project)s, %(type)s, %(text)s, %(by)s, %(now)s, %(machine)s) on conflict do nothing
"""


async def promote_memory(act: Act, memory: str) -> dict[str, str]:
    """Promoting it again tells nobody anything new."""
    row = await act.one(PROMOTE, id=memory)
    if row is None:
        raise Refused(404, "there is no such memory to promote", "See: holdfast team memories")
    item = {"id": row["id"], "type": row["type"], "text": row["text"], "words_of": row["by_person"]}
    await act.tell("memory", item, project=row["project"])
    await act.audit("memory.promoted", {"id": memory})
    return {"id": memory}


PROMOTE = """
update memories set promoted_by = %(by)s, promoted_at = %(now)s
where tenant = %(tenant)s and id = %(id)s and promoted_at = 0 returning id, project, type, text, by_person
"""


async def hand_over(act: Act, request: protocol.HandoverRequest) -> dict[str, str]:
    need_text("a hand-over", request.text, LONGEST_TEXT)
    if not await act.one("select 1 from people where tenant = %(tenant)s and person = %(to)s", to=request.to):
        raise Refused(404, f"there is no member called {request.to[:40]!r} in your team", "See: holdfast team people")
    words = core.words_key(act.who.machine, request.words)
    item = {"text": request.text, "session": request.session, "words": words}
    await act.tell("handover", item, project=request.project, person=request.to)
    return {"to": request.to}


async def set_rule(act: Act, rule: protocol.RuleRequest) -> dict[str, str]:
    if problem_found := _check_requirement(rule):
        raise Refused(422, problem_found, "A rule is written as in .claude/requirements.yaml.")
    await act.execute(SAVE_RULE, name=rule.name, requirement=json_value(rule.requirement))
    item = {"name": rule.name, "requirement": rule.requirement}
    await act.tell("rule", item)
    await act.audit("rule.set", item)
    return {"name": rule.name}


def _check_requirement(rule: protocol.RuleRequest) -> str:
    """Parsed as on a machine: what no machine could follow is refused here."""
    from holdfast.core.section import Unfit
    from holdfast.features.gates.settings import GateSettings

    try:
        settings = GateSettings.of({"requirements": {rule.name: rule.requirement}})
    except (Unfit, ValueError) as error:
        return str(error)
    return "" if rule.name in settings.requirements else "it is not a requirement"


SAVE_RULE = """
insert into rules (tenant, name, requirement, by_person, at)
values (%(tenant)s, %(name)s, %(requirement)s, %(by)s, %(now)s)
on conflict (tenant, name) do update
set requirement = excluded.requirement, by_person = excluded.by_person, at = excluded.at
"""


async def withdraw_rule(act: Act, name: str) -> dict[str, str]:
    if not await act.execute("delete from rules where tenant = %(tenant)s and name = %(name)s", name=name):
        raise Refused(404, f"there is no rule {name[:60]!r}", "See: holdfast team rules")
    await act.tell("rule_withdrawn", {"name": name})
    await act.audit("rule.withdrawn", {"name": name})
    return {"name": name}


# ── people and machines ──────────────────────────────────────────────────────────────────────────────────────────────


async def issue_code(act: Act, request: protocol.CodeRequest) -> protocol.CodeIssued:
    need_text("a person's name", request.person)
    code, until = new_secret("join"), act.now + max(1, min(request.hours, 24 * 14)) * 3_600_000
    await act.execute(ADD_CODE, hash=hash_secret(code), person=request.person, role=request.role, until=until)
    await act.audit("code.issued", {"person": request.person, "role": request.role})
    return protocol.CodeIssued(code=code, person=request.person, role=request.role, until=until)


ADD_CODE = """
insert into codes (tenant, code_hash, person, role, until) values (%(tenant)s, %(hash)s, %(person)s, %(role)s, %(until)s)
"""


async def revoke_machines(act: Act, request: protocol.RevokeRequest) -> dict[str, int]:
    """In force at commit: every request looks up the token, and a batch checks again under the lock."""
    if not (request.machine or request.person):
        raise Refused(422, "nothing was named that is to be revoked")
    named = {"machine": request.machine, "person": request.person}
    if request.person:
        await act.execute(BLOCK_PERSON, **named)
        await act.execute(DROP_CODES, **named)
    rows = await act.all(REVOKE, **named)
    for row in rows:
        await act.tell("revoked", {}, for_machine=row["machine"])
    about = {"machines": [row["machine"] for row in rows], "person": request.person}
    await act.audit("machine.revoked", about)
    return {"revoked": len(rows)}


async def leave_team(act: Act) -> dict[str, int]:
    return await revoke_machines(act, protocol.RevokeRequest(machine=act.who.machine))


BLOCK_PERSON = "update people set blocked_at = %(now)s where tenant = %(tenant)s and person = %(person)s"
"""They may not sign on again until an admin invites them."""
DROP_CODES = "delete from codes where tenant = %(tenant)s and person = %(person)s and used_at = 0"
"""An old code would let them in again."""
REVOKE = """
update machines set revoked_at = %(now)s where tenant = %(tenant)s and revoked_at = 0
and (machine = %(machine)s or (%(person)s <> '' and person = %(person)s)) returning machine
"""


async def rotate_token(act: Act, given: str) -> str:
    """Return the new token if the machine did not make it. The old one is valid until the new one is first used: the
    answer may be lost, and a machine must never be locked out."""
    token = "" if given else new_secret("hft")
    await act.execute(NEXT_HASH, hash=parse_hash(given) if given else hash_secret(token))
    await act.audit("token.rotated", {"machine": act.who.machine})
    return token


NEXT_HASH = """
update machines set next_hash = %(hash)s, rotated_at = %(now)s where tenant = %(tenant)s and machine = %(machine)s
"""


def parse_hash(text: str) -> bytes:
    if len(text) != 64 or text.strip("0123456789abcdef"):
        raise Refused(422, "a token's hash has 64 hexadecimal digits")
    return bytes.fromhex(text)
