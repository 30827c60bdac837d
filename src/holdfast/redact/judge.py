"""Is this text a secret, or a word, a path, a type, a variable, a placeholder?"""

import re
from collections.abc import Callable

import msgspec

from holdfast.core.lazy import lazy_pattern
from holdfast.redact.checksums import has_base58_checksum, has_stellar_checksum, holds_private_key
from holdfast.redact.letters import is_speakable, is_unspeakable

# At the start of a value: brackets of templates, `$NAME` (not `$6$`, a crypt hash), signs only,
# one repeated character, or the address of a secret store.
_REFERENCE = lazy_pattern(
    rb"[{<%*\[(#@!&~?^]+[{<%*\[(#@A-Za-z_]|\$(?![\d$]|[a-z0-9]+\$)|[^A-Za-z0-9]*$|(.)\1*$|redacted|env[.:\[]"
    rb"|(?:process|import\.meta)\.env|os\.(?:environ|getenv)|(?:arn|op|vault|ssm|file|env|secret|secret-?ref|ref\+\w{2,12}|projects|awssm|keyring|sops)[:/]|ENC\[|AQICA|\[\^"
)
# Anywhere in a value, in lower case: words and marks of examples.
_PLACEHOLDER = lazy_pattern(
    rb"your|example|placeholder|change.?me|x{4}|\.{3}|redacted|\*{3}|dummy|<|\$\{|\{\{|\$\(|insert.?|replace.?|todo|fixme|"
    rb"fake|sample|abc123|123456789|_here|xxx-|foobar|\xe2\x80\xa6"
)
_PLAIN = lazy_pattern(rb"[A-Za-z_]+$")
# `settings.password`, `self->token`, `Vault::secret`, with or without a call.
_DOTTED = lazy_pattern(rb"[A-Za-z_$@][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+(?:\(\)?)?$")
_PART = lazy_pattern(rb"[A-Za-z0-9]{16,}")
_WORD = rb"(?:[A-Z]?[a-z]{3,}\d{1,2}(?![A-Za-z0-9])|[A-Z]?[a-z]+|[A-Z]+|\d{1,4}(?!\d))?"
# Words, abbreviations and short numbers joined by separators, as in names and in prose.
_WORDS = lazy_pattern(_WORD + rb"(?:[-_.:/ ]{1,4}" + _WORD + rb"){0,40}\d{0,3}$")
# From the root, the home or the folder, with a drive, as an address, or a relative file with a suffix.
_PATH = lazy_pattern(rb"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]{1,12}://|[\w.-]+/[\w./-]+\.[a-z]{1,5}$")
# At least 20 characters with a digit among the letters: capitals alone are a constant.
_BASE32 = lazy_pattern(rb"(?=[A-Z]*[2-7][A-Z2-7]*[A-Z])[A-Z2-7]{20,}=*$")
# As licences and keys are printed: groups of capitals with digits among them.
_KEY_GROUPS = lazy_pattern(rb"(?=[A-Z-]*\d[A-Z-]*\d)[A-Z0-9]{5,8}(?:-[A-Z0-9]{5,8}){2,7}$")
# Base64 may hold `/`; its length and the padding tell it from a path.
_ENCODED = lazy_pattern(rb"[A-Za-z0-9+/]{40,}={1,2}$")
# A change between lower case, capitals and digits: random text has many, names have few.
_FLIP = lazy_pattern(rb"[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]|[A-Z]{2}[a-z]")
# Words in camel case that have a vowel near their start.
_CAMEL = lazy_pattern(rb"^[a-z]{3,}(?=[A-Z])|[A-Z](?=[a-z]{0,3}[aeiouy])[a-z]{2,}")
_LOWER_THEN_DIGITS = lazy_pattern(rb"[a-z]{6,}[._!*#-]?[a-z]*\d{2,4}[!?#]?$")
# As the makers of phones propose passwords.
_SIX_AND_SIX = lazy_pattern(rb"[A-Za-z0-9]{6}(?:-[A-Za-z0-9]{6}){2}$")
_NUMBERED_WORD = lazy_pattern(rb"[A-Za-z]{2,10}-\d{1,4}$")
_HEX = lazy_pattern(rb"[0-9a-fA-F]+$")
_JUDGE_UUID = lazy_pattern(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)
_DATE = lazy_pattern(rb"\d{2,4}[-/.:]\d{1,2}([-/.:T]|$)")
_VERSION = lazy_pattern(rb"[v^~]?\d+(?:\.\d+){1,3}(?:[-+.]\w+)*$")
_NUMBER = lazy_pattern(rb"-?\d[\d._eE+-]*$")
# One part of `AES256-GCM-SHA384`: the name of an algorithm and a number that belongs to it.
_OF_ALGORITHM = lazy_pattern(
    rb"(?:(?:aes|sha|hmac|gcm|cbc|ctr|ccm|ecb|siv|hs|rs|es|ps|rsa|oaep|dsa|ecdsa|ecdhe|ecdh|dhe|eddsa|ed|x|chacha|poly|des|ede|md|tls|ssl"
    rb"|with|base|utf|encoded|hashed|encrypted|signed|pkcs|pss|hkdf|pbkdf|argon|scrypt|bcrypt|blake|secp|prime|curve|mlkem|kyber)\d{0,5}){1,3}$|(?:rfc|iso|iec|ietf|fips|nist|ansi|[a-z]?)\d{1,5}\.?$",
    re.IGNORECASE,
)
# `TLS1_RT_CRYPTO`: a constant of a program.
_CONSTANT = lazy_pattern(rb"[A-Z][A-Z0-9]{1,11}(?:_[A-Z0-9]{1,11}){1,8}$")
# A call or an index at the start: `os.environ[`, `get_token(`.
_CALL = lazy_pattern(rb"[\w.$:]+[(\[]")
# Both cases and a sign, in either order.
_DIGIT_BYTES, _SIGNS = b"0123456789", b"!@#$%^&*?+"
_SIGNED = lazy_pattern(rb"[a-z][^\n]*[A-Z][^\n]*[!@#$%^&*?+]|[A-Z][^\n]*[a-z][^\n]*[!@#$%^&*?+]")
NO_PASSWORDS = frozenset(
    b"password passwd passphrase passwort pwd secret token none null nil undefined true false yes no on off str string"
    b" bytes text int integer number bool boolean any object char varchar unknown void optional required hidden masked"
    b" pass pw empty missing invalid incorrect wrong prompt ask stdin default value redacted secretstr input reset"
    b" username user admin1 key keys file path env url type name field hash new old current confirm login auth"
    b" public private virtual interface struct class forgot change changed expired strength policy manager length rule"
    b" rules protected authentication hunter".split()
) - {b"admin1", b"hunter"}
# Words of a sentence about passwords; a passphrase of random words has none of them.
_EXPLAINING = frozenset(
    b"a an the your my our their this that these is are be was must should can may will not no of to for in on with and or"
    b" if please enter type choose pick set use used give given needed need required passphrase password key keys you"
    b" from by has have does when while it its at as which here".split()
)


