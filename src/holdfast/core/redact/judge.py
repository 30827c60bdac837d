"""Is this text a secret, or a word, a path, a type, a variable, a placeholder?"""

import re

_REFERENCE = re.compile(rb"[{<%*\[(#@]|\$(?!\d)|\\[nrt\"]|[^A-Za-z0-9]*$|(.)\1*$|redacted|env[.:\[]")
_PLACEHOLDER = re.compile(rb"your|example|placeholder|change.?me|x{4}|\.{3}|redacted|\*{3}|dummy|<|\$\{|\{\{")
_PLAIN = re.compile(rb"[A-Za-z_]+$")
_DOTTED = re.compile(rb"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+$")
_WORD = rb"(?:[A-Z]?[a-z]++|[A-Z]++|\d{1,4}+(?!\d))?"
_WORDS = re.compile(_WORD + rb"(?:[-_.:/ ]++" + _WORD + rb")*\d{0,3}+$")
_PATH = re.compile(rb"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]{1,12}://")
_FLIP = re.compile(rb"[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]|[A-Z]{2}[a-z]")
_NO_PASSWORDS = frozenset(
    b"password passwd passphrase pwd secret token none null nil undefined true false yes no on off str string bytes"
    b" text int integer number bool boolean any object char varchar unknown void optional required hidden masked"
    b" pass pw empty missing invalid incorrect wrong prompt ask stdin default value redacted secretstr input".split()
)

_EXPLAINING = frozenset(
    b"a an the your my our their this that these is are be was must should can may will not no of to for in on with and or"
    b" if please enter type choose pick set use used give given needed need required passphrase password key keys".split()
)


def is_reference(value: bytes) -> bool:
    """It stands for a value kept elsewhere (`${PASSWORD}`, `<password>`, `***`), or says that there is none."""
    return bool(_REFERENCE.match(value)) or bool(_PLACEHOLDER.search(value.lower()))


def is_word(value: bytes) -> bool:
    return bool(_PLAIN.match(value))


def is_code(value: bytes) -> bool:
    """`settings.password`, `self->token`: a place where the value is, not the value."""
    return bool(_DOTTED.match(value))


def is_password(value: bytes) -> bool:
    """For what is called a password little is asked: it may be any word but those that explain."""
    return len(value) >= 3 and value.lower() not in _NO_PASSWORDS and not is_reference(value)


def is_phrase(value: bytes) -> bool:
    """Several words that are a secret together: those of a sentence about one are not."""
    return is_password(value) and _EXPLAINING.isdisjoint(re.findall(rb"[a-z]+", value.lower()))


def is_path(value: bytes) -> bool:
    return bool(_PATH.match(value))


def looks_random(value: bytes) -> bool:
    """For a token or a key: long, no words, letters mixed with digits or wildly mixed case."""
    if len(value) < 8 or value.isdigit() or not _mixed(value):
        return False
    return not (is_reference(value) or is_path(value) or is_code(value) or _WORDS.match(value))


def _mixed(value: bytes) -> bool:
    if len(value) < 20:
        return any(48 <= c <= 57 for c in value) and any(c > 64 for c in value)
    return len(_FLIP.findall(value)) * 12 >= len(value)
