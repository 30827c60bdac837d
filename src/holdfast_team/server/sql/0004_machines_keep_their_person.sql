-- Ids of machines are known to the whole team. Whoever had a code could join under the id of somebody else's machine:
-- its token was replaced, and its events went on under another name. Only a machine that left or was revoked changes hands.

create or replace function use_code(
  given bytea, new_machine text, new_label text, new_hash bytea, new_cursor bigint, now_ms bigint
)
returns table (tenant text, person text, role text, stream bigint, cursor bigint) language plpgsql security definer
set search_path = :schema, pg_temp as $$
#variable_conflict use_column
declare used codes%rowtype;
begin
  update codes c set used_at = now_ms where c.code_hash = given and c.used_at = 0 and c.until > now_ms
    and not exists (
      select 1 from machines m
      where m.tenant = c.tenant and m.machine = new_machine and m.person <> c.person and m.revoked_at = 0
    )
  returning c.* into used;
  if not found then return; end if;
  insert into people as p (tenant, person, role, added_at) values (used.tenant, used.person, used.role, now_ms)
  on conflict (tenant, person) do update set role = excluded.role, blocked_at = 0;
  insert into machines as m (tenant, machine, person, label, token_hash, cursor, joined_at, seen_at, rotated_at)
  values (used.tenant, new_machine, used.person, new_label, new_hash, new_cursor, now_ms, now_ms, now_ms)
  on conflict (tenant, machine) do update
  set person = excluded.person, label = excluded.label, token_hash = excluded.token_hash, next_hash = null, revoked_at = 0,
      joined_at = now_ms, rotated_at = now_ms,
      -- What happened between leaving and joining again is not the team's: sharing begins where the log stands now.
      cursor = greatest(m.cursor, excluded.cursor);
  insert into audit (tenant, at, by_person, act, about)
  values (used.tenant, now_ms, used.person, 'machine.enrolled', jsonb_build_object('machine', new_machine, 'label', new_label));
  return query select m.tenant, m.person, used.role, m.stream, m.cursor from machines m
  where m.tenant = used.tenant and m.machine = new_machine;
end $$;
