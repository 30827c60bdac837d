"""Whether a value that was found after a name is a secret: by the name's judge and by how the value is put to it."""

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from holdfast.redact import judge, notation
from holdfast.redact.judge import NameRule
from holdfast.redact.letters import is_unspeakable
from holdfast.redact.rules.names import PLAIN_QUALIFIERS, SECRET_QUALIFIERS

KEY_END = b"\x1e"
"""Stands after a key of a JSON object in the text that is scanned."""
STRING_END = b"\x1f"
"""Stands after any other string of it."""
PEEK = 200
"""How much of a long value is judged."""


class Value(msgspec.Struct, frozen=True):
    """A value that was found after a name."""

    start: int
    end: int
    quoted: bool
    notation: str
    sign: bytes
    below: bool = False
    """Whether it stands on another line than its name."""


_SETTER = re.compile(rb"(?:set|with|use|add|put)_?[A-Za-z]{0,16}_?$", re.IGNORECASE)
# The last word before the stem, in capitals or in camel case, with at most one separator after it.
_LAST_WORD = re.compile(rb"([A-Z]+|[A-Z]?[a-z0-9]+)[_.\- ]?$")


def word_before_stem(before: bytes) -> str:
    """The word right before the stem: `api` in `MY_API_KEY` and in `myApiKey`."""
    return _last_word(before[-24:])


@lru_cache(4096)
def _last_word(before: bytes) -> str:
    match = _LAST_WORD.search(before)
    word = match[1].decode().lower() if match else ""
    return "" if before.endswith(b" ") and word not in SECRET_QUALIFIERS and word not in PLAIN_QUALIFIERS else word


_PUBLIC_VALUES = (b"pk_live_", b"pk_test_", b"phc_", b"pk.eyJ", b"ssh-rsa ", b"ssh-ed25519 ", b"age1")
"""How keys begin that their issuers mean to be seen by everyone."""


def accept_value(text: bytes, rule: NameRule, value: Value, before: bytes, stem: bytes) -> bool:
    candidate = text[value.start : min(value.end, value.start + PEEK)]
    if candidate.startswith((b"[redacted", *_PUBLIC_VALUES)) or b"[redacted:" in candidate:
        return False
    if notation.NO_SECRET_FORM.match(candidate) or (
        candidate.isdigit() and (value.notation == "space" or len(candidate) < 4)
    ):
        return False
    if value.notation == "space" and not notation.FLAG.search(before + stem):
        return _accept_bare_space(rule, candidate, value.quoted, before)
    if before[-1:] == b":" and before[-2:-1].isdigit():  # `arn:…:4711:secret:name` tells where it is kept
        return False
    if value.notation == "call":
        if b" " in candidate or not judge.is_mixed_password(candidate):
            return False
        # `password("…")` alone on its line, as build scripts write it.
        return bool(_SETTER.search(before)) or (
            before[-1:] in (b"", b" ", b"\t", b"\n") and judge.is_cased_password(candidate)
        )
    if value.notation == "comma" and not notation.CALL_BEFORE.search(before):
        cased = judge.is_cased_password(candidate) and judge.looks_random(candidate)
        return cased and bool(notation.PAIR_LINE.search(before))
    if value.sign == b"=" and not value.quoted and b"==" in text[value.start - 3 : value.start + 1]:
        return False
    if value.notation in ("list", "cell") and (b" " in candidate.strip() or not judge.is_mixed_password(candidate)):
        return False
    if value.sign == b"," and value.notation == "table" and not judge.looks_strong(candidate):
        return False
    if value.notation == "table" and not (notation.CELL.search(before) and judge.is_mixed_password(candidate)):
        return False
    return _BY_JUDGE[rule.judge](text, rule, value, candidate, before, stem)


def _accept_bare_space(rule: NameRule, candidate: bytes, quoted: bool, before: bytes) -> bool:
    """`using deploy password gldt… for`: a name and a value with nothing between them."""
    if candidate[:1] in b"*&" or b"(" in candidate:
        return False
    if rule.judge == "strong" and rule.kind == "key":
        return len(candidate) >= 32 and judge.looks_strong(candidate) and not candidate.isalpha()
    if rule.judge not in ("password", "token", "phrase") or rule.part not in ("", "key", "word"):
        return False
    if rule.judge == "token" and b" " in candidate:
        return False
    if rule.part == "word":
        wild = sum(48 <= c <= 57 for c in candidate) >= 2 or judge.is_wild_password(candidate)
        # `auth_pass` is a name of settings, `pass` alone a word of every day.
        least = 8 if before[-1:] == b"_" else 10
        return len(candidate) >= least and wild and not candidate.isupper() and judge.looks_random(candidate)
    if any(48 <= c <= 57 for c in candidate) and judge.looks_strong(candidate):
        return True
    if rule.judge == "token":
        word = word_before_stem(before)
        # `tomtom key 3f2a…` may be that of a cache; nobody calls a hash a secret or a token.
        named = word in ("api", "secret", "access", "auth") or (rule.kind != "key" and word not in PLAIN_QUALIFIERS)
        return named and len(candidate) >= _LONG_HEX and judge.looks_random(candidate)
    if judge.is_word_with_digits(candidate) or is_unspeakable(candidate) or notation.WORDS_AND_NUMBER.match(candidate):
        return True
    cased = quoted or judge.has_digits_and_cases(candidate)
    return len(candidate) >= 8 and cased and judge.is_mixed_password(candidate)


