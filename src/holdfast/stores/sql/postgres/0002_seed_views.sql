-- Seed 004's tables as views over the documents and the log, as on SQLite.
create view sessions as
select s.key as id,
  s.doc ->> 'agent' as agent,
  s.doc ->> 'project' as project_root,
  s.doc ->> 'status' as status,
  s.doc ->> 'state' as state,
  nullif(s.doc ->> 'reason', '') as reason,
  to_timestamp((s.doc ->> 'started_at')::bigint / 1000) as started_at,
  to_timestamp(nullif((s.doc ->> 'ended_at')::bigint, 0) / 1000) as ended_at,
  (s.doc ->> 'started_at')::bigint / 1000 as created_at_epoch,
  to_timestamp(s.at / 1000) as last_activity,
  (s.doc ->> 'prompts')::bigint as prompt_count,
  (s.doc ->> 'tools')::bigint as tool_count,
  (s.doc ->> 'summarised')::bigint > 0 as processed,
  (select convert_from(m.doc, 'UTF8')::json ->> 'text' from states m where m.kind = 'summary' and m.key = s.key) as summary,
  nullif(s.doc ->> 'title', '') as title,
  nullif(s.doc ->> 'parent', '') as parent_session_id,
  nullif(s.doc ->> 'parent_reason', '') as parent_session_reason,
  s.doc ->> 'transcript' as transcript_path
from (select key, at, convert_from(doc, 'UTF8')::json as doc from states where kind = 'session') s;

create view prompt_batches as
select t.first as id, t.session_id, t.n as prompt_number,
  (select convert_from(f.data, 'UTF8')::json ->> 'prompt' from facts f where f.seq = t.first) as user_prompt,
  case t.origin when 'person' then 'user' when 'agent' then 'agent_notification' else 'system' end as source_type,
  case when t.ended = 0 then 'active' else 'completed' end as status,
  to_timestamp(t.at / 1000) as started_at,
  to_timestamp(nullif(t.ended, 0) / 1000) as ended_at,
  t.tools as activity_count, t.processed, nullif(t.answer, '') as response_summary
from (
  select d ->> 'session' as session_id, (d ->> 'n')::bigint as n, (d ->> 'first')::bigint as first, d ->> 'origin' as origin,
    (d ->> 'at')::bigint as at, (d ->> 'end')::bigint as ended, (d ->> 'tools')::bigint as tools, d ->> 'answer' as answer,
    1 as processed
  from (select convert_from(doc, 'UTF8')::json as d from states where kind = 'turn') turns
  where d ->> 'first' is not null
  union all
  select key, (d ->> 'n')::bigint, (d ->> 'first')::bigint, d ->> 'origin', (d ->> 'at')::bigint, (d ->> 'end')::bigint,
    (d ->> 'tools')::bigint, d ->> 'answer', 0
  from (select key, convert_from(doc, 'UTF8')::json -> 'turn' as d from states where kind = 'session') s
  where d ->> 'n' is not null and not exists (
    select 1 from states t where t.kind = 'turn' and t.key = s.key || '/' || (d ->> 'n')
      and convert_from(t.doc, 'UTF8')::json ->> 'first' is not null)
) t;

create view activities as
select e.seq as id, s.name as session_id,
  coalesce(
    (select case when (convert_from(d.doc, 'UTF8')::json -> 'turn' ->> 'first')::bigint <= e.seq
        then (convert_from(d.doc, 'UTF8')::json -> 'turn' ->> 'first')::bigint end
      from states d where d.kind = 'session' and d.key = s.name),
    (select max((convert_from(t.doc, 'UTF8')::json ->> 'first')::bigint) from states t
      where t.kind = 'turn' and t.key >= s.name || '/' and t.key < s.name || '0'
        and convert_from(t.doc, 'UTF8')::json ->> 'session' = s.name
        and (convert_from(t.doc, 'UTF8')::json ->> 'first')::bigint <= e.seq)
  ) as prompt_batch_id,
  tool.name as tool_name,
  convert_from(f.data, 'UTF8')::json ->> 'input' as tool_input,
  convert_from(f.data, 'UTF8')::json ->> 'output' as tool_output_summary,
  convert_from(f.data, 'UTF8')::json -> 'paths' ->> 0 as file_path,
  coalesce(convert_from(f.data, 'UTF8')::json ->> 'ok', 'true') = 'true' as success,
  convert_from(f.data, 'UTF8')::json ->> 'error' as error_message,
  (convert_from(f.data, 'UTF8')::json ->> 'ms')::numeric as duration_ms,
  to_timestamp(e.at / 1000) as timestamp,
  e.at / 1000 as timestamp_epoch
from events e
join facts f on f.seq = e.seq
join names s on s.id = e.session
join names tool on tool.id = e.tool
where e.kind in (select id from names where name in ('tool.finished', 'tool.failed')) and s.name <> '';
