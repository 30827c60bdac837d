"""A value that stands after a name, in the notations of shells, settings files, programs, tables and sentences."""

import re

from holdfast.redact import judge, notation, prefixed
from holdfast.redact.acceptance import KEY_END, PEEK, Value, accept_value, is_secret_key, word_before_stem
from holdfast.redact.anchors import Guards
from holdfast.redact.judge import NameRule, Span
from holdfast.redact.letters import is_unspeakable
from holdfast.redact.rules.names import PLAIN_QUALIFIERS, SECRET_QUALIFIERS
from holdfast.redact.used import find_used

_LONGEST = 4096


_REFUSED, _UNMATCHED, _PER_VALUE = 2, 7, 11
"""What it costs, in units of work.py, to see that no value follows a name, that none is put to it in any notation, and that one
that is put to it is no secret."""


def find_value(text: bytes, rule: NameRule, start: int, end: int) -> Span | int | None:
    """The secret after the name whose stem stands at `start:end`, if there is one; or how little it took to see that there is
    none."""
    before = text[start - 48 if start > 48 else 0 : start]
    if before[-1:] == b"m" and _COLOUR.search(before):
        before += b" "
    if not _is_part(rule, before, text[start:end], text[end : end + 1]) or _IN_TYPE.search(before):
        return _REFUSED
    # The cheap search comes first: the patterns below are costly, and most names stand in prose or code.
    if rule.judge in ("token", "strong") and not _has_random_nearby(text[end : end + _WINDOW]):
        return find_used(text, start, before) if rule.spoken and b" as " in before else _REFUSED
    other = notation.OTHER_TAIL.match(text, end) if text[end : end + 1] in (b"_", b"-") else None
    if other and not _has_known_tail(text, end):
        return _find_after_other(text, rule, start, other.end())
    if not _may_have_value(text, end):
        return find_used(text, start, before) if rule.spoken and b" as " in before else _REFUSED
    refused, cost = -1, _UNMATCHED
    after_name = notation.after_name(text, end)
    for pattern in (after_name, notation.SAID) if rule.spoken else (after_name,):
        match = pattern.match(text, end)
        if not match or match.start("value") == refused:  # a sentence asks for more than an assignment does
            continue
        value, cost = _read_value(text, start, match), cost + _PER_VALUE
        refused = match.start("value") if value and value.notation == "assign" else -1
        if value and rule.judge == "phrase" and not value.quoted:
            value = _whole_phrase(text, value)
        if value and value.notation in ("said", "assign") and text[end - 1] >= 0x80:
            value = _without_script(text, value)
        if value and rule.judge == "code":
            value = _whole_code(text, value)
        stem = text[start:end]
        if value and rule.judge == "password" and (groups := _find_groups(text, value.start)):
            return value.start, groups, rule.kind
        if value and (accept_value(text, rule, value, before, stem)
                      or _is_split(text, rule, value, before, stem)):  # fmt: skip
            further = notation.MORE_CODES if rule.judge == "code" else notation.MORE_ITEMS
            more = further.match(text, value.end) if rule.judge == "code" or value.notation == "list" else None
            return (
                value.start,
                more.end() if more else value.end,
                rule.kind.partition("-")[0] if rule.kind.startswith("password-") else rule.kind,
            )
    return find_used(text, start, before) if rule.spoken and b" as " in before else cost


def _without_script(text: bytes, value: Value) -> Value:
    own = notation.BEFORE_SCRIPT.match(text, value.start, value.end)
    return Value(value.start, own.end(), value.quoted, value.notation, value.sign) if own else value


def _whole_code(text: bytes, value: Value) -> Value:
    """Groups of digits and letters with spaces between them are one code."""
    groups = notation.CODE_GROUPS.match(text, value.start)
    end = max(value.end, groups.end()) if groups else value.end
    return Value(value.start, end, value.quoted, value.notation, value.sign)


def _find_groups(text: bytes, start: int) -> int:
    """Where four groups of four random letters end, as mail services give out for one program; 0 if none do."""
    groups = notation.LETTER_GROUPS.match(text, start)
    return groups.end() if groups and is_unspeakable(groups[0].translate(None, b" -")) else 0


def _is_split(text: bytes, rule: NameRule, value: Value, before: bytes, stem: bytes) -> bool:
    """The first piece of a token says little where the rest is on the next line or in the next string."""
    if rule.judge != "token" or value.notation != "assign" or value.end - value.start < 8:
        return False
    more = notation.JOINED.match(text, value.end) or notation.WRAPPED.match(text, value.end)
    if not more or not judge.looks_random(more["rest"]):
        return False
    candidate = text[value.start : value.end]
    whole = candidate + more["rest"]
    if b" " in candidate or b"[redacted:" in whole or judge.is_reference(candidate) or judge.is_code(candidate):
        return False
    return judge.looks_random(whole) and (rule.part != "key" or is_secret_key(whole, before, stem))


