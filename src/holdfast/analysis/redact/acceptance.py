"""Decides whether a value after a name is a secret, by the name's judge and the notation."""

from collections.abc import Callable

import msgspec

from holdfast.analysis.redact import judge
from holdfast.analysis.redact.letters import is_unspeakable
from holdfast.analysis.redact.name_parts import word_before_stem
from holdfast.analysis.redact.notation import Value
from holdfast.analysis.redact.rule_data import PATTERNS, RULES, WORDS, NameRule
from holdfast.analysis.redact.spans import KEY_END, REDACTED

PEEK = 200
"""How much of a long value is judged."""
_LONG_HEX = 32
"""The length of keys that services issue in hexadecimal."""
_BY_NAME, _TO_WORD = frozenset(RULES.words["put_by_name"]), frozenset(RULES.words["put_to_word"])
_NEVER_SECRET = (REDACTED[:-1], *WORDS.public_value)


class Candidate(msgspec.Struct, frozen=True):
    """A value, and the name before it."""

    text: bytes
    rule: NameRule
    value: Value
    content: bytes
    before: bytes
    """The text before the stem of the name."""
    stem: bytes

    @property
    def has_digit(self) -> bool:
        return judge.count_digits(self.content) > 0

    def is_followed_by(self, *signs: bytes) -> bool:
        return self.text[self.value.end : self.value.end + 1] in signs


def accept_value(candidate: Candidate) -> bool:
    before, form = candidate.before, candidate.value.notation
    if _is_never_secret(candidate.content, form):
        return False
    if form == "space" and not PATTERNS.flag.search(before + candidate.stem):
        return _accept_bare_space(candidate)
    # `arn:…:4711:secret:name` says where it is kept.
    if before[-1:] == b":" and before[-2:-1].isdigit():
        return False
    if form == "call":
        return _accept_call(candidate)
    if form == "comma" and not PATTERNS.call_before.search(before):
        return _accept_pair(candidate)
    return _fits_notation(candidate) and _BY_JUDGE[candidate.rule.judge](candidate)


def _is_never_secret(content: bytes, form: str) -> bool:
    if content.startswith(_NEVER_SECRET) or REDACTED in content or PATTERNS.no_secret_form.match(content):
        return True
    return content.isdigit() and (form == "space" or len(content) < 4)


def _accept_pair(candidate: Candidate) -> bool:
    is_random = judge.is_cased_password(candidate.content) and judge.looks_random(candidate.content)
    return is_random and bool(PATTERNS.pair_line.search(candidate.before))


def _accept_call(candidate: Candidate) -> bool:
    content, before = candidate.content, candidate.before
    if b" " in content or not judge.is_mixed_password(content):
        return False
    # `password("…")` alone on its line, as in build scripts.
    is_alone = before[-1:] in (b"", b" ", b"\t", b"\n") and judge.is_cased_password(content)
    return bool(PATTERNS.setter.search(before)) or is_alone


def _fits_notation(candidate: Candidate) -> bool:
    value, content = candidate.value, candidate.content
    if value.sign == b"=" and not value.quoted and b"==" in candidate.text[value.start - 3 : value.start + 1]:
        return False
    if value.notation in ("list", "cell"):
        return b" " not in content.strip() and judge.is_mixed_password(content)
    if value.notation != "table":
        return True
    if value.sign == b"," and not judge.looks_strong(content):
        return False
    return bool(PATTERNS.cell.search(candidate.before)) and judge.is_mixed_password(content)


def _accept_bare_space(candidate: Candidate) -> bool:
    """`using deploy password gldt… for`: a name and a value without a sign in between."""
    rule, content = candidate.rule, candidate.content
    if content[:1] in b"*&" or b"(" in content:
        return False
    if rule.judge == "strong" and rule.kind == "key":
        return _is_long_key(content)
    if not _is_spoken_rule(rule) or (rule.judge == "token" and b" " in content):
        return False
    return _accept_after_word(candidate) if rule.part == "word" else _accept_after_name(candidate)


def _accept_after_name(candidate: Candidate) -> bool:
    if candidate.has_digit and judge.looks_strong(candidate.content):
        return True
    return (_accept_after_key if candidate.rule.judge == "token" else _accept_spoken_password)(candidate)


def _is_long_key(content: bytes) -> bool:
    return len(content) >= 32 and judge.looks_strong(content) and not content.isalpha()


def _is_spoken_rule(rule: NameRule) -> bool:
    return rule.judge in ("password", "token", "phrase") and rule.part in ("", "key", "word")


