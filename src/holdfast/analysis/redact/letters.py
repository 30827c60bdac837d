"""Recognises random letters by pairs that no word has."""

from holdfast.analysis.redact.rule_data import PATTERNS, RULES

_LEAST_PAIRS = 3
_RARE = frozenset((letter + after).encode() for letter, more in RULES.rare_pairs.items() for after in more)


def is_speakable(word: bytes) -> bool:
    """Most words have no rare letter pair, and a long one may have one (`nickname`)."""
    return 4 * _count_rare(word) < len(word) - 1


def _count_rare(word: bytes) -> int:
    return sum(word[at : at + 2] in _RARE for at in range(len(word) - 1))


def is_unspeakable(value: bytes) -> bool:
    """`lgbxylovczroslurwezbbiyn`: one word in one case, a quarter of whose letter pairs are rare."""
    if not PATTERNS.one_word.fullmatch(value) or not (value.islower() or value.isupper()):
        return False
    low = value.lower()
    if not PATTERNS.consonants.search(low) or b"abcdef" in low or b"qwerty" in low:
        return False
    rare = _count_rare(low)
    return rare >= _LEAST_PAIRS and rare * 4 >= len(low)
