"""Words of prose, as memory compares them: cut like code, without stopwords, their endings taken off. Pure."""

import re
from functools import lru_cache

from holdfast.search import words

STOPWORDS = words.STOPWORDS | frozenset(
    re.findall(r"\w+", "about any did he her him his me no not she some us whom s t d ll re ve m don am also just")
)
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("edly", ""), ("ed", ""), ("ly", ""), ("es", "e"), ("s", ""))
_NAME = re.compile(r"(?=\w*[._/-]\w|\w*[a-z][A-Z]|[A-Z]{2,}\d)[\w./-]{4,80}")
PATH = re.compile(r"(?<![\w/])[\w.~/-]*[\w-]+\.[A-Za-z]\w{0,7}\b(?!\()")


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not (ending == "s" and word.endswith("ss")):
            word = word[: -len(ending)] + instead
            break
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word


def plain(text: str) -> list[str]:
    """In order, with repeats, endings still on."""
    return [word for word in words.in_order(text) if word not in STOPWORDS]


def terms(text: str) -> list[str]:
    """Stems, and exact names (`src/app.py`, `parseHeader`, `retry_count`) once more as a whole."""
    return [stem(word) for word in plain(text)] + names(text)


def names(text: str) -> list[str]:
    return [f"={found.group().strip('./-')}" for found in _NAME.finditer(text)]


def files_in(text: str) -> list[str]:
    return list(dict.fromkeys(found.group() for found in PATH.finditer(text)))
