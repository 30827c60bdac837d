"""Taking words out of stored JSON, wherever they are quoted: whole, cut off in the middle, or on one line. Pure."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

INSTEAD = "[forgotten]"
FEWEST = 4
"""So many words in a row are taken for a quotation; a shorter text must be there as a whole."""

Change = Callable[[bytes], bytes]


def probe(text: str) -> bytes:
    """A word that every row with the text must have, in a spelling no JSON escapes; empty: look at every row."""
    plain: list[str] = re.findall(r"[A-Za-z0-9]+", " ".join(text.split()[:FEWEST]))
    return max(plain, key=len, default="").encode()


def eraser(text: str) -> Change:
    """Bytes of a JSON value → the same without the text. What is not JSON is searched as it is."""

    def change(row: bytes) -> bytes:
        try:
            value = msgspec.json.decode(row)
        except (msgspec.DecodeError, UnicodeError):
            return without(row.decode("utf-8", "replace"), text).encode()
        changed = _walked(value, text)
        return row if changed == value else msgspec.json.encode(changed)

    return change


def _walked(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return without(value, text)
    if isinstance(value, dict):
        return {without(k, text): _walked(v, text) for k, v in value.items()}
    return [_walked(one, text) for one in value] if isinstance(value, list) else value


def without(quoting: str, text: str) -> str:
    words = text.split()
    if not words:
        return quoting
    begins = re.compile(r"\s+".join(map(re.escape, words[:FEWEST])))
    pieces, at = [], 0
    while found := begins.search(quoting, at):
        pieces += [quoting[at : found.start()], INSTEAD]
        at = _end(quoting, found.end(), words[FEWEST:])
    return "".join([*pieces, quoting[at:]])


def _end(quoting: str, at: int, words: list[str]) -> int:
    """How far the quotation goes: word by word, and a piece of the word it was cut off in."""
    for word in words:
        gap = re.compile(r"\s*").match(quoting, at)
        start = gap.end() if gap else at
        same = next((n for n, c in enumerate(word) if quoting[start + n : start + n + 1] != c), len(word))
        if same == 0:
            break
        at = start + same
        if same < len(word):
            break
    return at
