"""Finds a value after a name, in the notations of shells, settings, programs, tables and sentences."""

from holdfast.analysis.redact import judge, notation
from holdfast.analysis.redact.acceptance import PEEK, Candidate, accept_value, is_secret_key
from holdfast.analysis.redact.letters import is_unspeakable
from holdfast.analysis.redact.name_parts import is_part
from holdfast.analysis.redact.notation import Value
from holdfast.analysis.redact.rule_data import PATTERNS, WORDS, NameRule
from holdfast.analysis.redact.spans import REDACTED, Span
from holdfast.analysis.redact.value_before_name import find_value_before

_REFUSED, _UNMATCHED, _PER_VALUE = 2, 7, 11
"""Costs in units of work.py: no value after the name, no notation matches, the value is no secret."""
_WINDOW = 240
_LEAST_AFTER_OTHER = {"password": 10, "token": 20}
"""The shortest values after a name with an unknown suffix, by judge."""
_NO_VALUE = frozenset(bytes([code]) for sign in WORDS.no_value_sign for code in sign)
_BEFORE_QUOTED = frozenset(bytes([code]) for sign in WORDS.before_quoted for code in sign)
_GOES_ON = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-0123456789")


def find_value(text: bytes, rule: NameRule, start: int, end: int) -> Span | int | None:
    """The secret of the name whose stem is at `start:end`, or how little work it took to find none."""
    before = text[start - 48 if start > 48 else 0 : start]
    if before[-1:] == b"m" and PATTERNS.colour_end.search(before):
        before += b" "
    if not is_part(rule, before, text[start:end], text[end : end + 1]) or PATTERNS.in_type.search(before):
        return _REFUSED
    found = _find_value_after(text, rule, start, end, before)
    if isinstance(found, int) and rule.spoken and b" as " in before:
        return find_value_before(text, start, before)
    return found


def _find_value_after(text: bytes, rule: NameRule, start: int, end: int, before: bytes) -> Span | int | None:
    # The cheap search first: the patterns below are costly, and most names are in prose or code.
    if rule.judge in ("token", "strong") and not _has_random_nearby(text[end : end + _WINDOW]):
        return _REFUSED
    other = PATTERNS.other_tail.match(text, end) if text[end : end + 1] in (b"_", b"-") else None
    if other and not _skip_tail(text, end):
        return _find_after_other(text, rule, start, other.end())
    return _try_notations(text, rule, start, end, before) if _may_have_value(text, end) else _REFUSED


def _try_notations(text: bytes, rule: NameRule, start: int, end: int, before: bytes) -> Span | int:
    refused, cost = -1, _UNMATCHED
    after_name = notation.after_name(text, end)
    for pattern in (after_name, PATTERNS.said) if rule.spoken else (after_name,):
        match = pattern.match(text, end)
        # A sentence requires more than an assignment.
        if not match or match.start("value") == refused:
            continue
        value, cost = notation.read_value(text, start, match), cost + _PER_VALUE
        refused = match.start("value") if value and value.notation == "assign" else -1
        span = _accepted_span(text, rule, value, before, text[start:end]) if value else None
        if span:
            return span
    return cost


def _accepted_span(text: bytes, rule: NameRule, value: Value, before: bytes, stem: bytes) -> Span | None:
    value = _whole_value(text, rule, value, stem)
    if rule.judge == "password" and (groups := _find_groups(text, value.start)):
        return value.start, groups, rule.kind
    candidate = Candidate(text, rule, value, text[value.start : min(value.end, value.start + PEEK)], before, stem)
    if not accept_value(candidate) and not _is_split(candidate):
        return None
    further = PATTERNS.more_codes if rule.judge == "code" else PATTERNS.more_items
    more = further.match(text, value.end) if rule.judge == "code" or value.notation == "list" else None
    return value.start, more.end() if more else value.end, rule.kind


