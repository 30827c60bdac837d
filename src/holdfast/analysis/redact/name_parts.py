"""The stem as a part of its name: `pass` in `db_pass` and `dbPass`, but not in `compass`."""

from functools import lru_cache

from holdfast.analysis.redact.rule_data import PATTERNS, WORDS, NameRule
from holdfast.analysis.redact.spans import KEY_END


def word_before_stem(before: bytes) -> bytes:
    """The word right before the stem: `api` in `MY_API_KEY` and `myApiKey`."""
    return _last_word(before[-24:])


@lru_cache(4096)
def _last_word(before: bytes) -> bytes:
    match = PATTERNS.word_before_stem.search(before)
    word = match[1].lower() if match else b""
    is_known = word in WORDS.secret_qualifier or word in WORDS.plain_qualifier
    return word if is_known or not before.endswith(b" ") else b""


def is_part(rule: NameRule, before: bytes, stem: bytes, after: bytes) -> bool:
    if rule.part in ("", "tail"):
        return True
    last = before[-1:]
    if _is_glued(last, stem):
        return _may_be_glued(rule, before, stem, after)
    if rule.part == "key":
        # `token` is a secret unless the word before it says otherwise; `key` is one only with such a word.
        return stem[:1] in b"tT" or _may_be_secret_key(before, last, stem)
    return not after.isalpha() or (stem[-1:].islower() and after.isupper())


def _is_glued(last: bytes, stem: bytes) -> bool:
    """Whether it continues the letter before it without a change of case."""
    if stem[:1].islower() or not stem[:1].isalpha():
        return last.isalpha() and last.isascii()
    # `SMBPass`: an abbreviation in capitals, then a word of its own.
    return last.isupper() and not stem[1:2].islower()


def _may_be_glued(rule: NameRule, before: bytes, stem: bytes, after: bytes) -> bool:
    # `apikey` is written without a separator; other letters before `key` form another word (`monkey`).
    if rule.part == "key":
        return word_before_stem(before).endswith(GLUED_TOKEN if stem[:1] in b"tT" else _GLUED_KEY)
    if before[-6:].lower().endswith(_WITH_PASS):
        return False
    return stem.lower() in (b"pass", b"pwd") and after in (b"=", b":", b'"', b"'", b" ", KEY_END)


def _may_be_secret_key(before: bytes, last: bytes, stem: bytes) -> bool:
    """A cheap test of what precedes `key`: most keys are those of a table."""
    if last == b" ":
        return stem == b"Key" or before[-16:].lower().endswith(_SPOKEN_QUALIFIERS)
    if last in (b"_", b"-", b"."):
        return word_before_stem(before) not in WORDS.plain_qualifier
    return last in (b"?", b"&") or last.isalnum()


_SPOKEN_QUALIFIERS = tuple(word + b" " for word in WORDS.secret_qualifier)
_WITH_PASS, _GLUED_KEY = tuple(WORDS.with_pass), tuple(WORDS.glued_key)
GLUED_TOKEN = (*_GLUED_KEY, *WORDS.glued_token)
"""What may precede `token` without a separator."""