def _has_known_tail(text: bytes, end: int) -> bool:
    tail = notation.TAIL_ONLY.match(text, end)
    return tail is not None and tail.end() > end


def _find_after_other(text: bytes, rule: NameRule, start: int, end: int) -> Span | None:
    """The value of `password_shop`: only what is clearly random, because the further word may say anything."""
    match = notation.AFTER_WHOLE_NAME.match(text, end)
    value = _read_value(text, start, match) if match else None
    if not value or value.notation != "assign" or rule.judge not in ("password", "token"):
        return None
    candidate = text[value.start : min(value.end, value.start + PEEK)]
    if b"[redacted:" in candidate or b" " in candidate or text[value.end : value.end + 1] in (b"(", b"["):
        return None
    least = 10 if rule.judge == "password" else 20
    return (value.start, value.end, rule.kind) if len(candidate) >= least and judge.looks_random(candidate) else None


# `"AWS::IAM::AccessKey"`: the name of a type.
_IN_TYPE = re.compile(rb"[\"'][\w.]{1,30}::[\w:]{0,40}$")
_COLOUR = re.compile(rb"\[[0-9;]{0,12}m$")
_WILD_CASE = re.compile(rb"(?<=[a-z])[A-Z][A-Za-z]{0,4}[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]{16}")
_WINDOW = 240


def _has_random_nearby(near: bytes) -> bool:
    """What every token has somewhere; where it is missing nothing further is looked at."""
    return len(near.translate(None, b"0123456789")) < len(near) or _WILD_CASE.search(near) is not None


_SPOKEN_QUALIFIERS = tuple(f"{word} ".encode() for word in SECRET_QUALIFIERS)


def _may_be_secret_key(before: bytes, last: bytes, stem: bytes) -> bool:
    """A cheap look at what stands before `key`: most keys are those of a table."""
    if last == b" ":
        return stem == b"Key" or before[-16:].lower().endswith(_SPOKEN_QUALIFIERS)
    if last in (b"_", b"-", b"."):
        return word_before_stem(before) not in PLAIN_QUALIFIERS
    return last in (b"?", b"&") or last.isalnum()


_NO_VALUE_BYTES = frozenset(bytes([code]) for code in b");.[}+*/!&%^~@#;?$")
_BEFORE_QUOTED = frozenset((b'"', b"'", b"`", b"\\", b" ", b"\t", b"\n"))
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-0123456789")


def _may_have_value(text: bytes, end: int) -> bool:
    """A cheap look at what follows the stem: in most places no value can."""
    after = text[end] if end < len(text) else 10
    if after in b"\r\n" or (after == 0x5C and text[end + 1 : end + 2] in (b"n", b"r", b"t")):
        return bool(notation.VALUE_BELOW.match(text, end))
    if after in _LETTERS:
        tail = notation.TAIL_ONLY.match(text, end)
        return tail is not None and tail.end() > end and _may_follow(text, tail.end())
    return _may_follow(text, end)


def _may_follow(text: bytes, end: int) -> bool:
    after = text[end : end + 1]
    if after in _NO_VALUE_BYTES or (after == b"(" and text[end + 1 : end + 2] not in _BEFORE_QUOTED):
        return False
    return after not in (b" ", b"\t") or bool(notation.AFTER_SPACE.match(text, end))


def _whole_phrase(text: bytes, value: Value) -> Value:
    """A passphrase without quotes goes on to the end of its line, if it is one of several words."""
    line = notation.WORDS_OF_LINE.match(text, value.start)
    if line and value.notation in ("assign", "said") and 3 <= len(line[0].split()) <= 12 and judge.is_phrase(line[0]):
        return Value(value.start, line.end(), True, value.notation, value.sign)
    return value


def _read_value(text: bytes, name: int, match: re.Match[bytes]) -> Value | None:
    quote, start = match["open"], match.start("value")
    form = notation.notation_of(match)
    sign = match[0][: start - match.start()].strip(b" \t\"'`\\")[-1:]
    after_key = text[start - 1 : start] == KEY_END
    if quote and text[start - len(quote) - 1 : start - len(quote)] == KEY_END:
        start, quote, after_key = start - len(quote), b"", True
    ends = _value_end(form, quote, after_key)
    limit = min(len(text), start + _LONGEST)
    stop = _end_of_bare(text, name, start, limit) if ends is notation.UNQUOTED else _end_of(ends, text, start, limit)
    if stop <= start or (after_key and text[stop : stop + 1] == KEY_END):  # the value is an object, and this its key
        return None
    quoted, below = bool(quote) or after_key or ends is notation.TO_TAG, b"\n" in match[0]
    return Value(start, stop, quoted, form, KEY_END if after_key else sign, below)


