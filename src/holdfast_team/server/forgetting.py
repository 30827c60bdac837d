"""Deletes what a machine sent, everywhere on the server, and informs those who received it: events, sessions, edited
files, and words of commands (hand-overs, leases, memories)."""

import secrets
from typing import Any

from holdfast_team import core
from holdfast_team.protocol import ForgetReceipt, ForgetRequest
from holdfast_team.server.tenancy import Act, json_value

# Every renewal of a lease is an item: a machine can only know the last ones.
MOST_NAMED = 500


async def erase_shared_data(act: Act, request: ForgetRequest) -> ForgetReceipt:
    """Of this machine only. Token sums stay, because they are not kept by session."""
    named = {
        "sessions": list(request.sessions),
        "projects": list(request.projects), "numbers": list(request.numbers), "words": list(request.words),
        "keys": [core.words_key(act.who.machine, one) for one in request.words], "all": request.everything,
        "prefix": f"{act.who.machine}/",
    }  # fmt: skip
    named["touched"] = [row["session"] for row in await act.all(SESSIONS_OF_NUMBERS, **named)]
    events = await act.execute(FORGET_EVENTS, **named)
    rows = 0
    for statement in (*FORGET_ROWS, *FORGET_UNSUPPORTED_ROWS):
        rows += await act.execute(statement, **named)
    words = await _withdraw_words(act, named)
    receipt = ForgetReceipt(id=secrets.token_hex(8), at=act.now, events=events, rows=rows + words, words=words)
    # How many were named, not which: the receipt must not repeat what was forgotten.
    asked = {
        name: len(value) for name, value in named.items() if isinstance(value, list) and name not in ("keys", "touched")
    }
    counted = json_value({**asked, "everything": request.everything})
    await act.execute(ADD_RECEIPT, id=receipt.id, events=events, rows=receipt.rows, asked=counted)
    await act.audit("forgotten", {"receipt": receipt.id, "events": events, "words": words})
    return receipt


async def _withdraw_words(act: Act, named: dict[str, Any]) -> int:
    """Withdraw words from everyone who received them; return how many there were."""
    items = [row["id"] for row in await act.all(FORGET_ITEMS, **named)]
    memories = await act.all(FORGET_MEMORIES, **named)
    await act.execute(RAISE_FLOOR, **named)
    leases = await act.execute(FORGET_LEASES, **named)
    if items:
        await act.tell("withdrawn", {"numbers": sorted(items)[-MOST_NAMED:]})
    for project in sorted({row["project"] for row in memories if row["promoted_at"]}):
        gone = [row["id"] for row in memories if row["project"] == project]
        await act.tell("withdrawn", {"memories": gone}, project=project)
    return len(items) + len(memories) + leases


_MINE = "tenant = %(tenant)s and machine = %(machine)s"
_NAMED = "(%(all)s or session = any(%(sessions)s) or project = any(%(projects)s))"
FORGET_EVENTS = f"delete from events where {_MINE} and ({_NAMED} or seq = any(%(numbers)s))"
FORGET_ROWS = (
    f"delete from sessions where {_MINE} and {_NAMED}",
    f"delete from edited_files where {_MINE} and {_NAMED}",
)
SESSIONS_OF_NUMBERS = f"select distinct session from events where {_MINE} and seq = any(%(numbers)s)"
_LEFT = "from events e where e.tenant = {0}.tenant and e.machine = {0}.machine and e.session = {0}.session"
_TOUCHED = f"{_MINE} and session = any(%(touched)s)"
FORGET_UNSUPPORTED_ROWS = (
    f"delete from edited_files f where {_TOUCHED} and not exists"
    f" (select 1 {_LEFT.format('f')} and e.data->'paths' @> to_jsonb(f.path))",
    f"update sessions s set title = '' where {_TOUCHED} and title <> '' and not exists"
    f" (select 1 {_LEFT.format('s')} and e.data->>'title' = s.title)",
    f"delete from sessions s where {_TOUCHED} and not exists (select 1 {_LEFT.format('s')})",
)
"""What the deleted events had put into other tables."""
_MY_WORDS = "(%(all)s and starts_with({0}, %(prefix)s) or {0} = any(%(keys)s))"
FORGET_ITEMS = f"""
delete from feed where tenant = %(tenant)s and kind in ('handover', 'lease', 'memory') and (
  {_MY_WORDS.format("payload->>'words'")}
  or by_person = %(by)s and kind = 'handover'
    and (payload->>'session' = any(%(sessions)s) or project = any(%(projects)s))
  or payload->>'words_of' = %(by)s and kind = 'memory' and (payload->>'id' = any(%(words)s) or project = any(%(projects)s)
    or %(all)s and payload->>'id' in (select m.id from memories m where m.tenant = feed.tenant and m.machine = %(machine)s))
) returning id
"""
FORGET_MEMORIES = """
delete from memories where tenant = %(tenant)s and by_person = %(by)s
and (id = any(%(words)s) or project = any(%(projects)s) or %(all)s and machine = %(machine)s)
returning id, project, promoted_at
"""
"""Also those that a lead promoted: the words still belong to their author."""
_MY_LEASES = "tenant = %(tenant)s and " + _MY_WORDS.format("lease->>'words'")
RAISE_FLOOR = f"""
update tenants set lease_floor = greatest(lease_floor,
  (select coalesce(max((lease->>'token')::bigint), 0) from leases where {_MY_LEASES}))
where tenant = %(tenant)s
"""
FORGET_LEASES = f"delete from leases where {_MY_LEASES}"
ADD_RECEIPT = """
insert into receipts (tenant, id, machine, at, asked, events, rows)
values (%(tenant)s, %(id)s, %(machine)s, %(now)s, %(asked)s, %(events)s, %(rows)s)
"""
