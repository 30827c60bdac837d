"""A question about the history → the expression of each engine's full text. Words are letters and digits only."""

from collections.abc import Callable

from holdfast.core.history import split_words
from holdfast.core.ports import HistoryEntry, HistoryQuery

IdOf = Callable[[str], int | None]

FACETS = (("session", "s"), ("project", "p"), ("agent", "a"), ("tool", "t"))
FAILED = "failed"


def facet_words(entry: HistoryEntry, id_of: Callable[[str], int]) -> str:
    """For SQLite: what an entry can be filtered by, as words."""
    named = [(letter, getattr(entry, field)) for field, letter in (*FACETS, ("kind", "k"))]
    words = [f"{letter}{id_of(name)}" for letter, name in named if name]
    return " ".join([*words, FAILED] if entry.failed else words)


def match_expression(query: HistoryQuery, id_of: IdOf) -> str | None:
    """For FTS5. None when a name was never seen, or nothing is asked for."""
    facets: list[str] = [FAILED] if query.failed else []
    for field, letter in FACETS:
        if name := getattr(query, field):
            if (found := id_of(name)) is None:
                return None
            facets.append(f"{letter}{found}")
    parts = [f"{{facets}} : ({' AND '.join(facets)})"] if facets else []
    if query.kinds:
        known = [f"k{found}" for kind in query.kinds if (found := id_of(kind)) is not None]
        if not known:
            return None
        parts.append(f"{{facets}} : ({' OR '.join(known)})")
    if file := _quoted(query.file):
        parts.append(f"{{paths}} : ({file})")
    if wanted := [quoted for phrase in query.phrases if (quoted := _quoted(phrase))]:
        wanted[-1] += " *" if query.prefix else ""
        parts.append(f"{{words}} : ({(' OR ' if query.any_phrase else ' AND ').join(wanted)})")
    return " AND ".join(parts) or None


def _quoted(phrase: str) -> str:
    words = split_words(phrase)
    return f'"{" ".join(words)}"' if words else ""


def tsquery(query: HistoryQuery) -> str:
    """For PostgreSQL's `to_tsquery`; empty when no words are asked for."""
    wanted = [phrase for one in query.phrases if (phrase := _sequence(one))]
    if wanted and query.prefix:
        wanted[-1] = f"{wanted[-1][:-1]}:*)"
    return (" | " if query.any_phrase else " & ").join(wanted)


def tsquery_of_file(query: HistoryQuery) -> str:
    return _sequence(query.file)


def _sequence(phrase: str) -> str:
    words = [f"'{word}'" for word in split_words(phrase)]
    return f"({' <-> '.join(words)})" if words else ""
