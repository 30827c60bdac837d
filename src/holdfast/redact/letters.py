"""Letters that no word has: a random value in one case, without a digit."""

import re

_WORD = re.compile(rb"[A-Za-z0-9]{16,}")
_CONSONANTS = re.compile(rb"[^aeiouy0-9\W_]{4}")
_LEAST_PAIRS = 3
# What hardly ever follows a letter, counted over 36,000 different words of programs and their documents.
_SELDOM_AFTER = {
    "a": "hjoqz",
    "b": "ghkmnqvwxz",
    "c": "gjnqvwxz",
    "d": "hjkqvwxz",
    "e": "jz",
    "f": "ghjknpqvwxyz",
    "g": "dfjkpqvwxyz",
    "h": "bcfghjknpqvwxz",
    "i": "hijquwy",
    "j": "bcdfghijklmnpqrtvwxyz",
    "k": "bcdfghjkmnpqrvwxyz",
    "l": "hjqwxz",
    "m": "fghjkqwxyz",
    "n": "jqwxz",
    "o": "hjqyz",
    "p": "bjknqwxz",
    "q": "abcdefghijklmnopqrstvwxyz",
    "r": "hjqwxz",
    "s": "jxz",
    "t": "jkqx",
    "u": "hjkquvwxyz",
    "v": "bdfghjklmnpqrtuvwxyz",
    "w": "bcdfgjklmpqtuvwxyz",
    "x": "abdfghjklmnoqrsuvwxyz",
    "y": "bdfghjkoquvwxyz",
    "z": "bcdfghjklmnopqrstuvwxyz",
}
_SELDOM = frozenset((letter + after).encode() for letter, more in _SELDOM_AFTER.items() for after in more)


def is_speakable(word: bytes) -> bool:
    """Most words have no pair of letters that hardly ever occurs, and a long one may have one (`nickname`)."""
    return 4 * _count_seldom(word) < len(word) - 1


def _count_seldom(word: bytes) -> int:
    return sum(word[at : at + 2] in _SELDOM for at in range(len(word) - 1))


def is_unspeakable(value: bytes) -> bool:
    """`lgbxylovczroslurwezbbiyn`: one word in one case, of whose pairs of letters a quarter hardly ever occur."""
    if not _WORD.fullmatch(value) or not (value.islower() or value.isupper()):
        return False
    low = value.lower()
    if not _CONSONANTS.search(low) or b"abcdef" in low or b"qwerty" in low:
        return False
    seldom = _count_seldom(low)
    return seldom >= _LEAST_PAIRS and seldom * 4 >= len(low)