def is_reference(value: bytes) -> bool:
    """It stands for a value kept elsewhere (`${PASSWORD}`, `<password>`, `***`), or says that there is none."""
    if _REFERENCE.match(value) and not _is_password_with_sign(value):
        return True
    return bool(_PLACEHOLDER.search(value[:200].lower()))


def _is_password_with_sign(value: bytes) -> bool:
    """`!kI7xX0x?Gk`: what begins as a reference does, but no name follows and no bracket ends it."""
    if value[:1] not in b"!%*?~^#@&" or value[-1:] in b"%}>)]" or value.count(b"%") > 1:
        return False
    body = value.lstrip(b"!%*?~^#@&")
    return (
        len(body) >= 8
        and has_digits_and_cases(body)
        and len(_FLIP.findall(body)) * 5 >= len(body)
        and not is_camel_case(body)
    )


def is_word(value: bytes) -> bool:
    return bool(_PLAIN.match(value))


def is_code(value: bytes) -> bool:
    """`settings.password`, `self->token`, `get_token(`: where the value comes from, not the value."""
    dotted = _DOTTED.match(value) and not value[-3:].isdigit() and not _has_random_part(value)
    return bool(dotted) or bool(_CALL.match(value))


def _has_random_part(value: bytes) -> bool:
    """`jhRP0DJ5drlF….tkA7No.keJI7Qzk…`: parts of a token, which no name of a program looks like."""
    return len(value) >= 23 and any(is_random_part(part) for part in _PART.findall(value))


def is_random_part(part: bytes) -> bool:
    """Digits among the letters, and a change of class in every fourth character."""
    digits = sum(48 <= code <= 57 for code in part)
    return digits >= 2 and len(_FLIP.findall(part)) * 4 >= len(part) and not is_camel_case(part)


def is_path(value: bytes) -> bool:
    return bool(_PATH.match(value)) and not _ENCODED.match(value)


_LONG_OPTION = re.compile(rb"--[a-z]+(?:-[a-z]+)*(?:=|$)", re.IGNORECASE)


def is_password(value: bytes) -> bool:
    """For what is called a password little is asked: it may be any word but those that explain."""
    if len(value) < 3 or value.lower().rstrip(b"?") in NO_PASSWORDS or is_reference(value):
        return False
    # The option before it was given without a value: the program asks for it.
    return not (value.startswith(b"--") and _LONG_OPTION.match(value))


