-- The words of every event, for `holdfast history`. The text itself is in `facts`.
create table history (
  seq    bigint primary key,
  words  tsvector not null,
  paths  tsvector not null,
  failed boolean not null
);
create index history_words on history using gin (words);
create index history_paths on history using gin (paths);
