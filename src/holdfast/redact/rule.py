"""What a rule is, and what a scan reports."""

import msgspec


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
