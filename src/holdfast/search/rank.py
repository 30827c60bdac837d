"""The order of an answer: names and paths that were typed as they are, then the mixture of meaning and full text."""

from collections.abc import Container

import apsw

from holdfast.search import exact, fuse

Scored = list[tuple[int, float]]
Ranked = list[tuple[int, float, str]]
"""(chunk, score, why it comes first: `symbol`, `path` or nothing)"""


def ranked(
    db: apsw.Connection, asked: str, meaning: Scored, text: Scored, allowed: Container[int] | None = None
) -> Ranked:
    mixed = fuse.fused(meaning, text)
    first: dict[int, str] = {}
    for why, found in (("symbol", _symbols(db, asked, mixed)), ("path", exact.paths(db, asked))):
        for chunk in found:
            if allowed is None or chunk in allowed:
                first.setdefault(chunk, why)
    return [(c, 1.0, why) for c, why in first.items()] + [(c, s, "") for c, s in mixed if c not in first]


def _symbols(db: apsw.Connection, asked: str, mixed: Scored) -> list[int]:
    """A name alone brings its definitions; in a sentence the rest of it says which of them is meant."""
    found = exact.symbols(db, asked)
    if exact.is_name(asked):
        return found
    scores = dict(mixed)
    return sorted((c for c in found if c in scores), key=lambda c: -scores[c])
