-- Seed 004's tables as views over the documents and the log, so that its debugging queries run on our database.
-- The text is cast because the system's own sqlite3 may be older than ours and refuses to read JSON from a blob.
create view sessions as
select s.key as id,
  s.doc ->> '$.agent' as agent,
  s.doc ->> '$.project' as project_root,
  s.doc ->> '$.status' as status,
  s.doc ->> '$.state' as state,
  nullif(s.doc ->> '$.reason', '') as reason,
  datetime((s.doc ->> '$.started_at') / 1000, 'unixepoch') as started_at,
  datetime(nullif(s.doc ->> '$.ended_at', 0) / 1000, 'unixepoch') as ended_at,
  (s.doc ->> '$.started_at') / 1000 as created_at_epoch,
  datetime(s.at / 1000, 'unixepoch') as last_activity,
  s.doc ->> '$.prompts' as prompt_count,
  s.doc ->> '$.tools' as tool_count,
  (s.doc ->> '$.summarised') > 0 as processed,
  (select cast(m.doc as text) ->> '$.text' from states m where m.kind = 'summary' and m.key = s.key) as summary,
  nullif(s.doc ->> '$.title', '') as title,
  nullif(s.doc ->> '$.parent', '') as parent_session_id,
  nullif(s.doc ->> '$.parent_reason', '') as parent_session_reason,
  s.doc ->> '$.transcript' as transcript_path
from (select key, at, cast(doc as text) as doc from states where kind = 'session') s;

create trigger sessions_are_a_view instead of update on sessions begin
  select raise(abort, 'sessions is a view of the log: close one with `holdfast sessions close ID`');
end;

-- A prompt batch is a turn; its id is the number of the event that opened it.
create view prompt_batches as
select t.first as id, t.session_id, t.n as prompt_number,
  (select cast(f.data as text) ->> '$.prompt' from facts f where f.seq = t.first) as user_prompt,
  case t.origin when 'person' then 'user' when 'agent' then 'agent_notification' else 'system' end as source_type,
  case when t.ended = 0 then 'active' else 'completed' end as status,
  datetime(t.at / 1000, 'unixepoch') as started_at,
  datetime(nullif(t.ended, 0) / 1000, 'unixepoch') as ended_at,
  t.tools as activity_count, t.processed, nullif(t.answer, '') as response_summary
from (
  select d ->> '$.session' as session_id, d ->> '$.n' as n, d ->> '$.first' as first, d ->> '$.origin' as origin,
    d ->> '$.at' as at, d ->> '$.end' as ended, d ->> '$.tools' as tools, d ->> '$.answer' as answer, 1 as processed
  from (select cast(doc as text) as d from states where kind = 'turn')
  where d ->> '$.first' is not null
  union all
  select key, d ->> '$.turn.n', d ->> '$.turn.first', d ->> '$.turn.origin', d ->> '$.turn.at', d ->> '$.turn.end',
    d ->> '$.turn.tools', d ->> '$.turn.answer', 0
  from (select key, cast(doc as text) as d from states where kind = 'session') s
  where d ->> '$.turn.n' is not null and not exists (
    select 1 from states t where t.kind = 'turn' and t.key = s.key || '/' || (d ->> '$.turn.n')
      and cast(t.doc as text) ->> '$.first' is not null)
) t;

create view activities as
select e.seq as id, s.name as session_id,
  coalesce(
    (select case when cast(d.doc as text) ->> '$.turn.first' <= e.seq then cast(d.doc as text) ->> '$.turn.first' end
      from states d where d.kind = 'session' and d.key = s.name),
    (select max(cast(t.doc as text) ->> '$.first') from states t
      where t.kind = 'turn' and t.key >= s.name || '/' and t.key < s.name || '0'
        and cast(t.doc as text) ->> '$.session' = s.name and cast(t.doc as text) ->> '$.first' <= e.seq)
  ) as prompt_batch_id,
  tool.name as tool_name,
  cast(f.data as text) ->> '$.input' as tool_input,
  cast(f.data as text) ->> '$.output' as tool_output_summary,
  cast(f.data as text) ->> '$.paths[0]' as file_path,
  cast(f.data as text) ->> '$.ok' is not 0 as success,
  cast(f.data as text) ->> '$.error' as error_message,
  cast(f.data as text) ->> '$.ms' as duration_ms,
  datetime(e.at / 1000, 'unixepoch') as timestamp,
  e.at / 1000 as timestamp_epoch
from events e
join facts f on f.seq = e.seq
join names s on s.id = e.session
join names tool on tool.id = e.tool
where e.kind in (select id from names where name in ('tool.finished', 'tool.failed')) and s.name <> '';