def _accept_password(text: bytes, _rule: NameRule, value: Value, candidate: bytes, before: bytes, stem: bytes) -> bool:
    if not judge.is_password(candidate) or candidate.startswith((b"/", b"./", b"../", b"~/")) or b"://" in candidate:
        return False
    if not judge.is_password(candidate.rstrip(b"),;")) or _IN_SCRIPT.search(candidate):
        return False
    if _says_password(candidate) or (b" " in candidate and text[value.start - 1 : value.start] == b"`"):
        return False  # between backquotes a shell has a command
    if value.notation in ("said", "table") or stem.lower() in SHORT_NAMES:
        return _accept_short_name(value, candidate, before, stem)
    if value.notation == "typed":
        return b" " not in candidate or judge.is_phrase(candidate)
    if value.quoted:
        return b" " not in candidate or (
            len(candidate) < 40
            and candidate.count(b" ") < 4
            and any(48 <= c <= 57 for c in candidate)
            and judge.is_phrase(candidate)
        )
    return _accept_bare_password(text, value, candidate, stem)


_CALLED = re.compile(rb"[(\[](?![\x80-\xff])")
_IN_SCRIPT = re.compile(rb"[\xe3-\xed][\x80-\xbf]{2}[\xe3-\xed\xef]")
"""Words of East Asia: what is said about a password (`8文字以上`), which has none in it."""
SHORT_NAMES = frozenset((b"pass", b"pw", b"psw", b"pwd", b"clave", b"mdp"))
_PUT_BY_NAME = frozenset(("assign", "inner", "pair", "block", "index", "xml", "plist"))


def _accept_short_name(value: Value, candidate: bytes, before: bytes, stem: bytes) -> bool:
    named = before[-1:] in b"_." and (value.sign in b"=:" + KEY_END or value.notation == "inner")
    named_alike = candidate.lower().endswith(stem.lower())
    if not value.quoted and judge.is_word(candidate) and (b"_" in candidate or value.below or named_alike):
        return False  # a name of the program
    glued = before[-1:].isalpha() and stem.islower() and value.sign == b"=" and not judge.is_word(candidate)
    camel = stem[:1].isupper() and before[-1:].islower() and (value.quoted or not judge.is_word(candidate.rstrip(b"-")))
    environment = (stem.isupper() and before[-1:] == b"_") or named or camel or glued
    if environment and value.notation in _PUT_BY_NAME and b" " not in candidate and not judge.is_code(candidate):
        return len(candidate) >= 4 and not candidate.isdigit()
    return b" " not in candidate and judge.is_mixed_password(candidate)


def _accept_bare_password(text: bytes, value: Value, candidate: bytes, stem: bytes) -> bool:
    # A remark in another script may follow, which is no call.
    if judge.is_code(candidate) or _CALLED.match(text, value.end):
        return False
    if not judge.is_word(candidate) or judge.is_mixed_password(candidate):
        return True
    if value.notation == "space":
        return False
    if value.sign == b":":
        return candidate.islower() and len(candidate) >= 6 and bool(notation.LINE_END.match(text, value.end))
    # `Root__Password=nAoDNbFxsWaK`: in settings no space stands beside the sign, and the line ends.
    whole_line = text[value.start - 1 : value.start] == b"=" and notation.LINE_END.match(text, value.end)
    in_settings = whole_line and len(candidate) >= 8 and not candidate.islower() and not judge.is_camel_case(candidate)
    return value.sign == b"=" and (stem.isupper() or bool(in_settings))


def _says_password(candidate: bytes) -> bool:
    """A label or a type such as `NewPassword`: the word for it and only letters."""
    return bool(notation.PASSWORD_WORDS.search(candidate)) and not any(48 <= c <= 57 for c in candidate)


def _accept_phrase(text: bytes, rule: NameRule, value: Value, candidate: bytes, before: bytes, stem: bytes) -> bool:
    if value.quoted and b" " in candidate:
        return judge.is_phrase(candidate)
    return _accept_password(text, rule, value, candidate, before, stem)


