-- Only adds: servers of version 1 go on working on these tables.

-- A token that was asked for and not used yet. The old one is valid until then: an answer may be lost on its way.
alter table machines add column next_hash bytea;
alter table machines add column rotated_at bigint not null default 0;
create unique index machines_next_hash on machines (next_hash) where next_hash is not null;

-- What a machine may still send at once, as of `allowance_at`; kept here so that all server processes share it.
alter table machines add column allowance double precision not null default 0;
alter table machines add column allowance_at bigint not null default 0;

alter table people add column blocked_at bigint not null default 0;
alter table people add column subject text not null default '';
alter table browser_sessions add column person text not null default '';
alter table browser_sessions alter column machine set default '';
alter table tenants add column events_per_day bigint not null default 0;

create table daily_use (
  tenant text not null,
  day date not null,
  machine text not null,
  events bigint not null,
  primary key (tenant, day, machine)
);

-- An empty person, project or model counts for all of them. Exactly one of the limits is above 0.
create table budgets (
  tenant text not null,
  name text not null,
  person text not null default '',
  project text not null default '',
  model text not null default '',
  tokens bigint not null default 0,
  micro_usd bigint not null default 0,
  by_person text not null,
  at bigint not null,
  told_week date not null default '1970-01-01',
  told_percent integer not null default 0,
  primary key (tenant, name)
);

create table sign_on (
  tenant text primary key references tenants,
  issuer text not null,
  client_id text not null,
  claim text not null default 'email',
  domain text not null default '',
  role text not null default 'member' check (role in ('viewer', 'member', 'lead', 'admin'))
);

create table sign_on_attempts (
  tenant text not null,
  state_hash bytea not null,
  nonce text not null,
  verifier text not null,
  purpose text not null check (purpose in ('board', 'join')),
  until bigint not null,
  primary key (tenant, state_hash)
);

create or replace function find_token(given bytea)
returns table (tenant text, machine text, person text, role text) language plpgsql volatile security definer
set search_path = :schema, pg_temp as $$
#variable_conflict use_column
begin
  return query select m.tenant, m.machine, m.person, p.role
  from machines m join people p on p.tenant = m.tenant and p.person = m.person
  where m.token_hash = given and m.revoked_at = 0 and p.blocked_at = 0;
  if found then return; end if;
  -- The first use of a new token ends the old one.
  update machines m set token_hash = m.next_hash, next_hash = null where m.next_hash = given and m.revoked_at = 0;
  if not found then return; end if;
  return query select m.tenant, m.machine, m.person, p.role
  from machines m join people p on p.tenant = m.tenant and p.person = m.person
  where m.token_hash = given and m.revoked_at = 0 and p.blocked_at = 0;
end $$;

create or replace function use_code(
  given bytea, new_machine text, new_label text, new_hash bytea, new_cursor bigint, now_ms bigint
)
returns table (tenant text, person text, role text, stream bigint, cursor bigint) language plpgsql security definer
set search_path = :schema, pg_temp as $$
#variable_conflict use_column
declare used codes%rowtype;
begin
  update codes c set used_at = now_ms where c.code_hash = given and c.used_at = 0 and c.until > now_ms returning c.* into used;
  if not found then return; end if;
  insert into people as p (tenant, person, role, added_at) values (used.tenant, used.person, used.role, now_ms)
  on conflict (tenant, person) do update set role = excluded.role, blocked_at = 0;
  insert into machines as m (tenant, machine, person, label, token_hash, cursor, joined_at, seen_at, rotated_at)
  values (used.tenant, new_machine, used.person, new_label, new_hash, new_cursor, now_ms, now_ms, now_ms)
  on conflict (tenant, machine) do update
  set person = excluded.person, label = excluded.label, token_hash = excluded.token_hash, next_hash = null, revoked_at = 0,
      joined_at = now_ms, rotated_at = now_ms;
  insert into audit (tenant, at, by_person, act, about)
  values (used.tenant, now_ms, used.person, 'machine.enrolled', jsonb_build_object('machine', new_machine, 'label', new_label));
  return query select m.tenant, m.person, used.role, m.stream, m.cursor from machines m
  where m.tenant = used.tenant and m.machine = new_machine;
end $$;

create or replace function find_cookie(given bytea, now_ms bigint)
returns table (tenant text, machine text, person text, role text) language sql stable security definer
set search_path = :schema, pg_temp as $$
  select b.tenant, b.machine, p.person, p.role
  from browser_sessions b left join machines m on m.tenant = b.tenant and m.machine = b.machine
  join people p on p.tenant = b.tenant and p.person = coalesce(m.person, b.person)
  where b.hash = given and b.kind = 'cookie' and b.until > now_ms and p.blocked_at = 0
    and (b.machine = '' or m.revoked_at = 0)
$$;
