"""Full text over words of code: BM25 with the name of a thing worth more than its body."""

import apsw

from holdfast.search import words

NAME, PATH, BODY = 5.0, 1.0, 1.0
MOST_WORDS = 32

Scored = list[tuple[int, float]]
"""(chunk, score), best first; more is better."""


def expression(text: str) -> str:
    """Any of the words. They are only letters and digits, so nothing in a question is syntax."""
    told = words.distinct([text])
    kept = [w for w in told if w not in words.STOPWORDS] or told
    return " OR ".join(f'"{word}"' for word in kept[:MOST_WORDS])


def best(db: apsw.Connection, text: str, limit: int) -> Scored:
    asked = expression(text)
    if not asked:
        return []
    rows = db.execute(
        f"select rowid, -bm25(words, {NAME}, {PATH}, {BODY}) s from words where words match ? order by s desc limit ?",
        (asked, limit),
    )
    return [(row[0], row[1]) for row in rows]
