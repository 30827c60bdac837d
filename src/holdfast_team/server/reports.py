"""Reports of a team: the board over all machines, overlaps, cost, people, memories, the audit log."""

from typing import Any

from holdfast.core.times import DAY, HOUR
from holdfast_team.server.tenancy import Act

# In ms: how long a silent session stays on the board, and how long an edit counts as an overlap.
BOARD_MS = DAY
OVERLAP_MS = 8 * HOUR
SILENT_MS = 90_000
"""A machine sends at least an empty batch every half minute; after this its sessions' state is unknown."""
PAGE = 500


async def read_board(act: Act) -> dict[str, Any]:
    """Sessions that are not over, files that two of them wrote, leases that are held."""
    sessions = await act.all(SESSIONS, since=act.now - BOARD_MS, most=PAGE)
    for one in sessions:
        if act.now - one["machine_seen_at"] > SILENT_MS:
            one["state"] = "unknown"
    overlaps = await act.all(OVERLAPS, since=act.now - OVERLAP_MS, board=act.now - BOARD_MS, most=PAGE)
    leases = [
        {"project": row["project"], "remote": row["remote"], "name": row["name"], **row["lease"]}
        for row in await act.all(LEASES, most=PAGE)
    ]
    return {"now": act.now, "sessions": sessions, "overlaps": overlaps, "leases": leases}


SESSIONS = """
select s.person, s.machine, m.label, s.session, s.project, p.remote, s.agent, s.branch, s.state, s.title, s.at, s.seen_at,
       m.seen_at as machine_seen_at, m.level,
       array(select e.path from edited_files e where e.tenant = s.tenant and e.machine = s.machine
             and e.session = s.session and e.project = s.project order by e.at desc, e.path limit 20) as files
from sessions s join machines m on m.tenant = s.tenant and m.machine = s.machine
left join projects p on p.tenant = s.tenant and p.project = s.project
where s.tenant = %(tenant)s and s.seen_at >= %(since)s and s.state <> 'over' and m.revoked_at = 0
order by s.state = 'waiting' desc, s.seen_at desc limit %(most)s
"""
OVERLAPS = """
select e.project, p.remote, e.path,
       json_agg(json_build_object('person', s.person, 'machine', s.machine, 'session', s.session, 'branch', s.branch, 'at', e.at)
                order by s.person, s.machine, s.session) as sessions
from edited_files e
join sessions s on s.tenant = e.tenant and s.machine = e.machine and s.session = e.session
left join projects p on p.tenant = e.tenant and p.project = e.project
where e.tenant = %(tenant)s and e.at >= %(since)s and s.state <> 'over' and s.seen_at >= %(board)s
group by e.project, p.remote, e.path having count(*) > 1
order by max(e.at) desc, e.path limit %(most)s
"""
LEASES = """
select l.project, p.remote, l.name, l.lease from leases l
left join projects p on p.tenant = l.tenant and p.project = l.project
where l.tenant = %(tenant)s and (l.lease->>'until')::bigint > %(now)s order by l.project, l.name limit %(most)s
"""


async def read_cost(act: Act) -> list[dict[str, Any]]:
    """Tokens by person, project, model, week and kind; the reader prices them."""
    rows = await act.all(COST, most=5_000)
    return [{**row, "week": row["week"].isoformat()} for row in rows]


COST = """
select s.week, s.person, s.project, p.remote, s.model, s.kind, s.tokens from spending s
left join projects p on p.tenant = s.tenant and p.project = s.project
where s.tenant = %(tenant)s order by s.week desc, s.person, s.project, s.model, s.kind limit %(most)s
"""


async def list_people(act: Act) -> list[dict[str, Any]]:
    return await act.all(PEOPLE)


PEOPLE = """
select p.person, p.role, p.added_at,
       coalesce(json_agg(json_build_object('machine', m.machine, 'label', m.label, 'seen_at', m.seen_at, 'level', m.level,
         'revoked_at', m.revoked_at, 'skew_ms', m.skew_ms) order by m.machine) filter (where m.machine is not null), '[]') as machines
from people p left join machines m on m.tenant = p.tenant and m.person = p.person
where p.tenant = %(tenant)s group by p.tenant, p.person order by p.person
"""


async def list_rules(act: Act) -> list[dict[str, Any]]:
    return await act.all("select name, requirement, by_person, at from rules where tenant = %(tenant)s order by name")


async def list_memories(act: Act) -> list[dict[str, Any]]:
    return await act.all(MEMORIES, most=PAGE)


MEMORIES = """
select id, project, type, text, by_person, at, promoted_by, promoted_at from memories
where tenant = %(tenant)s order by promoted_at = 0 desc, at desc limit %(most)s
"""


async def read_audit(act: Act, before: int) -> list[dict[str, Any]]:
    return await act.all(AUDIT, before=before, most=PAGE)


AUDIT = """
select id, at, by_person, act, about from audit
where tenant = %(tenant)s and (%(before)s = 0 or id < %(before)s) order by id desc limit %(most)s
"""