def _accept_token(text: bytes, rule: NameRule, value: Value, candidate: bytes, before: bytes, stem: bytes) -> bool:
    if text[value.end : value.end + 1] in (b"(", b"[") or b" " in candidate.strip():
        return False
    hashed = _NAMES_HASH.search(text, max(0, value.start - 16), value.start)
    if rule.part == "key" and (hashed or not is_secret_key(candidate, before, stem)):
        return False
    if value.notation == "said" and (candidate[-1:] in b"])" or not _may_be_said(candidate)):
        return False
    if not value.quoted and (
        judge.is_code(_OPERATORS.split(candidate, maxsplit=1)[0]) or _NAMED_TYPE.search(candidate)
    ):
        return False
    return judge.looks_random(candidate.strip()) or _is_key_in_digits(rule, value, candidate, before)


def _may_be_said(candidate: bytes) -> bool:
    """Words of a sentence have no digits; a token without one is long."""
    return any(48 <= c <= 57 for c in candidate) or (len(candidate) >= 24 and candidate.isalpha())


def _is_key_in_digits(rule: NameRule, value: Value, candidate: bytes, before: bytes) -> bool:
    """Some issuers' keys are digits only; so are times, ids and counts, so the name must leave no doubt."""
    named = rule.kind == "secret" or (rule.kind == "key" and word_before_stem(before) in ("api", "secret", "private"))
    return (
        named
        and value.notation == "assign"
        and candidate.isdigit()
        and 16 <= len(candidate) <= 64
        and len(set(candidate)) > 5
        and not judge.is_reference(candidate)
    )


_OPERATORS = re.compile(rb"[+,;?(:&|]")
_NAMED_TYPE = re.compile(rb"[a-z](?:Key|Token|Secret)$")
"""`Ed25519PublicKey`: a type, which is called what it is for."""


def is_secret_key(candidate: bytes, before: bytes, stem: bytes) -> bool:
    """`api_key` is a secret, `cache_key` is not; an unknown word before it asks for a value that is clearly random."""
    word = word_before_stem(before)
    # .NET's `publicKeyToken` is the hash of a public key.
    if word in PLAIN_QUALIFIERS or before[-11:].lower().replace(b" ", b"").endswith(b"publickey"):
        return False
    if stem.lower().startswith(b"tok"):
        return True
    if word in SECRET_QUALIFIERS:
        return True
    if not word:
        parameter = before.endswith((b"?", b"&", b"--", b"-"))
        return (parameter or (stem == b"Key" and len(candidate) >= _LONG_HEX)) and judge.looks_strong(candidate)
    return judge.looks_strong(candidate) or len(candidate) >= (20 if stem.isupper() else _LONG_HEX)


_NAMES_HASH = re.compile(rb"(?i:[_-]?(?:hash|digest)\W{1,8}$)")
_LONG_HEX = 32
"""As long as the keys that services give out in hexadecimal."""
_PUT_TO_WORD = frozenset("assign index comma space orelse pair block prop".split())


def _accept_strong(_text: bytes, rule: NameRule, value: Value, candidate: bytes, before: bytes, stem: bytes) -> bool:
    if rule.part == "word" and value.notation not in _PUT_TO_WORD:
        return False
    if value.notation == "space" and not notation.FLAG.search(before + stem):
        return False
    # Names of licences have few digits.
    if rule.kind == "license" and sum(48 <= c <= 57 for c in candidate) < 4:
        return False
    least = 10 if stem.isupper() and before[-1:] == b"_" else 16
    return b" " not in candidate and len(candidate) >= least and judge.looks_random(candidate)


def _accept_pin(_text: bytes, _rule: NameRule, value: Value, candidate: bytes, _before: bytes, _stem: bytes) -> bool:
    if value.notation == "assign" and judge.looks_strong(candidate):
        return True
    return value.notation in ("assign", "said") and candidate.isdigit() and 4 <= len(candidate) <= 10


_CODE = re.compile(rb"(?:[A-Za-z0-9]{4,6}[- ]){1,5}[A-Za-z0-9]{4,6}$|\d{6,10}$|[A-Z0-9]{8,12}$")


def _accept_code(_text: bytes, _rule: NameRule, _value: Value, candidate: bytes, _before: bytes, _stem: bytes) -> bool:
    return bool(_CODE.match(candidate)) and any(48 <= c <= 57 for c in candidate)


def _accept_any(_text: bytes, _rule: NameRule, _value: Value, candidate: bytes, _before: bytes, _stem: bytes) -> bool:
    return len(candidate) >= 3 and not judge.is_reference(candidate)


_BY_JUDGE: dict[str, Callable[[bytes, NameRule, Value, bytes, bytes, bytes], bool]] = {
    "any": _accept_any,
    "password": _accept_password,
    "phrase": _accept_phrase,
    "token": _accept_token,
    "strong": _accept_strong,
    "pin": _accept_pin,
    "code": _accept_code,
}
