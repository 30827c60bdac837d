-- The index of one checkout. Everything here can be made again from the checkout.

create table meta (name text primary key, value text not null) without rowid;

-- Every file that was looked at. `left_out` says why one has no chunks; mtime is -1 where it was too fresh to be trusted.
create table files (
  id integer primary key,
  path text not null unique,
  size integer not null,
  mtime integer not null,
  ctime integer not null,
  hash blob not null,
  lang text not null,
  left_out text not null default ''
);

-- Every folder in which something new could appear, with its time: where all are as they were, nothing is new.
create table folders (path text primary key, mtime integer not null) without rowid;

-- What the chunks of a file are lines of: redacted, compressed as one, for a file packs better than its pieces.
create table texts (file integer primary key references files (id), text blob not null);

-- Ids are never used twice: readers keep vectors by them.
create table chunks (
  id integer primary key autoincrement,
  file integer not null references files (id),
  kind text not null,
  symbol text not null,
  name text not null collate nocase,
  start integer not null,
  stop integer not null,
  hash blob not null
);
create index chunks_file on chunks (file);
create index chunks_name on chunks (name);

-- Words of the chunks, cut at camelCase and snake_case before they come here. The texts themselves are in `texts`.
create virtual table words using fts5 (
  name, path, body, content='', contentless_delete=1, tokenize='porter ascii', columnsize=1
);

-- While another model takes over there are two sets; `meta.model` names the one that answers.
create table vectors (
  model integer not null,
  chunk integer not null,
  vector blob not null,
  primary key (model, chunk)
) without rowid;
create table models (id integer primary key, name text not null unique);