def _value_end(form: str, quote: bytes | None, after_key: bool) -> re.Pattern[bytes]:
    if after_key:
        return notation.TO_STRING_END
    if quote:
        return notation.IN_ESCAPED if b"\\" in quote else notation.IN_QUOTES[quote[:1]]
    return notation.TO_TAG if form in ("xml", "plist", "cell") else notation.UNQUOTED


def _end_of(value: re.Pattern[bytes], text: bytes, start: int, limit: int) -> int:
    match = value.match(text, start, limit)
    return match.end() if match else start


def _end_of_bare(text: bytes, name: int, start: int, limit: int) -> int:
    """A bare value ends at `,` `;` `&` and the like, except on a line of its own, where all of it is the value."""
    in_login = _in_login(text, name)
    if not in_login and _begins_line(text, name) and not _in_query(text, name):
        stop = _end_of(notation.UNQUOTED, text, start, limit)
        further = notation.FURTHER_SETTING.search(text, start, stop)
        if further:
            return further.start()
        if notation.LINE_END.match(text, stop):
            return start + len(text[start:stop].rstrip(b",;"))
    stop = _end_of(notation.UNQUOTED_PART, text, start, limit)
    # `https://x-access-token:…@host`: the login of an address ends before its host.
    login = text.find(b"@", start, stop) if in_login else -1
    return login if login >= 0 else start + len(text[start:stop].rstrip(b".:!?"))


def _begins_line(text: bytes, name: int) -> bool:
    """Whether only what may stand before a name stands before it on its line."""
    first = max(0, name - 80)
    starts = [at + len(mark) for mark in notation.LINE_STARTS if (at := text.rfind(mark, first, name)) >= 0]
    start = max(starts, default=-1 if first else 0)
    return start >= 0 and bool(notation.BEFORE_NAME.fullmatch(text, start, name))


def _in_login(text: bytes, name: int) -> bool:
    scheme = text.rfind(b"://", max(0, name - 60), name)
    return scheme >= 0 and not notation.NO_LOGIN.search(text, scheme + 3, name)


def _in_query(text: bytes, name: int) -> bool:
    before = text[max(0, name - 60) : name]
    return b"?" in before or b"&" in before


def _is_part(rule: NameRule, before: bytes, stem: bytes, after: bytes) -> bool:
    """Whether the stem is a part of the name, as `pass` is in `db_pass` and `dbPass`, and not in `compass`."""
    if rule.part in ("", "tail"):
        return True
    last = before[-1:]
    if _is_glued(last, stem):
        return _may_be_glued(rule, before, stem, after)
    if rule.part == "key":
        # `token` is a secret unless a word before it says otherwise; `key` is one only with such a word.
        return stem[:1] in b"tT" or _may_be_secret_key(before, last, stem)
    return not after.isalpha() or (stem[-1:].islower() and after.isupper())


def _is_glued(last: bytes, stem: bytes) -> bool:
    """Whether it runs on from the letter before it without a change of case."""
    if stem[:1].islower() or not stem[:1].isalpha():
        return last.isalpha() and last.isascii()
    # `SMBPass`: an abbreviation in capitals, then a word of its own.
    return last.isupper() and not stem[1:2].islower()


def _may_be_glued(rule: NameRule, before: bytes, stem: bytes, after: bytes) -> bool:
    # `apikey` is written without a separator; other letters before `key` make another word (`monkey`).
    if rule.part == "key":
        return word_before_stem(before).endswith(_GLUED_TOKEN if stem[:1] in b"tT" else _GLUED_KEY)
    if before[-6:].lower().endswith(_WORDS_WITH_PASS):
        return False
    return stem.lower() in (b"pass", b"pwd") and after in (b"=", b":", b'"', b"'", b" ", KEY_END)


_WORDS_WITH_PASS = (b"com", b"by", b"sur", b"tres", b"over", b"under", b"multi", b"single")
"""`compass`, `bypass` and the like."""


_GLUED_KEY = ("api", "access", "secret", "private", "master", "auth", "account")
_GLUED_TOKEN = (*_GLUED_KEY, *"identity registry registrytoken refresh id bearer session csrf bot deploy oauth".split())
GUARD_WORDS = Guards(
    tail=tuple(sorted({word.rstrip("0123456789") for word in notation.TAIL_WORDS})),
    said=tuple(sorted({word.lower() for word in notation.SAID_WORDS})),
    glued_key=_GLUED_KEY,
    glued_token=_GLUED_TOKEN,
    plain=tuple(sorted(PLAIN_QUALIFIERS)),
    cookie=("sid", "sess", "auth", "jwt"),
    no_words=tuple(sorted(word.decode() for word in judge.NO_PASSWORDS)),
    public=tuple(sorted(prefixed.PUBLIC_WORDS)),
    secret=tuple(prefixed.SECRET_WORDS),
)
"""What the native search refuses or lets through by."""
