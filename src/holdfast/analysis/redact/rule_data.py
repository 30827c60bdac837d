"""Loads the compiled rules, or compiles the TOML files if those are missing or stale."""

import re
from pathlib import Path
from typing import Any

import msgspec

_SOURCES, _COMPILED = Path(__file__).with_name("rules"), Path(__file__).with_name("rules.json")


class TokenRule(msgspec.Struct, frozen=True):
    """A secret recognisable by its own form, anywhere."""

    kind: str
    pattern: str
    head: int = 0
    """How many characters may precede the anchor."""
    check: str = ""
    """A name in `judge.JUDGES`: a checksum, or that the rest is random."""
    left: str = ""
    """What may not precede it. `strict`: letter, digit, `_`, `-`, `.`, `/`; `private`: `pk`."""
    begins: bool = False
    """Whether anything may precede it, or the search has checked that."""


class PlaceRule(msgspec.Struct, frozen=True):
    """A secret recognisable only by its context. The pattern is matched where an anchor begins."""

    kind: str
    pattern: str
    """Its group `secret` is removed."""
    judge: str
    back: int = 0
    """How many bytes before the anchor the pattern may begin."""
    needs: str = ""
    """Must follow within 400 bytes: a quick test before the pattern."""


class NameRule(msgspec.Struct, frozen=True):
    """Names whose values are secret, in any notation."""

    kind: str
    judge: str
    """`password`: any value but a reference or an explanatory word; `token`: only what looks random."""
    spoken: bool = True
    """Whether a sentence may give the value (`the password is …`)."""
    part: str = ""
    """`word`: the stem must be a whole part of the name; `key`: what precedes it decides."""
    stem_width: int = 0
    """How many characters at the end of a stem are the name's own word."""


class RunRule(msgspec.Struct, frozen=True):
    """A long run of letters and digits in the form of its issuer."""

    kind: str
    judge: str
    sizes: list[tuple[int, int]]
    sign: str = ""
    before: str = ""
    reach: int = 1
    form: str = ""
    after: str = ""
    whole: bool = False

    def has_size(self, size: int) -> bool:
        return any(least <= size <= most for least, most in self.sizes)


class PackedAnchors(msgspec.Struct, frozen=True):
    """The anchors of all rules in the form of the native search."""

    texts: bytes
    entries: bytes
    classes: bytes
    guard_words: list[bytes]
    """The words that guards compare with."""
    no_guard_words: list[bytes]


class Limits(msgspec.Struct, frozen=True):
    """Sizes shared by the native search and Python."""

    entry: str
    marks: dict[str, int]
    guards: dict[str, int]
    hash_bits: int
    bucket_bits: int
    seen_bits: int
    second_bits: int
    before: int
    after: int
    row_least: int
    row_before: int
    far: int


class Rules(msgspec.Struct, frozen=True):
    fingerprint: str
    tokens: list[TokenRule]
    places: list[PlaceRule]
    blocks: list[str]
    """The finder of each block rule."""
    names: list[NameRule]
    runs: list[RunRule]
    notations: list[str]
    patterns: dict[str, str]
    words: dict[str, list[str]]
    entities: dict[str, str]
    rare_pairs: dict[str, str]
    limits: Limits
    search: PackedAnchors


def load_rules() -> Rules:
    try:
        compiled = msgspec.json.decode(_COMPILED.read_bytes(), type=Rules)
    except (OSError, msgspec.DecodeError):
        return _compile_rules()
    if _is_older() and compiled.fingerprint != _compiler().fingerprint(_SOURCES):
        return _compile_rules()
    return compiled


def _is_older() -> bool:
    """Whether a source is newer than the compiled rules; an installer writes files in any order."""
    built = _COMPILED.stat().st_mtime_ns
    sources = (*_SOURCES.glob("*.toml"), Path(__file__).with_name("rule_compiler.py"))
    return any(file.stat().st_mtime_ns > built for file in sources)


def _compile_rules() -> Rules:
    return msgspec.json.decode(msgspec.json.encode(_compiler().compile_rules(_SOURCES)), type=Rules)


def _compiler() -> Any:
    # Imported here: a process with compiled rules doesn't need it.
    from holdfast.analysis.redact import rule_compiler

    return rule_compiler


class _Patterns:
    """The rules' patterns by name, compiled on first use."""

    def __getattr__(self, name: str) -> re.Pattern[bytes]:
        try:
            pattern = re.compile(RULES.patterns[name].encode())
        except KeyError:
            raise AttributeError(name) from None
        setattr(self, name, pattern)
        return pattern


class _Words:
    """The rules' word lists by name."""

    def __getattr__(self, name: str) -> frozenset[bytes]:
        try:
            words = frozenset(word.encode() for word in RULES.words[name])
        except KeyError:
            raise AttributeError(name) from None
        setattr(self, name, words)
        return words


RULES = load_rules()
PATTERNS = _Patterns()
WORDS = _Words()
