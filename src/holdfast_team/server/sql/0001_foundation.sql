-- The tenant is the first column of every key. Row-level security shows the role :role only the rows of the tenant that
-- its transaction named; a transaction that named none sees nothing. Tables belong to whoever migrates.

create table tenants (
  tenant text primary key,
  name text not null default '',
  feed_head bigint not null default 0,
  created_at bigint not null
);

create table people (
  tenant text not null references tenants,
  person text not null,
  role text not null check (role in ('viewer', 'member', 'lead', 'admin')),
  added_at bigint not null,
  primary key (tenant, person)
);

create table machines (
  tenant text not null references tenants,
  machine text not null,
  person text not null,
  label text not null default '',
  token_hash bytea not null unique,
  stream bigint not null default 1,
  cursor bigint not null default 0,
  level text not null default '',
  skew_ms bigint not null default 0,
  joined_at bigint not null,
  seen_at bigint not null default 0,
  revoked_at bigint not null default 0,
  primary key (tenant, machine),
  foreign key (tenant, person) references people
);

create table codes (
  tenant text not null references tenants,
  code_hash bytea not null unique,
  person text not null,
  role text not null,
  until bigint not null,
  used_at bigint not null default 0,
  primary key (tenant, code_hash)
);

create table projects (
  tenant text not null references tenants,
  project text not null,
  remote text not null,
  root text not null,
  first_at bigint not null,
  primary key (tenant, project)
);

-- By the server's time, in months. Exactly-once is the machine's locked cursor, not a unique key across partitions.
create table events (
  tenant text not null,
  received_at bigint not null,
  machine text not null,
  stream bigint not null,
  seq bigint not null,
  key text not null,
  at bigint not null,
  kind text not null,
  session text not null,
  project text not null,
  agent text not null,
  tool text not null,
  level text not null,
  data jsonb not null,
  primary key (tenant, machine, stream, seq, received_at)
) partition by range (received_at);
create table events_other partition of events default;
create index events_by_session on events (tenant, session, seq);
create index events_by_time on events (tenant, received_at);

create table sessions (
  tenant text not null,
  machine text not null,
  session text not null,
  person text not null,
  project text not null default '',
  agent text not null default '',
  branch text not null default '',
  state text not null default '',
  title text not null default '',
  first_at bigint not null,
  at bigint not null,
  seen_at bigint not null,
  primary key (tenant, machine, session)
);
create index sessions_seen on sessions (tenant, seen_at);

create table edited_files (
  tenant text not null,
  project text not null,
  path text not null,
  machine text not null,
  session text not null,
  at bigint not null,
  primary key (tenant, project, path, machine, session)
);
create index edited_files_at on edited_files (tenant, at);

create table spending (
  tenant text not null,
  week date not null,
  person text not null,
  project text not null,
  model text not null,
  kind text not null,
  tokens bigint not null,
  primary key (tenant, week, person, project, model, kind)
);

create table leases (
  tenant text not null,
  project text not null,
  name text not null,
  lease jsonb not null,
  primary key (tenant, project, name)
);

create table feed (
  tenant text not null,
  id bigint not null,
  kind text not null,
  at bigint not null,
  by_person text not null,
  project text not null default '',
  for_person text not null default '',
  for_machine text not null default '',
  payload jsonb not null,
  primary key (tenant, id)
);

create table rules (
  tenant text not null,
  name text not null,
  requirement jsonb not null,
  by_person text not null,
  at bigint not null,
  primary key (tenant, name)
);

create table memories (
  tenant text not null,
  id text not null,
  project text not null,
  type text not null,
  text text not null,
  by_person text not null,
  at bigint not null,
  promoted_by text not null default '',
  promoted_at bigint not null default 0,
  primary key (tenant, id)
);

create table audit (
  tenant text not null,
  id bigint generated always as identity,
  at bigint not null,
  by_person text not null,
  act text not null,
  about jsonb not null,
  primary key (tenant, id)
);

create table receipts (
  tenant text not null,
  id text not null,
  machine text not null,
  at bigint not null,
  asked jsonb not null,
  events bigint not null,
  rows bigint not null,
  primary key (tenant, id)
);

create table browser_sessions (
  tenant text not null,
  hash bytea not null unique,
  machine text not null,
  kind text not null check (kind in ('link', 'cookie')),
  until bigint not null,
  primary key (tenant, hash)
);

create function migration_version() returns table (version integer) language sql stable security definer
set search_path = :schema, pg_temp as $$ select max(version) from migrations $$;

-- These four are asked before a tenant is known. They run with the owner's rights, by a secret's hash only.

create function find_token(given bytea)
returns table (tenant text, machine text, person text, role text) language sql stable security definer
set search_path = :schema, pg_temp as $$
  select m.tenant, m.machine, m.person, p.role
  from machines m join people p on p.tenant = m.tenant and p.person = m.person
  where m.token_hash = given and m.revoked_at = 0
$$;

create function use_code(given bytea, new_machine text, new_label text, new_hash bytea, new_cursor bigint, now_ms bigint)
returns table (tenant text, person text, role text, stream bigint, cursor bigint) language plpgsql security definer
set search_path = :schema, pg_temp as $$
#variable_conflict use_column
declare used codes%rowtype;
begin
  update codes c set used_at = now_ms where c.code_hash = given and c.used_at = 0 and c.until > now_ms returning c.* into used;
  if not found then return; end if;
  insert into people as p (tenant, person, role, added_at) values (used.tenant, used.person, used.role, now_ms)
  on conflict (tenant, person) do update set role = excluded.role;
  insert into machines as m (tenant, machine, person, label, token_hash, cursor, joined_at, seen_at)
  values (used.tenant, new_machine, used.person, new_label, new_hash, new_cursor, now_ms, now_ms)
  on conflict (tenant, machine) do update
  set person = excluded.person, label = excluded.label, token_hash = excluded.token_hash, revoked_at = 0, joined_at = now_ms;
  insert into audit (tenant, at, by_person, act, about)
  values (used.tenant, now_ms, used.person, 'machine.enrolled', jsonb_build_object('machine', new_machine, 'label', new_label));
  return query select m.tenant, m.person, used.role, m.stream, m.cursor from machines m
  where m.tenant = used.tenant and m.machine = new_machine;
end $$;

create function find_cookie(given bytea, now_ms bigint)
returns table (tenant text, machine text, person text, role text) language sql stable security definer
set search_path = :schema, pg_temp as $$
  select m.tenant, m.machine, m.person, p.role
  from browser_sessions b join machines m on m.tenant = b.tenant and m.machine = b.machine
  join people p on p.tenant = m.tenant and p.person = m.person
  where b.hash = given and b.kind = 'cookie' and b.until > now_ms and m.revoked_at = 0
$$;

create function use_link(given bytea, cookie bytea, cookie_until bigint, now_ms bigint)
returns boolean language plpgsql security definer
set search_path = :schema, pg_temp as $$
#variable_conflict use_column
declare used browser_sessions%rowtype;
begin
  delete from browser_sessions b where b.hash = given and b.kind = 'link' and b.until > now_ms returning b.* into used;
  if not found then return false; end if;
  insert into browser_sessions (tenant, hash, machine, kind, until)
  values (used.tenant, cookie, used.machine, 'cookie', cookie_until);
  return true;
end $$;
