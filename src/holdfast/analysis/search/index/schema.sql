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
  start integer not null,
  stop integer not null,
  hash blob not null
);
create index chunks_file on chunks (file);

-- What is defined in a chunk. Lines are counted from the chunk's first, so that a chunk that moves keeps its rows.
create table definitions (
  id integer primary key,
  chunk integer not null references chunks (id),
  name text not null collate nocase,
  symbol text not null,
  kind text not null,
  first integer not null,
  last integer not null
);
create index definitions_chunk on definitions (chunk);
create index definitions_name on definitions (name);

-- Words of the chunks, cut at camelCase and snake_case before they come here. The texts themselves are in `texts`.
create virtual table words using fts5 (
  name, path, body, content='', contentless_delete=1, tokenize='porter ascii', columnsize=1
);

create virtual table vocabulary using fts5vocab (words, row);

-- Whole names as they stand in the chunk: constants, settings, flags, routes. Row ids are chunks.
create virtual table tokens using fts5 (
  token, content='', contentless_delete=1, tokenize="ascii tokenchars '_$-./:@#'", detail=none
);

-- Names of definitions by their trigrams, for those that are half remembered or misspelt. Row ids are definitions.
create virtual table names using fts5 (
  name, content='', contentless_delete=1, tokenize='trigram', detail=none
);

-- While another model takes over there are two sets; `meta.model` names the one that answers.
create table vectors (
  model integer not null,
  chunk integer not null,
  vector blob not null,
  primary key (model, chunk)
) without rowid;
-- Vectors of chunks that went away, by content: a renamed file and a branch that comes back need not be embedded again.
create table spare_vectors (
  id integer primary key,
  model integer not null,
  content blob not null,
  vector blob not null
);
create index spare_vectors_content on spare_vectors (model, content);
create table models (id integer primary key, name text not null unique);
