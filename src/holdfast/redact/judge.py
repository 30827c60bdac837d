"""Is this text a secret, or a word, a path, a type, a variable, a placeholder?"""

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Callable

_REFERENCE = re.compile(
    rb"[{<%*\[(#@!&~?^]+[{<%*\[(#@A-Za-z_]|\$(?![\d$]|[a-z0-9]+\$)|[^A-Za-z0-9]*$|(.)\1*$|redacted|env[.:\[]"
    rb"|(?:process|import\.meta)\.env|os\.(?:environ|getenv)|(?:arn|op|vault|ssm|file|env|secret|projects|awssm|keyring|sops)[:/]|ENC\[|AQICA"
)
_PLACEHOLDER = re.compile(
    rb"your|example|placeholder|change.?me|x{4}|\.{3}|redacted|\*{3}|dummy|<|\$\{|\{\{|\$\(|insert.?|replace.?|todo|fixme|"
    rb"fake|sample|abc123|123456789|_here|xxx-|foobar|\xe2\x80\xa6"
)
_PLAIN = re.compile(rb"[A-Za-z_]+$")
_DOTTED = re.compile(rb"[A-Za-z_$@][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+(?:\(\)?)?$")
_WORD = rb"(?:[A-Z]?[a-z]+|[A-Z]+|\d{1,4}(?!\d))?"
_WORDS = re.compile(_WORD + rb"(?:[-_.:/ ]{1,4}" + _WORD + rb"){0,40}\d{0,3}$")
_PATH = re.compile(rb"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]{1,12}://|[\w.-]+/[\w./-]+\.[a-z]{1,5}$")
_BASE32 = re.compile(rb"(?=[A-Z]*[2-7][A-Z2-7]*[A-Z])[A-Z2-7]{20,}=*$")
_ENCODED = re.compile(rb"[A-Za-z0-9+/]{40,}={1,2}$")
_FLIP = re.compile(rb"[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]|[A-Z]{2}[a-z]")
_CAMEL = re.compile(rb"^[a-z]{3,}(?=[A-Z])|[A-Z](?=[a-z]{0,3}[aeiou])[a-z]{2,}")
_NUMBERED_WORD = re.compile(rb"[A-Za-z]{2,10}-\d{1,4}$")
_HEX = re.compile(rb"[0-9a-fA-F]+$")
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)
_DATE = re.compile(rb"\d{2,4}[-/.:]\d{1,2}([-/.:T]|$)")
_VERSION = re.compile(rb"[v^~]?\d+(?:\.\d+){1,3}(?:[-+.]\w+)*$")
_NUMBER = re.compile(rb"-?\d[\d._eE+-]*$")
_CALL = re.compile(rb"[\w.$:]+[(\[]")
_SIGNED = re.compile(rb"[a-z][^\n]*[A-Z][^\n]*[!@#$%^&*?+]|[A-Z][^\n]*[a-z][^\n]*[!@#$%^&*?+]")
NO_PASSWORDS = frozenset(
    b"password passwd passphrase passwort pwd secret token none null nil undefined true false yes no on off str string"
    b" bytes text int integer number bool boolean any object char varchar unknown void optional required hidden masked"
    b" pass pw empty missing invalid incorrect wrong prompt ask stdin default value redacted secretstr input reset"
    b" username user admin1 key keys file path env url type name field hash new old current confirm login auth"
    b" public private virtual interface struct class forgot change changed expired strength policy manager length rule"
    b" rules protected authentication hunter".split()
) - {b"admin1", b"hunter"}
_EXPLAINING = frozenset(
    b"a an the your my our their this that these is are be was must should can may will not no of to for in on with and or"
    b" if please enter type choose pick set use used give given needed need required passphrase password key keys you"
    b" from by has have does when while it its at as which here".split()
)


def is_reference(value: bytes) -> bool:
    """It stands for a value kept elsewhere (`${PASSWORD}`, `<password>`, `***`), or says that there is none."""
    return bool(_REFERENCE.match(value)) or bool(_PLACEHOLDER.search(value[:200].lower()))


def is_word(value: bytes) -> bool:
    return bool(_PLAIN.match(value))


def is_code(value: bytes) -> bool:
    """`settings.password`, `self->token`, `get_token(`: where the value comes from, not the value."""
    return bool(_DOTTED.match(value)) or bool(_CALL.match(value))


def is_path(value: bytes) -> bool:
    return bool(_PATH.match(value)) and not _ENCODED.match(value)


def is_password(value: bytes) -> bool:
    """For what is called a password little is asked: it may be any word but those that explain."""
    return len(value) >= 3 and value.lower().rstrip(b"?") not in NO_PASSWORDS and not is_reference(value)


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
    if any(48 <= c <= 57 for c in value) and any(c > 64 for c in value):
        return True
    return _has_wild_case(value) or (len(value) >= 8 and bool(_SIGNED.search(value)))


def is_cased_password(value: bytes) -> bool:
    """Where a sentence hardly says that it is one: digits and letters of both cases."""
    groups = (any(48 <= c <= 57 for c in value), any(97 <= c <= 122 for c in value), any(65 <= c <= 90 for c in value))
    return len(value) >= 8 and all(groups) and is_mixed_password(value) and not _WORDS.match(value)


