-- Only adds: servers of version 4 go on working on these tables.

-- A state folder that is restored as a whole, or copied, uses the numbers of its log again. By the key of the event at the
-- cursor the server sees that it is another log; by the process that sends, that there are two of them.
-- `key_at`: the cursor that the key is of. A server of version 4 moves the cursor and leaves the key as it is.
alter table machines add column cursor_key text not null default '';
alter table machines add column key_at bigint not null default 0;
alter table machines add column top bigint not null default 0;
alter table machines add column run text not null default '';
alter table machines add column past_runs text[] not null default '{}';
alter table machines add column restores jsonb not null default '[]';

-- What commands said can be forgotten: a lease with its name, and all memories of a machine. The token of a name that is
-- taken again stays above those that were given.
alter table tenants add column lease_floor bigint not null default 0;
alter table memories add column machine text not null default '';
