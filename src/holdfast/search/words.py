"""Words of code and prose: identifiers cut at camelCase, snake_case and digits, in lower case. Pure."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

_IDENTIFIER = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_OTHER_PART = re.compile(r"[^\W\d_]+|\d+")
LONGEST = 40
"""Anything longer is a hash or a blob, not a word."""


@lru_cache(maxsize=200_000)
def parts(identifier: str) -> tuple[str, ...]:
    """`parseHTTPHeader2` → parse, http, header, 2."""
    pattern = _PART if identifier.isascii() else _OTHER_PART
    return tuple(part.lower() for part in pattern.findall(identifier) if len(part) <= LONGEST)


def identifiers(text: str) -> list[str]:
    return _IDENTIFIER.findall(text)


def counted(text: str) -> Counter[str]:
    """How often each word is there. Identifiers are counted first: code repeats them, so few need cutting."""
    found: Counter[str] = Counter()
    for identifier, times in Counter(identifiers(text)).items():
        for part in parts(identifier):
            found[part] += times
    return found


def in_order(text: str) -> list[str]:
    return [part for identifier in identifiers(text) for part in parts(identifier)]


def distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(part for text in texts for part in in_order(text)))


STOPWORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "could",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "may",
        "my",
        "of",
        "on",
        "or",
        "our",
        "out",
        "should",
        "so",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
"""Left out of a full-text question unless nothing else is in it."""
