-- The words of every event, for `holdfast history`. The text itself is in `facts`; `facets` has what lists are filtered
-- by as words (s12: the session whose name is number 12), so that a filter is one more posting list and not a scan.
-- It is filled beside the hooks, from the mark `history` in `meta` on: also for events that were there before it.
create virtual table history using fts5(
  words, paths, facets, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0');
