"""Words of prose as memory compares them."""

import re
from functools import lru_cache

from holdfast.analysis.search import tokens
from holdfast.core.lazy import lazy_pattern

STOPWORDS = tokens.STOPWORDS | frozenset(
    re.findall(r"\w+", "about any did he her him his me no not she some us whom s t d ll re ve m don am also just")
)
# (ending, replacement); the first match is removed, so longer ones come first.
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("edly", ""), ("ed", ""), ("ly", ""), ("es", "e"), ("s", ""))
_TOKEN = lazy_pattern(r"[\w.~/-]+")
"""One pass over the text; whether a short match is a token is decided afterwards."""
# Joined words (`a.b`, `a/b`, `a_b`), camelCase, or capitals with a digit (`HTTP2`).
_NAME = lazy_pattern(r"\w[._/-]\w|[a-z][A-Z]|^[A-Z]{2,}\d")
_FILE = lazy_pattern(r"[\w-]\.[A-Za-z]\w{0,7}$")
LONGEST_NAME = 120


@lru_cache(maxsize=100_000)
def stem_word(word: str) -> str:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not (ending == "s" and word.endswith("ss")):
            word = word[: -len(ending)] + instead
            break
    # "cache" and "caching" meet at "cach".
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    # "running" → "run"; but "call", "pass" and "buzz" end like that by themselves.
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word


def plain_words(text: str) -> list[str]:
    """In order, with repeats and endings."""
    return [word for word in tokens.in_order(text) if word not in STOPWORDS]


def search_terms(text: str) -> list[str]:
    """Stems, and exact names (`src/app.py`, `parseHeader`, `retry_count`) as a whole."""
    return [stem_word(word) for word in plain_words(text)] + exact_names(text)


_ANY_NAME = lazy_pattern(r"\w[._/-]\w|[a-z][A-Z]|[A-Z]{2}\d")


def exact_names(text: str) -> list[str]:
    # Most prose has none, and one search of the whole costs a tenth of testing each word.
    if not _ANY_NAME.search(text):
        return []
    # The "=" keeps exact names apart from stems in one index.
    return [f"={token}" for token in _name_tokens(text) if len(token) > 3 and _NAME.search(token)]


def files_in(text: str) -> list[str]:
    return list(dict.fromkeys(token for token in _name_tokens(text) if _FILE.search(token)))


def _name_tokens(text: str) -> list[str]:
    # The full stop of a sentence is not part of a file's name.
    tokens = (token.rstrip("./-") for token in _TOKEN.findall(text))
    return [token for token in tokens if len(token) <= LONGEST_NAME]
