-- name: durable
select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') <> 'remote_apply'

-- name: patience
select set_config('lock_timeout', %s, false), set_config('idle_in_transaction_session_timeout', %s, false)

-- name: begin
-- Read committed, said aloud: a stricter default would fix the snapshot before the lock is ours, and the head would be old.
begin isolation level read committed read write

-- name: lock
-- One writer at a time among all daemons: commits come in the order of their seqs.
select pg_advisory_xact_lock(%s, %s)

-- name: head
select coalesce(max(seq), 0) from events

-- name: head_and_schema
select (select coalesce(max(seq), 0) from events), (select value::integer from meta where name = 'schema')

-- name: write_batch
select write_batch(
  %s, %s, %s::bigint, %s, %s, %s, %s::text[],
  %b::bigint[], %s::text[], %s::text[], %b::bigint[], %s::text[], %s::text[], %s::text[], %b::integer[],
  %s::text[], %b::bytea[], %b::bigint[], %b::bigint[], %s::text[], %b::bytea[],
  %s::text[], %s::text[], %s::text[], %s::text[], %b::integer[], %s::text[], %s::text[], %b::bigint[], %b::bytea[],
  %s::text[], %s::text[], %s::text[], %s::text[], %b::bigint[], %b::bytea[],
  %b::bigint[], %b::bigint[], %b::bigint[], %s::text[], %b::integer[], %s)

-- name: index_history
select index_history(%s, %s, %s, %s, %b::bigint[], %s::text[], %s::text[], %b::boolean[])

-- name: session_agents
-- The first event that names an agent tells whose session it is.
select s.name, a.name from names s
join events e on e.seq = (
  select min(seq) from events where session = s.id and agent <> coalesce((select id from names where name = ''), 0))
join names a on a.id = e.agent
where s.name = any(%s)

-- name: known
select key, seq from facts where key = any(%s)

-- name: name_ids
select name, id from names where name = any(%s)

-- name: names
select id, name from names where id = any(%s)

-- name: intern
with new as (insert into names (name) select unnest(%s::text[]) on conflict (name) do nothing returning name, id)
select name, id from new union all select name, id from names where name = any(%s)

-- name: add_events
insert into events (seq, session, project, at, kind, tool, agent, v) select * from unnest(
  %b::bigint[], %b::integer[], %b::integer[], %b::bigint[], %b::integer[], %b::integer[], %b::integer[], %b::integer[])

-- name: add_facts
insert into facts (seq, key, data) select * from unnest(%b::bigint[], %s::text[], %b::bytea[])

-- name: add_bodies
insert into bodies (seq, size, hash, body) select * from unnest(%b::bigint[], %b::bigint[], %s::text[], %b::bytea[])

-- name: load
select kind, key, doc from states join unnest(%s::text[], %s::text[]) as wanted (kind, key) using (kind, key)

-- name: save
insert into states (kind, key, feature, version, project, status, at, doc) select * from unnest(
  %s::text[], %s::text[], %s::text[], %b::integer[], %b::integer[], %s::text[], %b::bigint[], %b::bytea[])
on conflict (kind, key) do update set feature = excluded.feature, version = excluded.version, project = excluded.project,
  status = excluded.status, at = excluded.at, doc = excluded.doc

-- name: drop_states
delete from states where feature = %s

-- name: enqueue
-- A job that is already waiting is one job; one that is running must run again afterwards with the newer payload.
insert into jobs (kind, dedupe, run_at, payload) values (%s, %s, %s, %s)
on conflict (kind, dedupe) where dedupe <> '' and dead = 0 do update set
  again = case when jobs.owner <> '' then 1 else jobs.again end,
  run_at = case when jobs.owner <> '' then jobs.run_at else least(jobs.run_at, excluded.run_at) end,
  payload = excluded.payload
where jobs.owner <> '' or excluded.run_at < jobs.run_at or excluded.payload <> jobs.payload

-- name: claim
with due as (
  select id from jobs
  where dead = 0 and run_at <= %(now)s and (owner = '' or lease_until < %(now)s) and kind = any(%(kinds)s)
  order by run_at, id limit %(limit)s for update skip locked)
update jobs set owner = %(owner)s, lease_until = %(until)s, attempts = attempts + 1, again = 0
from due where jobs.id = due.id
returning run_at, jobs.id, kind, dedupe, attempts, payload

-- name: extend
update jobs set lease_until = %s where id = %s and owner = %s returning id

-- name: run_again
update jobs set owner = '', lease_until = 0, attempts = 0, again = 0, error = ''
where id = %s and owner = %s and again = 1 returning id

-- name: finish
delete from jobs where id = %s and owner = %s returning id

