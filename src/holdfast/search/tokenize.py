"""Tokens of code and prose: identifiers whole, and cut at camelCase, snake_case and digits, in lower case. Pure."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

_IDENTIFIER = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_OTHER_PART = re.compile(r"[^\W\d_]+|\d+")
_QUOTED_NAME = re.compile(r"(?<=[\"'`])[-./:@#]{0,2}\w[\w$]*(?:[-./:]{1,2}[\w$]+)+(?=[\"'`?:=])")
_KEY_OR_FLAG = re.compile(r"(?m)^[ \t]*[-./]{0,2}(\w+(?:[-.]\w+)+)(?= *[:={])|(?<![\w-])--(\w+(?:-\w+)*)")
LONGEST = 40
"""Anything longer is a hash or a blob, not a word."""
LONGEST_WHOLE = 64


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


def whole_tokens(text: str) -> set[str]:
    """Names that are found as they stand: compound identifiers, constants, and quoted or dashed names of settings,
    flags, routes and events. A name of one plain word is a word already."""
    found = {name.lower() for name in set(identifiers(text)) if len(name) <= LONGEST_WHOLE and is_compound(name)}
    for match in _QUOTED_NAME.findall(text):
        found.add(bare_token(match))
    for key, flag in _KEY_OR_FLAG.findall(text):
        found.add(bare_token(key or flag))
    return {token for token in found if 2 < len(token) <= LONGEST_WHOLE}


@lru_cache(maxsize=200_000)
def is_compound(name: str) -> bool:
    return len(parts(name)) > 1 or (len(name) > 2 and name.isupper())


def bare_token(token: str) -> str:
    """`--no-audit` and `no-audit`, `/api/users` and `api/users` are the same name."""
    return token.strip("-./:@#").lower()


def trigrams(name: str) -> set[str]:
    low = name.lower()
    return {low[at : at + 3] for at in range(len(low) - 2)}


STOPWORDS = frozenset(
    (
        "a an and are as at be been but by can could do does for from had has have how i if in into is it its may my of "
        "on or our out should so such than that the their them then there these they this those to was we were what "
        "when where which while who why will with would you your "
    ).split()
)
"""Left out of a full-text question unless nothing else is in it."""