def _accept_spoken_password(candidate: Candidate) -> bool:
    content = candidate.content
    if judge.is_word_with_digits(content) or is_unspeakable(content) or PATTERNS.words_and_number.match(content):
        return True
    is_cased = candidate.value.quoted or judge.has_digits_and_cases(content)
    return len(content) >= 8 and is_cased and judge.is_mixed_password(content)


def _accept_after_word(candidate: Candidate) -> bool:
    content = candidate.content
    is_wild = judge.count_digits(content) >= 2 or judge.is_wild_password(content)
    # `auth_pass` is a settings name, `pass` alone an everyday word.
    least = 8 if candidate.before[-1:] == b"_" else 10
    return len(content) >= least and is_wild and not content.isupper() and judge.looks_random(content)


def _accept_after_key(candidate: Candidate) -> bool:
    word = word_before_stem(candidate.before)
    # `tomtom key 3f2a…` may be a cache key; nobody calls a hash a secret or a token.
    is_other = candidate.rule.kind != "key" and word not in WORDS.plain_qualifier
    is_named = is_other or word in (b"api", b"secret", b"access", b"auth")
    return is_named and len(candidate.content) >= _LONG_HEX and judge.looks_random(candidate.content)


def _is_between_backquotes(candidate: Candidate) -> bool:
    """A command of a shell."""
    start = candidate.value.start
    return b" " in candidate.content and candidate.text[start - 1 : start] == b"`"


_NO_PASSWORD: tuple[Callable[[Candidate], object], ...] = (
    lambda candidate: not judge.is_password(candidate.content),
    lambda candidate: not judge.is_password(candidate.content.rstrip(b"),;")),
    lambda candidate: candidate.content.startswith((b"/", b"./", b"../", b"~/")) or b"://" in candidate.content,
    lambda candidate: PATTERNS.in_script.search(candidate.content),
    # A label or type such as `NewPassword`: the word itself and only letters.
    lambda candidate: PATTERNS.password_words.search(candidate.content) and not candidate.has_digit,
    _is_between_backquotes,
)
"""Tests of which each shows that a value is no password."""


def _accept_password(candidate: Candidate) -> bool:
    value, content = candidate.value, candidate.content
    if any(is_none(candidate) for is_none in _NO_PASSWORD):
        return False
    if value.notation in ("said", "table") or candidate.stem.lower() in WORDS.short_name:
        return _accept_short_name(candidate)
    if value.notation != "typed" and not value.quoted:
        return _accept_bare_password(candidate)
    return b" " not in content or (judge.is_phrase(content) and (value.notation == "typed" or _is_short(candidate)))


def _is_short(candidate: Candidate) -> bool:
    return len(candidate.content) < 40 and candidate.content.count(b" ") < 4 and candidate.has_digit


def _accept_short_name(candidate: Candidate) -> bool:
    value, content = candidate.value, candidate.content
    is_word = judge.is_word(content)
    if is_word and _is_name_in_program(candidate):
        return False
    is_put = value.notation in _BY_NAME and b" " not in content and not judge.is_code(content)
    if is_put and _is_setting(candidate, is_word):
        return len(content) >= 4 and not content.isdigit()
    return b" " not in content and judge.is_mixed_password(content)


def _is_name_in_program(candidate: Candidate) -> bool:
    value, content = candidate.value, candidate.content
    is_alike = content.lower().endswith(candidate.stem.lower())
    return not value.quoted and (b"_" in content or value.below or is_alike)


def _is_setting(candidate: Candidate, is_word: bool) -> bool:
    """Whether the short name is part of a longer one, as in settings and environment variables."""
    value, last, stem = candidate.value, candidate.before[-1:], candidate.stem
    if last in b"_." and (_is_variable(last, stem) or value.sign in b"=:" + KEY_END or value.notation == "inner"):
        return True
    if last.isalpha() and stem.islower() and value.sign == b"=" and not is_word:
        return True
    return _is_camel_part(last, stem) and (value.quoted or not judge.is_word(candidate.content.rstrip(b"-")))


def _is_variable(last: bytes, stem: bytes) -> bool:
    return last == b"_" and stem.isupper()


def _is_camel_part(last: bytes, stem: bytes) -> bool:
    return stem[:1].isupper() and last.islower()


def _accept_bare_password(candidate: Candidate) -> bool:
    text, value, content = candidate.text, candidate.value, candidate.content
    # A comment in another script may follow, which is no call.
    if judge.is_code(content) or PATTERNS.called.match(text, value.end):
        return False
    if not judge.is_word(content) or judge.is_mixed_password(content):
        return True
    return value.notation != "space" and _accept_bare_word(candidate)


