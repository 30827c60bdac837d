"""The order of an answer: names and paths that were typed as they are, then the mixture of meaning and full text."""

import re
from collections.abc import Container

import apsw

from holdfast.search import exact, fuse, words

Scored = list[tuple[int, float]]
Ranked = list[tuple[int, float, str]]
"""(chunk, score, why it comes first: `symbol`, `path` or nothing)"""

TEST = 0.85
"""How much a chunk of a test is worth beside one of what is tested."""
_ABOUT_TESTS = frozenset(
    ("test", "tests", "tested", "testing", "spec", "specs", "fixture", "fixtures", "mock", "mocks")
)
_TEST = re.compile(
    r"(?i)(?:^|/)(?:tests?|testing|testdata|__tests__|specs?|e2e|fixtures)/|(?:^|/)(?:test_|conftest\.)|[._-](?:tests?|spec)\.\w+$"
)


def ranked(
    db: apsw.Connection, asked: str, meaning: Scored, text: Scored, allowed: Container[int] | None = None
) -> Ranked:
    mixed = _tests_behind(db, asked, fuse.fused(meaning, text))
    first: dict[int, str] = {}
    for why, found in (("symbol", _symbols(db, asked, mixed)), ("path", exact.paths(db, asked))):
        for chunk in found:
            if allowed is None or chunk in allowed:
                first.setdefault(chunk, why)
    return [(c, 1.0, why) for c, why in first.items()] + [(c, s, "") for c, s in mixed if c not in first]


def _tests_behind(db: apsw.Connection, asked: str, mixed: Scored) -> Scored:
    """A test says the same words as what it tests. Who looks for tests says so."""
    if not mixed or not _ABOUT_TESTS.isdisjoint(words.in_order(asked)):
        return mixed
    marks = ",".join("?" * len(mixed))
    paths = db.execute(
        f"select c.id, f.path from chunks c join files f on f.id = c.file where c.id in ({marks})",
        tuple(chunk for chunk, _ in mixed),
    )
    tests = {chunk for chunk, path in paths if _TEST.search(path)}
    weighed = [(chunk, score * TEST if chunk in tests else score) for chunk, score in mixed]
    return sorted(weighed, key=lambda one: (-one[1], one[0]))


def _symbols(db: apsw.Connection, asked: str, mixed: Scored) -> list[int]:
    """A name alone brings its definitions; in a sentence the rest of it says which of them is meant."""
    found = exact.symbols(db, asked)
    if exact.is_name(asked):
        return found
    scores = dict(mixed)
    return sorted((c for c in found if c in scores), key=lambda c: -scores[c])