def is_phrase(value: bytes) -> bool:
    """Several words that are a secret together: those of a sentence about one are not."""
    words = re.findall(rb"[a-z]+", value.lower())
    return is_password(value) and 2 <= len(words) <= 30 and _EXPLAINING.isdisjoint(words)


def is_mixed_password(value: bytes) -> bool:
    """Where only a sentence or a place says that it is a password: it has a digit or a sign in it."""
    if len(value) < 5 or not is_password(value) or is_path(value) or _NUMBER.match(value) or _DATE.match(value):
        return False
    if is_code(value) or _VERSION.match(value) or _NUMBERED_WORD.match(value):
        return False
    if _has_any(value, _DIGIT_BYTES) and max(value) > 64:
        return True
    return _has_wild_case(value) or (len(value) >= 8 and _has_any(value, _SIGNS) and bool(_SIGNED.search(value)))


def _has_any(value: bytes, members: bytes) -> bool:
    return len(value.translate(None, members)) < len(value)


def has_digits_and_cases(value: bytes) -> bool:
    return all(any(low <= c <= high for c in value) for low, high in ((48, 57), (65, 90), (97, 122)))


def is_cased_password(value: bytes) -> bool:
    """Where a sentence hardly says that it is one: digits and letters of both cases."""
    return len(value) >= 8 and has_digits_and_cases(value) and is_mixed_password(value) and not _WORDS.match(value)


def is_word_with_digits(value: bytes) -> bool:
    """`gardenpepper726`, `d9lhw7dz3r8si1w`: lower case and digits, longer than the names of things are."""
    if len(value) < 10 or not is_mixed_password(value) or sum(48 <= c <= 57 for c in value) < 2:
        return False
    return (len(value) >= 12 and bool(_LOWER_THEN_DIGITS.match(value))) or len(_FLIP.findall(value)) * 4 >= len(value)


def is_wild_password(value: bytes) -> bool:
    """Digits and letters of both cases that change too often for a name."""
    if not is_cased_password(value) or is_camel_case(value):
        return False
    return len(_FLIP.findall(value)) * 4 >= len(value) or bool(_SIX_AND_SIX.match(value))


def _has_wild_case(value: bytes) -> bool:
    """Letters in wild case, as `qXaWqPpKaLAu`: neither a word nor camel case."""
    if len(value) < 10 or not value.isalpha() or is_camel_case(value):
        return False
    return len(_FLIP.findall(value)) * 4 >= len(value)


def is_camel_case(value: bytes) -> bool:
    """`RegNtSetValueKey`, `PKCS7PrivateKeyTypes`: two thirds of it are words that can be spoken."""
    if not value.isalnum():
        return False
    spoken = sum(len(word) for word in _CAMEL.findall(value) if is_speakable(word.lower()))
    return 3 * (len(value) - spoken) < len(value)


def looks_random(value: bytes) -> bool:
    """For a token or a key: long, no words, letters mixed with digits or wildly mixed case."""
    if len(value) < 8 or _NUMBER.match(value) or not _is_mixed(value):
        return False
    if _DATE.match(value) or _VERSION.match(value) or is_algorithm(value) or _CONSTANT.match(value):
        return False
    if is_reference(value) or is_path(value) or is_code(value):
        return False
    return not _WORDS.match(value[:200]) or is_unspeakable(value)


def is_algorithm(value: bytes) -> bool:
    """`AES256-GCM`, `RFC8628`: the name of a method or a standard."""
    return len(value) < 60 and all(_OF_ALGORITHM.match(part) for part in re.split(rb"[-_/+:.]+", value.rstrip(b".")))


def looks_strong(value: bytes) -> bool:
    """For places that say little: at least 16 characters, random, no hash in hexadecimal."""
    return len(value) >= 16 and not _HEX.match(value) and not _JUDGE_UUID.match(value) and looks_random(value)


def has_random_tail(token: bytes) -> bool:
    """The body after the prefix is random: digits and letters, no words joined by hyphens."""
    # Once with the prefix, and once without it: a prefix of letters would hide that the rest is random.
    for body in (token, re.split(rb"[-_.:/]", token, maxsplit=1)[-1]):
        # One change of class in twelve characters is less than random text has.
        if len(body) >= 12 and not _WORDS.match(body[:200]) and len(_FLIP.findall(body)) * 12 >= len(body):
            return not is_placeholder(token) and any(48 <= c <= 57 for c in body)
    return False


def is_placeholder(value: bytes) -> bool:
    """`ghp_xxxxxxxxxxxx`, `AKIAIOSFODNN7EXAMPLE`: written to be replaced. A long random value may hold one by chance."""
    low = value.lower()
    # Fillers such as `xxxx` or `0000` use few characters; the end is looked at, past a genuine prefix.
    if len(set(low[-16:])) <= 3:
        return True
    return any(word in low for word in _MARKS) or (len(value) < 60 and bool(re.search(rb"x{6}|\*{3}|\.{3}|0{10}", low)))