def _accept_bare_word(candidate: Candidate) -> bool:
    """A value of letters only: a setting fills its line."""
    text, value, content = candidate.text, candidate.value, candidate.content
    ends_line = bool(PATTERNS.line_end.match(text, value.end))
    if value.sign == b":":
        return content.islower() and len(content) >= 6 and ends_line
    # `Root__Password=nAoDNbFxsWaK`: in settings there is no space around the sign, and the line ends.
    whole_line = text[value.start - 1 : value.start] == b"=" and ends_line
    in_settings = whole_line and len(content) >= 8 and not content.islower() and not judge.is_camel_case(content)
    return value.sign == b"=" and (candidate.stem.isupper() or in_settings)


def _accept_phrase(candidate: Candidate) -> bool:
    is_quoted_phrase = candidate.value.quoted and b" " in candidate.content
    return judge.is_phrase(candidate.content) if is_quoted_phrase else _accept_password(candidate)


def _accept_token(candidate: Candidate) -> bool:
    value, content = candidate.value, candidate.content
    if candidate.is_followed_by(b"(", b"[") or b" " in content.strip():
        return False
    if candidate.rule.part == "key" and not _is_value_of_key(candidate):
        return False
    if value.notation == "said" and not _may_be_said(candidate):
        return False
    if not value.quoted and _is_called_or_typed(content):
        return False
    return judge.looks_random(content.strip()) or _is_key_in_digits(candidate)


def _may_be_said(candidate: Candidate) -> bool:
    """Words of a sentence have no digits; a token without any is long."""
    content = candidate.content
    is_token = candidate.has_digit or (len(content) >= 24 and content.isalpha())
    return is_token and content[-1:] not in b"])"


def _is_called_or_typed(content: bytes) -> bool:
    first = PATTERNS.operators.split(content, maxsplit=1)[0]
    return judge.is_code(first) or bool(PATTERNS.named_type.search(content))


def _is_value_of_key(candidate: Candidate) -> bool:
    start = candidate.value.start
    is_hash = PATTERNS.names_hash.search(candidate.text, max(0, start - 16), start)
    return not is_hash and is_secret_key(candidate.content, candidate.before, candidate.stem)


def _is_key_in_digits(candidate: Candidate) -> bool:
    """Some keys are digits only, but so are times, ids and counts, so the name must be unambiguous."""
    kind, content = candidate.rule.kind, candidate.content
    if candidate.value.notation != "assign" or not content.isdigit() or not 16 <= len(content) <= 64:
        return False
    is_named = kind == "key" and word_before_stem(candidate.before) in (b"api", b"secret", b"private")
    return (kind == "secret" or is_named) and len(set(content)) > 5 and not judge.is_reference(content)


def _is_public_key(before: bytes) -> bool:
    """.NET's `publicKeyToken` is the hash of one."""
    return before[-11:].lower().replace(b" ", b"").endswith(b"publickey")


def is_secret_key(content: bytes, before: bytes, stem: bytes) -> bool:
    """`api_key` is a secret, `cache_key` is not; an unknown qualifier requires a clearly random value."""
    word = word_before_stem(before)
    if word in WORDS.plain_qualifier or _is_public_key(before):
        return False
    if stem.lower().startswith(b"tok") or word in WORDS.secret_qualifier:
        return True
    if not word:
        is_name = before.endswith((b"?", b"&", b"-")) or (stem == b"Key" and len(content) >= _LONG_HEX)
        return is_name and judge.looks_strong(content)
    least = 20 if stem.isupper() else _LONG_HEX
    return len(content) >= least or judge.looks_strong(content)


def _accept_strong(candidate: Candidate) -> bool:
    rule, content = candidate.rule, candidate.content
    if rule.part == "word" and candidate.value.notation not in _TO_WORD:
        return False
    # License names have few digits.
    if b" " in content or (rule.kind == "license" and judge.count_digits(content) < 4):
        return False
    least = 10 if candidate.stem.isupper() and candidate.before[-1:] == b"_" else 16
    return len(content) >= least and judge.looks_random(content)


def _accept_pin(candidate: Candidate) -> bool:
    form, content = candidate.value.notation, candidate.content
    if form == "assign" and judge.looks_strong(content):
        return True
    return form in ("assign", "said") and content.isdigit() and 4 <= len(content) <= 10


_BY_JUDGE: dict[str, Callable[[Candidate], bool]] = {
    "any": lambda candidate: len(candidate.content) >= 3 and not judge.is_reference(candidate.content),
    "password": _accept_password,
    "phrase": _accept_phrase,
    "token": _accept_token,
    "strong": _accept_strong,
    "pin": _accept_pin,
    "code": lambda candidate: bool(PATTERNS.code.match(candidate.content)) and candidate.has_digit,
}
