-- name: head
select coalesce(max(seq), 0) from events

-- name: session_agents
-- The first event that names an agent tells whose session it is.
select s.name, a.name from names s
join events e on e.seq = (
  select min(seq) from events where session = s.id and agent <> coalesce((select id from names where name = ''), 0))
join names a on a.id = e.agent
where s.name in (select value from json_each(?))

-- name: known
select f.key, f.seq from json_each(?) asked cross join facts f on f.key = asked.value

-- name: name_id
select id from names where name = ?

-- name: name
select name from names where id = ?

-- name: add_name
insert into names (name) values (?) returning id

-- name: add_event
insert into events (seq, session, project, at, kind, tool, agent, v) values (?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_fact
insert into facts (seq, key, data, salt, link) values (?, ?, ?, ?, ?)

-- name: last_link
select link from facts order by seq desc limit 1

-- name: has_chain
select 1 from pragma_table_info('facts') where name = 'link'

-- name: chained
-- In pages, because a log is larger than memory.
select e.seq, e.session, e.project, e.kind, e.tool, e.agent, e.at, e.v, f.key, f.data, f.salt, f.leaf, f.link
from events e join facts f on f.seq = e.seq where e.seq > :after order by e.seq limit :limit

-- name: unfrozen
select e.seq, s.name, p.name, k.name, t.name, a.name, e.at, e.v, f.key, f.data, f.salt
from events e join facts f on f.seq = e.seq
join names s on s.id = e.session join names p on p.id = e.project join names k on k.id = e.kind
join names t on t.id = e.tool join names a on a.id = e.agent
where e.seq in (select value from json_each(:ids)) and f.salt is not null

-- name: tombstones
select count(*) from facts where leaf is not null

-- name: freeze
update facts set leaf = :leaf, salt = null where seq = :key

-- name: add_body
insert into bodies (seq, size, hash, body) values (?, ?, ?, ?)

-- name: load
select doc from states where kind = ? and key = ?

-- name: save_doc
-- Most events change only the text of a document: then no index is touched. `at` may lag by two seconds for that.
update states set doc = ?, version = ? where kind = ? and key = ? and project = ? and status = ? and at between ? and ?
returning 1

-- name: save
insert into states (kind, key, feature, version, project, status, at, doc) values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (kind, key) do update set version = excluded.version, project = excluded.project, status = excluded.status,
  at = excluded.at, doc = excluded.doc

-- name: drop_states
delete from states where feature = ?

-- name: enqueue
-- A job that is already waiting is one job; one that is running must run again afterwards with the newer payload.
insert into jobs (kind, dedupe, run_at, payload) values (?, ?, ?, ?)
on conflict (kind, dedupe) where dedupe <> '' and dead = 0 do update set
  again = iif(jobs.owner <> '', 1, jobs.again),
  run_at = iif(jobs.owner <> '', jobs.run_at, min(jobs.run_at, excluded.run_at)),
  payload = excluded.payload
where jobs.owner <> '' or excluded.run_at < jobs.run_at or excluded.payload <> jobs.payload

-- name: due
select id, kind, dedupe, attempts, payload from jobs
where dead = 0 and run_at <= ? and (owner = '' or lease_until < ?) and kind in (select value from json_each(?))
order by run_at, id limit ?

-- name: take
update jobs set owner = ?, lease_until = ?, attempts = attempts + 1, again = 0 where id = ?

-- name: extend
update jobs set lease_until = ? where id = ? and owner = ? returning id

-- name: run_again
update jobs set owner = '', lease_until = 0, attempts = 0, again = 0, error = '' where id = ? and owner = ? and again = 1
returning id

-- name: finish
delete from jobs where id = ? and owner = ? returning id

-- name: retry
-- A job that was asked for again while it ran does not die of the run that failed.
update jobs set owner = '', lease_until = 0, run_at = ?, error = ?, dead = iif(again = 1, 0, ?) where id = ? and owner = ?
returning id

-- name: release
update jobs set owner = '', lease_until = 0, attempts = max(0, attempts - 1) where owner = ? and dead = 0 returning id

-- name: jobs
select id, kind, dedupe, run_at, attempts, owner, lease_until, dead, error from jobs order by id limit ?

-- name: meta
select value from meta where name = ?

-- name: set_meta
insert into meta (name, value) values (?, ?) on conflict (name) do update set value = excluded.value

-- name: facts_with
select seq, data from facts where instr(lower(cast(data as text)), :probe) > 0 or instr(data, cast(:probe as blob)) > 0

-- name: set_facts
update facts set data = :row where seq = :key

-- name: bodies_with
select seq, body from bodies where instr(lower(cast(body as text)), :probe) > 0 or instr(body, cast(:probe as blob)) > 0

-- name: set_bodies
update bodies set body = :row where seq = :key

-- name: states_with
select kind, key, doc from states where instr(lower(cast(doc as text)), :probe) > 0 or instr(doc, cast(:probe as blob)) > 0

-- name: set_states
update states set doc = :row where kind = :kind and key = :key

-- name: all_jobs
select id, dedupe, error, payload from jobs order by id

-- name: drop_job
delete from jobs where id = :key

-- name: place_names
-- Sessions and projects: kinds and tools are words of ours and of agents.
select id, name from names
where id in (select session from events union select project from events) and name <> ''

-- name: set_name
update names set name = :name where id = :key

-- name: sessions_only_in
-- Sessions of which every event that has a project has one of these.
select distinct session from events where project in (select value from json_each(:ids)) and session not in (
  select session from events where not (project in (select value from json_each(:ids))) and project not in (select id from names where name = ''))
  and session not in (select id from names where name = '')

-- name: events_named
select seq from events where session in (select value from json_each(:ids)) or project in (select value from json_each(:ids))

-- name: blank_facts
update facts set data = cast('{}' as blob) where seq in (select value from json_each(:ids))

-- name: blank_bodies
delete from bodies where seq in (select value from json_each(:ids))

-- name: blank_events
update events set session = :none, project = :none, tool = :none, agent = :none, kind = :kind, v = 1
where seq in (select value from json_each(:ids))

-- name: drop_states_of
delete from states where project in (select value from json_each(:ids))

-- name: drop_names
delete from names where id in (select value from json_each(:ids))
  and not exists (select 1 from events where session = names.id or project = names.id)
  and not exists (select 1 from states where project = names.id)

-- name: expire_bodies
-- Only the oldest are looked at: a log without old bodies must not be read through to find that out.
delete from bodies where seq in (
  select b.seq from (select seq from bodies order by seq limit ?) b join events e on e.seq = b.seq where e.at < ?)
returning seq

-- name: next_due
select run_at from jobs
where dead = 0 and (owner = '' or lease_until < ?) and kind in (select value from json_each(?)) order by run_at limit 1

-- name: state
select doc from states where kind = ? and key = ?

-- name: listed_at
select at from states where kind = ? and key = ?

-- name: rows
select s.kind, s.key, s.feature, s.version, n.name, s.status, s.at, s.doc from states s join names n on n.id = s.project
where s.feature = ? order by s.kind, s.key

-- name: counts
select (select coalesce(max(seq), 0) from events) as events,
  (select count(*) from jobs where dead = 0) as jobs,
  (select count(*) from jobs where dead = 1) as dead_jobs,
  (select coalesce(min(seq), 0) from bodies) as oldest_body

-- name: add_history
insert into history (rowid, words, paths, facets) values (?, ?, ?, ?)

-- name: drop_history
delete from history where rowid = ?

-- name: merge_history
-- Words of entries that were taken out lie in the old segments until all are merged into one.
insert into history (history) values ('optimize')

-- name: has_history
select 1 from sqlite_schema where name = 'history'

-- name: move_history_mark
insert into meta (name, value) values ('history', ?) on conflict (name) do update set value = excluded.value
where value = ? returning 1

-- name: find_history
-- By the time of the events: an import adds old ones late. `before` is the number of the last event of the previous page.
select history.rowid from history cross join events e on e.seq = history.rowid
where history match :words and e.at >= :since and (e.at, e.seq) < (
  coalesce((select at from events where seq = :before), 9223372036854775807), :before)
order by e.at desc, e.seq desc limit :limit

-- name: body_keys
-- How many bodies each key has encrypted; those with an empty key are plain.
select case when substr(body, 1, 5) = :mark then substr(body, 6, 8) else x'' end as key, count(*) from bodies group by key

-- name: bodies_in_form
select seq from bodies where seq > :after and (substr(body, 1, 5) = :mark) = :encrypted order by seq limit :limit

-- name: encrypted_bodies
select seq, body from bodies where seq > :after and substr(body, 1, 5) = :mark order by seq limit :limit

-- name: bodies_of
select seq, body from bodies where seq in (select value from json_each(:ids))
