-- Daemons that were overtaken again and again, in their order: the others hold back for the first of them, but not for
-- long. It is no lock: one that does not come in time has lost its turn.
create table turns (
  owner text collate "C" primary key,
  since timestamptz not null,
  until timestamptz not null
);

-- Everything one transaction writes, as one call: all of it has arrived when the lock is taken, and the lock is gone
-- when the call ends. Nobody waits for the way to a daemon that is far off.
create function write_batch(
  _lock_class integer, _lock_key integer, _head bigint, _schema integer, _writer text, _turn_ms integer,
  _names text[], _seqs bigint[], _sessions text[], _projects text[], _ats bigint[], _kinds text[], _tools text[],
  _agents text[], _versions integer[], _keys text[], _facts bytea[],
  _body_seqs bigint[], _body_sizes bigint[], _body_hashes text[], _bodies bytea[],
  _dropped text[], _doc_kinds text[], _doc_keys text[], _doc_features text[], _doc_versions integer[],
  _doc_projects text[], _doc_statuses text[], _doc_ats bigint[], _docs bytea[],
  _meta_names text[], _meta_values text[],
  _job_kinds text[], _job_dedupes text[], _job_run_ats bigint[], _job_payloads bytea[],
  _finished bigint[], _retried bigint[], _retry_ats bigint[], _retry_errors text[], _retry_dead integer[], _owner text
) returns integer language plpgsql as $$
-- How it went: 0 written; -1 nothing, for another daemon wrote since the head was read; else nothing, and it is the
-- turn of another for so many milliseconds.
declare
  moment timestamptz;
  mine timestamptz;
  first timestamptz;
  job bigint;
begin
  perform pg_advisory_xact_lock(_lock_class, _lock_key);
  if _head is not null then
    moment := clock_timestamp();
    select since into mine from turns where owner = _writer and until > moment;
    select until into first from turns
      where owner <> _writer and until > moment and since < coalesce(mine, 'infinity') order by since limit 1;
    if first is not null then
      -- Who waits in the queue stays in it.
      update turns set until = moment + _turn_ms * interval '1 ms' where owner = _writer;
      return 1 + extract(epoch from first - moment) * 1000;
    end if;
    if _head <> (select coalesce(max(seq), 0) from events)
       or _schema <> (select value::integer from meta where name = 'schema') then
      if _turn_ms > 0 then
        insert into turns values (_writer, moment, moment + _turn_ms * interval '1 ms')
          on conflict (owner) do update set since = coalesce(mine, excluded.since), until = excluded.until;
      end if;
      return -1;
    end if;
    delete from turns where owner = _writer or until < moment - interval '1 minute';
  end if;
  -- Names get their numbers here, under the lock: what is not written leaves none behind. Not by a conflict, which would
  -- use up a number for every name that is there.
  insert into names (name) select name from unnest(_names) as new (name)
    where not exists (select from names where names.name = new.name);
  insert into events (seq, session, project, at, kind, tool, agent, v)
    with ids as (select name, id from names where name = any(_names))
    select new.seq, s.id, p.id, new.at, k.id, t.id, a.id, new.v
    from unnest(_seqs, _sessions, _projects, _ats, _kinds, _tools, _agents, _versions)
      as new (seq, session, project, at, kind, tool, agent, v)
    join ids s on s.name = new.session join ids p on p.name = new.project join ids k on k.name = new.kind
    join ids t on t.name = new.tool join ids a on a.name = new.agent;
  insert into facts (seq, key, data) select * from unnest(_seqs, _keys, _facts);
  insert into bodies (seq, size, hash, body) select * from unnest(_body_seqs, _body_sizes, _body_hashes, _bodies);
  delete from states where feature = any(_dropped);
  insert into states (kind, key, feature, version, project, status, at, doc)
    select new.kind, new.key, new.feature, new.version, names.id, new.status, new.at, new.doc
    from unnest(_doc_kinds, _doc_keys, _doc_features, _doc_versions, _doc_projects, _doc_statuses, _doc_ats, _docs)
      as new (kind, key, feature, version, project, status, at, doc)
    join names on names.name = new.project
    on conflict (kind, key) do update set feature = excluded.feature, version = excluded.version,
      project = excluded.project, status = excluded.status, at = excluded.at, doc = excluded.doc;
  insert into meta (name, value) select * from unnest(_meta_names, _meta_values)
    on conflict (name) do update set value = excluded.value;
  -- One after the other: a statement may touch a row only once. As in the query `enqueue`.
  for n in 1 .. coalesce(cardinality(_job_kinds), 0) loop
    insert into jobs (kind, dedupe, run_at, payload)
      values (_job_kinds[n], _job_dedupes[n], _job_run_ats[n], _job_payloads[n])
      on conflict (kind, dedupe) where dedupe <> '' and dead = 0 do update set
        again = case when jobs.owner <> '' then 1 else jobs.again end,
        run_at = case when jobs.owner <> '' then jobs.run_at else least(jobs.run_at, excluded.run_at) end,
        payload = excluded.payload
      where jobs.owner <> '' or excluded.run_at < jobs.run_at or excluded.payload <> jobs.payload;
  end loop;
  foreach job in array coalesce(_finished, '{}') loop
    update jobs set owner = '', lease_until = 0, attempts = 0, again = 0, error = ''
      where id = job and owner = _owner and again = 1;
    if not found then
      delete from jobs where id = job and owner = _owner;
      if not found then
        raise exception 'another worker has the job' using errcode = 'HF001';
      end if;
    end if;
  end loop;
  for n in 1 .. coalesce(cardinality(_retried), 0) loop
    update jobs set owner = '', lease_until = 0, run_at = _retry_ats[n], error = _retry_errors[n],
      dead = case when again = 1 then 0 else _retry_dead[n] end
      where id = _retried[n] and owner = _owner;
  end loop;
  return 0;
end $$;

-- The same for the full-text index: false, and nothing, where its mark stands elsewhere.
create function index_history(
  _lock_class integer, _lock_key integer, _before text, _after text,
  _seqs bigint[], _words text[], _paths text[], _failed boolean[]
) returns boolean language plpgsql as $$
begin
  perform pg_advisory_xact_lock(_lock_class, _lock_key);
  insert into meta (name, value) values ('history', _after)
    on conflict (name) do update set value = excluded.value where meta.value = _before;
  if not found then
    return false;
  end if;
  insert into history (seq, words, paths, failed)
    select seq, to_tsvector('simple', words), to_tsvector('simple', paths), failed
    from unnest(_seqs, _words, _paths, _failed) as new (seq, words, paths, failed)
    on conflict (seq) do update set words = excluded.words, paths = excluded.paths, failed = excluded.failed;
  return true;
end $$;
