"""Finds a value before its name: `please use … as the api key`."""

from holdfast.analysis.redact import judge
from holdfast.analysis.redact.rule_data import PATTERNS, WORDS
from holdfast.analysis.redact.spans import Span


def find_value_before(text: bytes, start: int, before: bytes) -> Span | None:
    match = PATTERNS.used_as.search(before)
    if not match:
        return None
    end = start - len(before) + match.start()
    # The value has no space in it, so the last one precedes it.
    space = text.rfind(b" ", max(0, end - 304), end)
    used = PATTERNS.used_value.match(text, space, end) if space >= 0 else None
    if not used or not _is_used_password(used["secret"]):
        return None
    has_verb = text[max(0, space - 6) : space].lower().endswith(tuple(WORDS.using))
    return (*used.span("secret"), "password") if has_verb or judge.is_wild_password(used["secret"]) else None


def _is_used_password(value: bytes) -> bool:
    """`use OAuth2Client as the token source` names a class."""
    if judge.is_algorithm(value):
        return False
    return judge.is_mixed_password(value) and (not judge.is_camel_case(value) or value[-2:].isdigit())
