"""Tells secrets from words, paths, types, variables and placeholders."""

import re
from collections.abc import Callable

from holdfast.analysis.redact.decoded_values import (
    has_base58_checksum,
    has_stellar_checksum,
    holds_private_key,
    is_encoded_login,
)
from holdfast.analysis.redact.letters import is_speakable, is_unspeakable
from holdfast.analysis.redact.rule_data import PATTERNS, WORDS

_DIGITS, _SIGNS = b"0123456789", b"!@#$%^&*?+"
_GROUPS = (_DIGITS, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")


def is_reference(value: bytes) -> bool:
    """It refers to a value kept elsewhere (`${PASSWORD}`, `<password>`, `***`), or says that there is none."""
    if PATTERNS.reference.match(value) and not _is_password_with_sign(value):
        return True
    return bool(PATTERNS.placeholder.search(value[:200].lower()))


def _is_password_with_sign(value: bytes) -> bool:
    """`!kI7xX0x?Gk`: begins like a reference, but no name follows and no bracket ends it."""
    if value[:1] not in b"!%*?~^#@&" or value[-1:] in b"%}>)]" or value.count(b"%") > 1:
        return False
    body = value.lstrip(b"!%*?~^#@&")
    return len(body) >= 8 and has_digits_and_cases(body) and changes_class(body, 5) and not is_camel_case(body)


def is_word(value: bytes) -> bool:
    return bool(PATTERNS.letters_only.match(value))


def is_code(value: bytes) -> bool:
    """`settings.password`, `self->token`, `get_token(`: where the value comes from, not the value."""
    dotted = PATTERNS.dotted.match(value) and not value[-3:].isdigit() and not _has_random_part(value)
    return bool(dotted) or bool(PATTERNS.call.match(value))


def _has_random_part(value: bytes) -> bool:
    """`jhRP0DJ5drlF….tkA7No.keJI7Qzk…`: parts of a token, unlike any name in a program."""
    return len(value) >= 23 and any(is_random_part(part) for part in PATTERNS.long_part.findall(value))


def is_random_part(part: bytes) -> bool:
    """Digits among letters, and a change of class in every fourth character."""
    return count_digits(part) >= 2 and changes_class(part, 4) and not is_camel_case(part)


def changes_class(value: bytes, per: int) -> bool:
    """Whether case and digits change every so many characters, as in random text but hardly in names."""
    return len(PATTERNS.class_change.findall(value)) * per >= len(value)


def count_digits(value: bytes) -> int:
    return len(value) - len(value.translate(None, _DIGITS))


def is_path(value: bytes) -> bool:
    return bool(PATTERNS.path.match(value)) and not PATTERNS.encoded.match(value)


def is_password(value: bytes) -> bool:
    """A value called a password may be any word but explanatory ones."""
    if len(value) < 3 or value.lower().rstrip(b"?") in WORDS.no_password or is_reference(value):
        return False
    # The option before it has no value: the program prompts for it.
    return not (value.startswith(b"--") and PATTERNS.long_option.match(value))


def is_phrase(value: bytes) -> bool:
    """Several words that form a secret; not those of a sentence about one."""
    words = re.findall(rb"[a-z]+", value.lower())
    return is_password(value) and 2 <= len(words) <= 30 and WORDS.explaining.isdisjoint(words)


def is_mixed_password(value: bytes) -> bool:
    """If only a sentence or place says it is a password: it contains a digit or sign."""
    if len(value) < 5 or not is_password(value) or is_path(value):
        return False
    if PATTERNS.no_password_form.match(value) or is_code(value):
        return False
    if _has_digit_and_letter(value):
        return True
    has_sign = len(value) >= 8 and _has_any(value, _SIGNS)
    return _has_wild_case(value) or (has_sign and bool(PATTERNS.cases_and_sign.search(value)))


def _has_digit_and_letter(value: bytes) -> bool:
    return _has_any(value, _DIGITS) and max(value) > 64


def _has_any(value: bytes, members: bytes) -> bool:
    return len(value.translate(None, members)) < len(value)


def count_groups(value: bytes) -> list[int]:
    """Count digits, capitals and lowercase letters."""
    return [len(value) - len(value.translate(None, group)) for group in _GROUPS]


def has_digits_and_cases(value: bytes) -> bool:
    return all(count_groups(value))


def is_well_mixed(value: bytes) -> bool:
    """Digits, and at least a fifth of each case: camel-case names have fewer capitals."""
    digits, uppers, lowers = count_groups(value)
    return digits >= 2 and min(uppers, lowers) * 5 >= len(value)


def is_cased_password(value: bytes) -> bool:
    """If a sentence barely says so: digits and letters of both cases."""
    return (
        len(value) >= 8 and has_digits_and_cases(value) and is_mixed_password(value) and not PATTERNS.words.match(value)
    )


def is_word_with_digits(value: bytes) -> bool:
    """`gardenpepper726`, `d9lhw7dz3r8si1w`: lowercase and digits, longer than names of things."""
    if len(value) < 10 or not is_mixed_password(value) or count_digits(value) < 2:
        return False
    return (len(value) >= 12 and bool(PATTERNS.lower_then_digits.match(value))) or changes_class(value, 4)


def is_wild_password(value: bytes) -> bool:
    """Digits and letters of both cases that change too often for a name."""
    if not is_cased_password(value) or is_camel_case(value):
        return False
    return changes_class(value, 4) or bool(PATTERNS.six_and_six.match(value))


def _has_wild_case(value: bytes) -> bool:
    """Letters in irregular case, such as `qXaWqPpKaLAu`: neither a word nor camel case."""
    if len(value) < 10 or not value.isalpha() or is_camel_case(value):
        return False
    return changes_class(value, 4)


def is_camel_case(value: bytes) -> bool:
    """`RegNtSetValueKey`, `PKCS7PrivateKeyTypes`: two thirds consist of pronounceable words."""
    if not value.isalnum():
        return False
    spoken = sum(len(word) for word in PATTERNS.camel.findall(value) if is_speakable(word.lower()))
    return 3 * (len(value) - spoken) < len(value)


def looks_random(value: bytes) -> bool:
    """For a token or key: long, no words, letters mixed with digits or irregular case."""
    if len(value) < 8 or PATTERNS.no_token_form.match(value) or not _is_mixed(value):
        return False
    if is_algorithm(value) or is_reference(value) or is_path(value) or is_code(value):
        return False
    return not PATTERNS.words.match(value[:200]) or is_unspeakable(value)


def is_algorithm(value: bytes) -> bool:
    """`AES256-GCM`, `RFC8628`: the name of a method or standard."""
    return len(value) < 60 and all(
        PATTERNS.algorithm.match(part) for part in re.split(rb"[-_/+:.]+", value.rstrip(b"."))
    )


def looks_strong(value: bytes) -> bool:
    """For weak contexts: at least 16 random characters, no hexadecimal hash."""
    return len(value) >= 16 and not PATTERNS.hex.match(value) and not PATTERNS.uuid.match(value) and looks_random(value)


def has_random_tail(token: bytes) -> bool:
    """The body after the prefix is random: digits and letters, no hyphenated words."""
    # With and without the prefix: a prefix of letters would hide that the rest is random.
    for body in (token, re.split(rb"[-_.:/]", token, maxsplit=1)[-1]):
        # Random text has more than one change of class in twelve characters.
        if len(body) >= 12 and not PATTERNS.words.match(body[:200]) and changes_class(body, 12):
            return not is_placeholder(token) and _has_any(body, _DIGITS)
    return False


def is_placeholder(value: bytes) -> bool:
    """`ghp_xxxxxxxxxxxx`, `AKIAIOSFODNN7EXAMPLE`: meant to be replaced. A long random value may contain one by chance."""
    low = value.lower()
    # Fillers such as `xxxx` or `0000` use few characters; the end is checked, past a genuine prefix.
    if len(set(low[-16:])) <= 3:
        return True
    is_marked = any(mark in low for mark in WORDS.placeholder_mark)
    return is_marked or (len(value) < 60 and bool(PATTERNS.filler.search(low)))


def _is_mixed(value: bytes) -> bool:
    # A regular expression is no secret, though it looks random.
    if any(sign in value for sign in WORDS.expression_mark):
        return False
    if len(value) < 20:
        return _has_digit_and_letter(value) or _has_wild_case(value) or is_unspeakable(value)
    return not is_camel_case(value) and _is_mixed_run(value)


def _is_mixed_run(value: bytes) -> bool:
    if changes_class(value, 12) or _has_many_signs(value):
        return True
    return bool(PATTERNS.base32.match(value) or PATTERNS.key_groups.match(value)) or is_unspeakable(value)


def _has_many_signs(value: bytes) -> bool:
    """Digits, letters and at least four different signs that no path or sentence has, as in keys of web frameworks."""
    return _has_any(value, _DIGITS) and len(set(value) & set(b"!@#$%^&*()+=~?")) >= 4


def is_cut_token(token: bytes) -> bool:
    """After a telling prefix: `-` and `_` split a random value into short pieces."""
    body = re.split(rb"[-_.:]", token, maxsplit=1)[-1]
    return has_digits_and_cases(body) and changes_class(body, 5) and has_random_tail(token)


def is_seed_phrase(value: bytes) -> bool:
    # BIP-39 allows only these numbers of words.
    return len(value.split()) in (12, 15, 18, 21, 24) and WORDS.explaining.isdisjoint(value.split())


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
    "seed": is_seed_phrase,
    "login": is_encoded_login,
    "base58": has_base58_checksum,
    "cut": is_cut_token,
    "private": holds_private_key,
    "random": has_random_tail,
    "random-part": is_random_part,
    "stellar": has_stellar_checksum,
    "well-mixed": is_well_mixed,
}
"""The judges and checks that rules name."""
