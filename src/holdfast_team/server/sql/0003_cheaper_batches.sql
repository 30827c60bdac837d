-- No question of the server needs these: the board has tables of its own, forgetting looks along the primary key of one
-- machine, and retention goes by partition. They were half of the cost of taking events in.
drop index events_by_session;
drop index events_by_time;

-- The tenant of a transaction is asked for once in a statement, not once for every row.
do $$
declare one record;
begin
  for one in select policyname, tablename from pg_policies where schemaname = current_schema() and policyname = 'one_tenant' loop
    execute format(
      'alter policy one_tenant on %I using (tenant = (select current_setting(''holdfast.tenant'', true)))'
      ' with check (tenant = (select current_setting(''holdfast.tenant'', true)))', one.tablename);
  end loop;
end $$;