def _whole_value(text: bytes, rule: NameRule, value: Value, stem: bytes) -> Value:
    """The value up to where the rule's judge would end it."""
    if rule.judge == "phrase" and not value.quoted:
        value = _whole_phrase(text, value)
    if value.notation in ("said", "assign") and stem[-1] >= 0x80:
        own = PATTERNS.before_script.match(text, value.start, value.end)
        value = value.replaced(value.start, own.end()) if own else value
    # Groups of digits and letters separated by spaces are one code.
    groups = PATTERNS.code_groups.match(text, value.start) if rule.judge == "code" else None
    return value.replaced(value.start, max(value.end, groups.end())) if groups else value


def _whole_phrase(text: bytes, value: Value) -> Value:
    """An unquoted passphrase of several words extends to the end of its line."""
    line = PATTERNS.words_of_line.match(text, value.start)
    if line and value.notation in ("assign", "said") and 3 <= len(line[0].split()) <= 12 and judge.is_phrase(line[0]):
        return Value(value.start, line.end(), True, value.notation, value.sign)
    return value


def _find_groups(text: bytes, start: int) -> int:
    """Where four groups of four random letters end, the form of app passwords of mail services; 0 if there are none."""
    groups = PATTERNS.letter_groups.match(text, start)
    return groups.end() if groups and is_unspeakable(groups[0].translate(None, b" -")) else 0


def _is_split(candidate: Candidate) -> bool:
    """The first piece of a token says little if the rest is on the next line or in the next string."""
    rule, value, text = candidate.rule, candidate.value, candidate.text
    piece = text[value.start : value.end]
    if rule.judge != "token" or value.notation != "assign" or not _may_be_piece(piece):
        return False
    more = PATTERNS.joined.match(text, value.end) or PATTERNS.wrapped.match(text, value.end)
    if not more or not judge.looks_random(more["rest"]):
        return False
    whole = piece + more["rest"]
    return (
        REDACTED not in whole
        and judge.looks_random(whole)
        and (rule.part != "key" or is_secret_key(whole, candidate.before, candidate.stem))
    )


def _may_be_piece(piece: bytes) -> bool:
    return len(piece) >= 8 and b" " not in piece and not judge.is_reference(piece) and not judge.is_code(piece)


def _find_after_other(text: bytes, rule: NameRule, start: int, end: int) -> Span | None:
    """The value of `password_shop`: only if clearly random, because the suffix may be anything."""
    match = PATTERNS.after_whole_name.match(text, end)
    value = notation.read_value(text, start, match) if match else None
    if not value or value.notation != "assign" or rule.judge not in _LEAST_AFTER_OTHER:
        return None
    content = text[value.start : min(value.end, value.start + PEEK)]
    if b" " in content or REDACTED in content or text[value.end : value.end + 1] in (b"(", b"["):
        return None
    is_secret = len(content) >= _LEAST_AFTER_OTHER[rule.judge] and judge.looks_random(content)
    return (value.start, value.end, rule.kind) if is_secret else None


def _has_random_nearby(near: bytes) -> bool:
    """A cheap test for what every token has nearby."""
    return judge.count_digits(near) > 0 or PATTERNS.wild_case.search(near) is not None


def _skip_tail(text: bytes, end: int) -> int:
    """The end of known words that continue the name; 0 if there are none."""
    tail = PATTERNS.tail_only.match(text, end)
    return tail.end() if tail and tail.end() > end else 0


def _may_have_value(text: bytes, end: int) -> bool:
    """A cheap test of what follows the stem: mostly no value can."""
    after = text[end] if end < len(text) else 10
    if after in b"\r\n" or (after == 0x5C and text[end + 1 : end + 2] in (b"n", b"r", b"t")):
        return bool(PATTERNS.value_below.match(text, end))
    if after in _GOES_ON:
        tail = _skip_tail(text, end)
        return tail > 0 and _may_follow(text, tail)
    return _may_follow(text, end)


def _may_follow(text: bytes, end: int) -> bool:
    after = text[end : end + 1]
    if after in _NO_VALUE or (after == b"(" and text[end + 1 : end + 2] not in _BEFORE_QUOTED):
        return False
    return after not in (b" ", b"\t") or bool(PATTERNS.after_space.match(text, end))