_MARKS = tuple(b"example your_ your- placeholder redacted changeme _here xxxxxxxx 1234567890abcdef".split())


def _is_mixed(value: bytes) -> bool:
    # The pattern of a scanner is no secret, though it looks random.
    if any(sign in value for sign in (b"]{", b"(?:", b"[^", b"\\d", b"0-9a-z", b"a-zA-Z")):
        return False  # a regular expression
    if len(value) < 20:
        mixed = any(48 <= c <= 57 for c in value) and any(c > 64 for c in value)
        return mixed or _has_wild_case(value) or is_unspeakable(value)
    if is_camel_case(value):
        return False
    if len(_FLIP.findall(value)) * 12 >= len(value) or _has_many_signs(value):
        return True
    return bool(_BASE32.match(value) or _KEY_GROUPS.match(value)) or is_unspeakable(value)


def _has_many_signs(value: bytes) -> bool:
    """Digits, letters and at least four different signs that no path or sentence has, as keys of web frameworks."""
    return any(48 <= c <= 57 for c in value) and len(set(value) & set(b"!@#$%^&*()+=~?")) >= 4


JUDGES: dict[str, Callable[[bytes], bool]] = {
    "password": is_password,
    "mixed": is_mixed_password,
    "cased": is_cased_password,
    "wild": is_wild_password,
    "spoken": lambda value: is_cased_password(value) or is_word_with_digits(value),
    "given": lambda value: is_cased_password(value) or (len(value) >= 24 and looks_random(value)),
    "phrase": is_phrase,
    "token": looks_random,
    "strong": looks_strong,
    "any": lambda value: bool(value) and not is_reference(value),
    "certain": bool,
    # BIP-39 allows these numbers of words only.
    "seed": lambda value: len(value.split()) in (12, 15, 18, 21, 24) and _EXPLAINING.isdisjoint(value.split()),
}


def is_cut_token(token: bytes) -> bool:
    """After a prefix that says what it is: `-` and `_` cut a random value into short pieces."""
    body = re.split(rb"[-_.:]", token, maxsplit=1)[-1]
    return has_digits_and_cases(body) and len(_FLIP.findall(body)) * 5 >= len(body) and has_random_tail(token)


CHECKS: dict[str, Callable[[bytes], bool]] = {
    "base58": has_base58_checksum,
    "cut": is_cut_token,
    "private": holds_private_key,
    "random": has_random_tail,
    "stellar": has_stellar_checksum,
}


class TokenRule(msgspec.Struct, frozen=True):
    """A secret whose own form gives it away, wherever it stands."""

    kind: str
    shape: str
    check: str = ""
    """The name of a further check in `checks.CHECKS`: a checksum, or that the rest is random."""
    left: str = ""
    """What may not stand before it. `strict`: letter, digit, `_`, `-`, `.`, `/`, for prefixes that are common;
    `any`: anything may; `private`: not `pk`, which is public."""


class PlaceRule(msgspec.Struct, frozen=True):
    """A secret that only the construct around it gives away. The pattern is matched where an anchor begins."""

    kind: str
    anchors: tuple[str, ...]
    pattern: str
    """The group `secret` is what is removed."""
    judge: str
    """How the value is judged: a name in `judge.JUDGES`."""
    positive: str
    """`{}` stands for a random value of the judge's sort."""
    negative: str
    back: int = 0
    """How many bytes before the anchor the pattern may begin."""
    next_word: bool = False
    """Whether the value is the word right after the anchor and has a digit: the native search spares the pattern elsewhere."""
    needs: str = ""
    """This must follow within 400 bytes: a quick look that spares the pattern."""


class NameRule(msgspec.Struct, frozen=True):
    """Names whose values are secret, in any notation that puts a value to a name."""

    kind: str
    stems: tuple[str, ...]
    judge: str
    """`password`: any value but a reference or a word that explains; `token`: only what looks random."""
    spoken: bool = True
    """Whether a sentence may give the value (`the password is …`)."""
    part: str = ""
    """`word`: the stem must be a whole part of the name; `key`: what stands before it decides."""
    stem_width: int = 0
    """How many characters at the end of a stem are the name's own word, where the rest is what stands before it."""


class UserRules(msgspec.Struct, frozen=True):
    """What a user adds to the built-in rules: names whose values are secret, patterns, and texts that are none."""

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    enabled: bool = True


class Finding(msgspec.Struct, frozen=True):
    """One secret that was removed."""

    kind: str


Span = tuple[int, int, str]
"""Start, end and kind of what is to be removed."""


def make_label(kind: str) -> bytes:
    return b"[redacted:" + kind.encode() + b"]"
