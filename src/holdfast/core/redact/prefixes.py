"""Secrets that name themselves: a known prefix and enough characters after it, wherever they stand."""

import re
from collections.abc import Sequence

from holdfast.core.redact.judge import is_password, looks_random
from holdfast.core.redact.logins import USER
from holdfast.core.redact.rule import Handle, Match, Rule, Span, aligned, begins_word, label, run, together

Kind = tuple[str, bytes, bytes]
"""(what it is, what stands before the letter that is looked for, what comes after it)"""


def _around(letter: bytes, last: bytes, kinds: Sequence[Kind], gate: bytes = b"") -> Rule:
    """`last`: what all of them have right before the letter; one look at it spares most of the others."""
    choices = (b"(?P<k%d>(?<=%b%b)%b)" % (n, before, letter, after) for n, (_, before, after) in enumerate(kinds))
    pattern = re.compile(letter + b"(?<=" + last + letter + b")(?:" + b"|".join(choices) + b")")
    found = [(len(re.sub(rb"\[.*?\]", b"x", before)), what, label(what)) for what, before, _ in kinds]

    def handle(body: bytes, _low: bytes, match: Match) -> Span | None:
        width, what, replacement = next(one for n, one in enumerate(found) if match[f"k{n}"] is not None)
        start, end = match.start() - width, match.end()
        if not begins_word(body, start) or (what == "key" and not looks_random(body[start + 3 : end])):
            return None
        return aligned(body, start), end, replacement

    return Rule(pattern, handle, gate=gate)


def _whole(what: str) -> Handle:
    replacement = label(what)

    def handle(_body: bytes, _low: bytes, match: Match) -> Span | None:
        return match.start(), match.end(), replacement

    return handle


def _jwt() -> Handle:
    """Found by its second part; the first one, too, begins with `eyJ`: both are JSON objects in base64."""
    replacement = label("jwt")

    def handle(body: bytes, _low: bytes, match: Match) -> Span | None:
        dot = match.start() - 3
        first = body[max(0, dot - _LONGEST_HEAD) : dot]
        start = aligned(body, dot - len(first) + len(first.rstrip(_TOKEN_BYTES)))
        return (start, match.end(), replacement) if body.startswith(b"eyJ", start) else None

    return handle


def _url_password() -> Handle:
    replacement = label("url-password")

    def handle(_body: bytes, _low: bytes, match: Match) -> Span | None:
        return None if not is_password(match[1]) else (*match.span(1), replacement)

    return handle


_LONGEST_HEAD = 2048
_TOKEN_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_ALNUM = rb"[A-Za-z0-9]"
_TOKEN = rb"[A-Za-z0-9_-]"
_URL = re.compile(rb"://[^\s/?#@:\"'\\<>]{0,100}:([^\s/@\"'\\<>]{1,200})@")
_PEM = (
    rb"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    + run(rb"[A-Za-z0-9+/=\s:,.()']", rb"-(?!-)|\\[\\\"nrt/]")
    + rb"(?:-----END [A-Z0-9 ]{1,40}-----)?"
)

PREFIXES = (
    _around(
        b"_",
        rb"[hsrpu][pousrbkmf]",
        [
            ("github-token", b"gh[pousr]", _ALNUM + rb"{20,}+"),
            ("github-token", b"github", rb"pat_[A-Za-z0-9_]{20,}+"),
            ("stripe-key", b"[sr]k", rb"(?:live|test)_[A-Za-z0-9]{10,}+"),
            ("groq-key", b"gsk", _ALNUM + rb"{20,}+"),
            ("npm-token", b"npm", _ALNUM + rb"{30,}+"),
            ("huggingface-token", b"hf", _ALNUM + rb"{30,}+"),
        ],
    ),
    together(
        b"-",
        _around(
            b"-",
            rb"[sxpaG][a-eikoprstE]",
            [
                ("key", b"sk", _TOKEN + rb"{20,}+"),
                ("slack-token", b"xox[abceoprs]", rb"[A-Za-z0-9-]{10,}+"),
                ("slack-token", b"xapp", rb"[A-Za-z0-9-]{20,}+"),
                ("gitlab-token", b"glpat", _TOKEN + rb"{20,}+"),
                ("pypi-token", b"pypi", _TOKEN + rb"{40,}+"),
                ("age-key", b"AGE", rb"SECRET-KEY-1[A-Z0-9]{40,}+"),
            ],
        ),
        USER,
    ),
    _around(
        b"I",
        rb"[AKS]",
        [
            ("aws-key-id", b"AK", rb"A[A-Z0-9]{16}(?![A-Za-z0-9])"),
            ("aws-key-id", b"AS", rb"A[A-Z0-9]{16}(?![A-Za-z0-9])"),
            ("google-key", b"A", rb"za[A-Za-z0-9_-]{35}"),
        ],
        gate=b"I",
    ),
    Rule(re.compile(rb"J(?<=\.eyJ)[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){0,3}"), _jwt(), gate=b"J"),
    _around(b"G", b"S", [("sendgrid-key", b"S", rb"\." + _TOKEN + rb"{16,64}+\." + _TOKEN + rb"{16,}+")], gate=b"G"),
    Rule(re.compile(_PEM), _whole("private-key"), gate=b"V"),  # as in PRIVATE
    Rule(_URL, _url_password(), gate=b"@"),
)