def _has_wild_case(value: bytes) -> bool:
    """Letters in wild case, as `qXaWqPpKaLAu`: neither a word nor camel case."""
    if len(value) < 10 or not value.isalpha() or _is_camel_case(value):
        return False
    return len(_FLIP.findall(value)) * 4 >= len(value)


def _is_camel_case(value: bytes) -> bool:
    """`RegNtSetValueKey`, `PKCS7PrivateKeyTypes`: two thirds of it are words that can be spoken."""
    return value.isalnum() and 3 * len(_CAMEL.sub(b"", value)) < len(value)


def looks_random(value: bytes) -> bool:
    """For a token or a key: long, no words, letters mixed with digits or wildly mixed case."""
    if len(value) < 8 or _NUMBER.match(value) or not _is_mixed(value):
        return False
    if _DATE.match(value) or _VERSION.match(value):
        return False
    return not (is_reference(value) or is_path(value) or is_code(value) or _WORDS.match(value[:200]))


def looks_strong(value: bytes) -> bool:
    """For places that say little: at least 16 characters, random, no hash in hexadecimal."""
    return len(value) >= 16 and looks_random(value) and not _HEX.match(value) and not _UUID.match(value)


def has_random_tail(token: bytes) -> bool:
    """The body after the prefix is random: digits and letters, no words joined by hyphens."""
    for body in (token, re.split(rb"[-_.:/]", token, maxsplit=1)[-1]):
        if len(body) >= 12 and not _WORDS.match(body[:200]) and len(_FLIP.findall(body)) * 12 >= len(body):
            return not is_placeholder(token) and any(48 <= c <= 57 for c in body)
    return False


def is_placeholder(value: bytes) -> bool:
    """`ghp_xxxxxxxxxxxx`, `AKIAIOSFODNN7EXAMPLE`: written to be replaced. A long random value may hold one by chance."""
    low = value.lower()
    if len(set(low[-16:])) <= 3:
        return True
    return any(word in low for word in _MARKS) or (len(value) < 60 and bool(re.search(rb"x{6}|\*{3}|\.{3}|0{10}", low)))


_MARKS = (
    b"example",
    b"your_",
    b"your-",
    b"placeholder",
    b"redacted",
    b"changeme",
    b"_here",
    b"xxxxxxxx",
    b"1234567890abcdef",
)


def _is_mixed(value: bytes) -> bool:
    if b"]{" in value or b"(?:" in value or b"[^" in value or b"\\d" in value:
        return False  # a regular expression
    if len(value) < 20:
        return (any(48 <= c <= 57 for c in value) and any(c > 64 for c in value)) or _has_wild_case(value)
    if _is_camel_case(value):
        return False
    return len(_FLIP.findall(value)) * 12 >= len(value) or _has_many_signs(value) or bool(_BASE32.match(value))


def _has_many_signs(value: bytes) -> bool:
    """Digits, letters and at least four different signs that no path or sentence has, as keys of web frameworks."""
    return any(48 <= c <= 57 for c in value) and len(set(value) & set(b"!@#$%^&*()+=~?")) >= 4


JUDGES: dict[str, Callable[[bytes], bool]] = {
    "password": is_password,
    "mixed": is_mixed_password,
    "cased": is_cased_password,
    "phrase": is_phrase,
    "token": looks_random,
    "strong": looks_strong,
    "any": lambda value: bool(value) and not is_reference(value),
    "certain": bool,
    "seed": lambda value: len(value.split()) in (12, 15, 18, 21, 24) and _EXPLAINING.isdisjoint(value.split()),
}


# Further checks of a token: checksums where the issuer has one, and that a body is random.

_BASE58 = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE62 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def has_base58_checksum(token: bytes) -> bool:
    """The last four bytes are the double SHA-256 of what stands before them."""
    number = 0
    for letter in token:
        digit = _BASE58.find(letter)
        if digit < 0:
            return False
        number = number * 58 + digit
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return len(raw) > 4 and hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def has_crc32_suffix(token: bytes) -> bool:
    """GitHub and npm: the last six characters are the CRC-32 of the body in base 62."""
    body = token.rpartition(b"_")[2]
    return len(body) > 6 and encode_base62(zlib.crc32(body[:-6]), 6) == body[-6:]


def encode_base62(number: int, width: int) -> bytes:
    digits = bytearray()
    while number:
        number, rest = divmod(number, 62)
        digits.append(_BASE62[rest])
    return bytes(reversed(digits)).rjust(width, b"0")


def has_stellar_checksum(token: bytes) -> bool:
    """Base32; the last two bytes are the CRC-16 (XModem) of the rest, the lower one first."""
    try:
        raw = base64.b32decode(token)
    except ValueError:
        return False
    checksum = binascii.crc_hqx(raw[:-2], 0)
    return raw[0] == 0x90 and raw[-2:] == checksum.to_bytes(2, "little")


CHECKS: dict[str, Callable[[bytes], bool]] = {
    "base58": has_base58_checksum,
    "random": has_random_tail,
    "stellar": has_stellar_checksum,
}
