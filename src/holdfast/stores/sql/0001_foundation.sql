-- Every string that repeats (session, project, kind, tool, agent) is stored once and named by a small integer.
create table names (
  id   integer primary key,
  name text not null unique
) strict;

-- Narrow, so that ten million of them still list in under a millisecond. Order is by seq, never by clock.
create table events (
  seq     integer primary key,
  session integer not null,
  project integer not null,
  at      integer not null,
  kind    integer not null,
  tool    integer not null,
  agent   integer not null,
  v       integer not null
) strict;
create index events_by_session on events (session);
create index events_by_project on events (project);

-- The small normalised fields reducers read: kept for ever. The key makes a delivery happen once, however often it comes.
create table facts (
  seq  integer primary key,
  key  text not null,
  data blob not null
) strict;
create unique index deliveries on facts (key);

-- The agent's own payload, redacted and capped: expires.
create table bodies (
  seq  integer primary key,
  size integer not null,
  hash text not null,
  body blob not null
) strict;

-- One bounded document per thing, with the facets lists are served from.
create table states (
  kind    text not null,
  key     text not null,
  feature text not null,
  version integer not null,
  project integer not null,
  status  text not null,
  at      integer not null,
  doc     blob not null,
  unique (kind, key)
) strict;
create index states_by_time on states (kind, at, key);
create index states_by_project on states (kind, project, at, key);
create index states_by_status on states (kind, status, at, key);
create index states_by_feature on states (feature);

create table jobs (
  id          integer primary key,
  kind        text not null,
  dedupe      text not null,
  run_at      integer not null,
  attempts    integer not null default 0,
  owner       text not null default '',
  lease_until integer not null default 0,
  again       integer not null default 0,
  dead        integer not null default 0,
  error       text not null default '',
  payload     blob not null
) strict;
create unique index jobs_once on jobs (kind, dedupe) where dedupe <> '' and dead = 0;
create index jobs_due on jobs (dead, run_at);
