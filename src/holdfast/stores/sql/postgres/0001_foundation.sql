-- The same tables as on SQLite. Text that is compared or paged by is collated "C", so that both engines sort alike.
create table meta (
  name  text collate "C" primary key,
  value text not null
);

-- Every string that repeats (session, project, kind, tool, agent) is stored once and named by a small integer.
create table names (
  id   integer generated always as identity primary key,
  name text collate "C" not null unique
);

-- Narrow, so that ten million of them still list in under a millisecond. Order is by seq, never by clock.
-- No sequence makes seq: it is head + 1 under the writers' lock, so that nobody ever sees N before all below it.
create table events (
  seq     bigint primary key,
  session integer not null,
  project integer not null,
  at      bigint not null,
  kind    integer not null,
  tool    integer not null,
  agent   integer not null,
  v       integer not null
);
create index events_by_session on events (session, seq);
create index events_by_project on events (project, seq);

-- The small normalised fields reducers read: kept for ever. The key makes a delivery happen once, however often it comes.
-- Bytes, not jsonb: jsonb refuses \u0000 and forgets the order of keys, and both engines must give equal documents.
create table facts (
  seq  bigint primary key,
  key  text collate "C" not null,
  data bytea not null
);
create unique index deliveries on facts (key);

-- The agent's own payload, redacted and capped: expires.
create table bodies (
  seq  bigint primary key,
  size bigint not null,
  hash text not null,
  body bytea not null
);

-- One bounded document per thing, with the facets lists are served from.
create table states (
  kind    text collate "C" not null,
  key     text collate "C" not null,
  feature text collate "C" not null,
  version integer not null,
  project integer not null,
  status  text collate "C" not null,
  at      bigint not null,
  doc     bytea not null,
  primary key (kind, key)
) with (fillfactor = 80);
create index states_by_time on states (kind, at, key);
create index states_by_project on states (kind, project, at, key);
create index states_by_status on states (kind, status, at, key);
create index states_by_feature on states (feature, kind, key);

create table jobs (
  id          bigint generated always as identity primary key,
  kind        text collate "C" not null,
  dedupe      text collate "C" not null,
  run_at      bigint not null,
  attempts    integer not null default 0,
  owner       text collate "C" not null default '',
  lease_until bigint not null default 0,
  again       integer not null default 0,
  dead        integer not null default 0,
  error       text not null default '',
  payload     bytea not null
) with (fillfactor = 80);
create unique index jobs_once on jobs (kind, dedupe) where dedupe <> '' and dead = 0;
create index jobs_due on jobs (dead, run_at);