-- name: retry
update jobs set owner = '', lease_until = 0, run_at = %s, error = %s, dead = case when again = 1 then 0 else %s end
where id = %s and owner = %s returning id

-- name: release
update jobs set owner = '', lease_until = 0, attempts = greatest(0, attempts - 1)
where owner = %s and dead = 0 returning id

-- name: jobs
select id, kind, dedupe, run_at, attempts, owner, lease_until, dead, error from jobs order by id limit %s

-- name: meta
select value from meta where name = %s

-- name: set_meta
insert into meta (name, value) values (%s, %s) on conflict (name) do update set value = excluded.value

-- name: facts_with
select seq, data from facts where position(%(probe)s::text in lower(encode(data, 'escape'))) > 0

-- name: set_facts
update facts set data = %(row)s where seq = %(key)s

-- name: bodies_with
select seq, body from bodies where position(%(probe)s::text in lower(encode(body, 'escape'))) > 0

-- name: set_bodies
update bodies set body = %(row)s where seq = %(key)s

-- name: states_with
select kind, key, doc from states where position(%(probe)s::text in lower(encode(doc, 'escape'))) > 0

-- name: set_states
update states set doc = %(row)s where kind = %(kind)s and key = %(key)s

-- name: all_jobs
select id, dedupe, error, payload from jobs order by id

-- name: drop_job
delete from jobs where id = %(key)s

-- name: place_names
-- Sessions and projects: kinds and tools are words of ours and of agents.
select id, name from names
where id in (select session from events union select project from events) and name <> ''

-- name: set_name
update names set name = %(name)s where id = %(key)s

-- name: sessions_only_in
-- Sessions of which every event that has a project has one of these.
select distinct session from events where project = any(%(ids)s) and session not in (
  select session from events where not (project = any(%(ids)s)) and project not in (select id from names where name = ''))
  and session not in (select id from names where name = '')

-- name: events_named
select seq from events where session = any(%(ids)s) or project = any(%(ids)s)

-- name: blank_facts
update facts set data = '{}'::bytea where seq = any(%(ids)s)

-- name: blank_bodies
delete from bodies where seq = any(%(ids)s)

-- name: blank_events
update events set session = %(none)s, project = %(none)s, tool = %(none)s, agent = %(none)s, kind = %(kind)s, v = 1
where seq = any(%(ids)s)

-- name: drop_states_of
delete from states where project = any(%(ids)s)

-- name: drop_names
delete from names where id = any(%(ids)s)
  and not exists (select 1 from events where session = names.id or project = names.id)
  and not exists (select 1 from states where project = names.id)

-- name: expire_bodies
-- Only the oldest are looked at: a log without old bodies must not be read through to find that out.
delete from bodies where seq in (
  select b.seq from (select seq from bodies order by seq limit %s) b join events e on e.seq = b.seq where e.at < %s)
returning seq

-- name: any_due
select id from jobs where dead = 0 and run_at <= %s and (owner = '' or lease_until < %s) and kind = any(%s) limit 1

-- name: state
select doc from states where kind = %s and key = %s

-- name: rows
select s.kind, s.key, s.feature, s.version, n.name, s.status, s.at, s.doc from states s join names n on n.id = s.project
where s.feature = %s and (s.kind, s.key) > (%s, %s) order by s.kind, s.key limit %s

-- name: counts
select (select coalesce(max(seq), 0) from events) as events,
  (select count(*) from jobs where dead = 0) as jobs,
  (select count(*) from jobs where dead = 1) as dead_jobs,
  (select coalesce(min(seq), 0) from bodies) as oldest_body

-- name: add_history
insert into history (seq, words, paths, failed)
select seq, to_tsvector('simple', words), to_tsvector('simple', paths), failed
from unnest(%b::bigint[], %s::text[], %s::text[], %b::boolean[]) as new (seq, words, paths, failed)
on conflict (seq) do update set words = excluded.words, paths = excluded.paths, failed = excluded.failed

-- name: drop_history
delete from history where seq = any(%s)

-- name: events_of
select e.seq, '', '', e.at, kind.name, '', '', e.v, f.key, f.data
from events e join facts f on f.seq = e.seq join names kind on kind.id = e.kind where e.seq = any(%s)

-- name: body_keys
-- How many bodies each key has encrypted; those with an empty key are plain.
select case when substring(body from 1 for 5) = %b then substring(body from 6 for 8) else ''::bytea end as key, count(*)
from bodies group by 1

-- name: bodies_in_form
select seq from bodies where seq > %s and (substring(body from 1 for 5) = %b) = %s order by seq limit %s

-- name: encrypted_bodies
select seq, body from bodies where seq > %(after)s and substring(body from 1 for 5) = %(mark)s order by seq limit %(limit)s

-- name: bodies_of
select seq, body from bodies where seq = any(%(ids)s)
