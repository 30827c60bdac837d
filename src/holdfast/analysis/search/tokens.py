"""Tokens of code and prose: identifiers whole and in parts, in lowercase."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from holdfast.core.lazy import lazy_pattern

_IDENTIFIER = lazy_pattern(r"\w+")
# Capitals not followed by a lowercase letter (HTTP), a word with or without a capital, digits.
_PART = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# For names with non-ASCII letters, where case says less.
_OTHER_PART = lazy_pattern(r"[^\W\d_]+|\d+")
# A name with separators in quotation marks: "web.timeout", '/api/users'.
_QUOTED_NAME = lazy_pattern(r"(?<=[\"'`])[-./:@#]{0,2}\w[\w$]*(?:[-./:]{1,2}[\w$]+)+(?=[\"'`?:=])")
# A dotted or dashed key at the start of a line (`max-age: 1`), or a flag (`--no-audit`).
_KEY_OR_FLAG = lazy_pattern(r"(?m)^[ \t]*[-./]{0,2}(\w+(?:[-.]\w+)+)(?= *[:={])|(?<![\w-])--(\w+(?:-\w+)*)")
LONGEST = 40
"""Anything longer is a hash or a blob, not a word."""
LONGEST_WHOLE = 64


@lru_cache(maxsize=200_000)
def identifier_parts(identifier: str) -> tuple[str, ...]:
    """`parseHTTPHeader2` → parse, http, header, 2."""
    pattern = _PART if identifier.isascii() else _OTHER_PART
    return tuple(part.lower() for part in pattern.findall(identifier) if len(part) <= LONGEST)


def find_identifiers(text: str) -> list[str]:
    return _IDENTIFIER.findall(text)


def count_words(text: str) -> Counter[str]:
    """How often each word occurs. Identifiers are counted first: code repeats them, so few need splitting."""
    counts: Counter[str] = Counter()
    for identifier, times in Counter(find_identifiers(text)).items():
        for part in identifier_parts(identifier):
            counts[part] += times
    return counts


def in_order(text: str) -> list[str]:
    return [part for identifier in find_identifiers(text) for part in identifier_parts(identifier)]


def distinct_words(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(part for text in texts for part in in_order(text)))


def whole_tokens(text: str) -> set[str]:
    """Names that are found as a whole: compound identifiers, constants, and quoted or dashed names of settings, flags,
    routes and events. A one-word name is a word already."""
    tokens = {name.lower() for name in set(find_identifiers(text)) if len(name) <= LONGEST_WHOLE and is_compound(name)}
    for match in _QUOTED_NAME.findall(text):
        tokens.add(bare_token(match))
    for key, flag in _KEY_OR_FLAG.findall(text):
        tokens.add(bare_token(key or flag))
    return {token for token in tokens if 2 < len(token) <= LONGEST_WHOLE}


@lru_cache(maxsize=200_000)
def is_compound(name: str) -> bool:
    return len(identifier_parts(name)) > 1 or (len(name) > 2 and name.isupper())


def bare_token(token: str) -> str:
    """`--no-audit` and `no-audit`, `/api/users` and `api/users` are the same name."""
    return token.strip("-./:@#").lower()


def name_trigrams(name: str) -> set[str]:
    low = name.lower()
    return {low[at : at + 3] for at in range(len(low) - 2)}


STOPWORDS = frozenset(
    (
        "a an and are as at be been but by can could do does for from had has have how i if in into is it its may my of "
        "on or our out should so such than that the their them then there these they this those to was we were what "
        "when where which while who why will with would you your "
    ).split()
)
"""Omitted from a full-text query unless nothing else is in it."""
