"""Secrets that name themselves: a known prefix and enough characters after it, wherever they stand."""

import re
from collections.abc import Iterator

from holdfast.core.redact.judge import is_reference, looks_random
from holdfast.core.redact.rule import Rule, Span, aligned, label

# A word begins here: also right after `\n` and the like, as line breaks are written inside JSON.
_START = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))"


def _prefix(what: str, pattern: bytes, *literals: bytes, random: bool = False) -> Rule:
    """The pattern begins with a literal, which the regex engine looks for quickly; the boundary comes after it."""
    compiled, replacement = re.compile(pattern), label(what)

    def search(body: bytes, _low: bytes) -> Iterator[Span]:
        for found in compiled.finditer(body):
            if not random or looks_random(found[0].partition(b"-")[2] or found[0]):
                yield aligned(body, found.start()), found.end(), replacement

    return Rule(literals, search)


def _at(literal: bytes, rest: bytes) -> bytes:
    """`literal` at the start of a word, then `rest`. The boundary is looked for behind, so that the literal leads."""
    escaped, width = re.escape(literal), len(literal)
    free = rb"(?<![A-Za-z0-9].{%d})" % width
    after_break = rb"(?<=\\[nrtbf].{%d})" % width
    return escaped + rb"(?:" + free + rb"|" + after_break + rb")" + rest


def _url_password(body: bytes, _low: bytes) -> Iterator[Span]:
    if b"@" not in body:
        return
    for found in _URL.finditer(body):
        if not is_reference(found[1]):
            yield found.start(1), found.end(1), _URL_LABEL


_URL = re.compile(rb"://[^\s/?#@:\"'\\<>]{0,100}:([^\s/@\"'\\<>]{1,200})@")
_URL_LABEL = label("url-password")
_PEM = (
    rb"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:[A-Za-z0-9+/=\s:,.()']|-(?!-)|\\[\\\"nrt/])*+"
    rb"(?:-----END [A-Z0-9 ]{1,40}-----)?"
)

PREFIXES = (
    _prefix("key", _at(b"sk-", rb"[A-Za-z0-9_-]{20,}+"), b"sk-", random=True),
    _prefix("stripe-key", _at(b"sk_", rb"(?:live|test)_[A-Za-z0-9]{10,}+"), b"sk_live_", b"sk_test_"),
    _prefix("stripe-key", _at(b"rk_", rb"(?:live|test)_[A-Za-z0-9]{10,}+"), b"rk_live_", b"rk_test_"),
    _prefix("groq-key", _at(b"gsk_", rb"[A-Za-z0-9]{20,}+"), b"gsk_"),
    _prefix("github-token", rb"gh(?=[pousr]_)" + _at(b"gh", b"")[2:] + rb"[pousr]_[A-Za-z0-9]{20,}+",
            b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
    _prefix("github-token", _at(b"github_pat_", rb"[A-Za-z0-9_]{20,}+"), b"github_pat_"),
    _prefix("slack-token", _at(b"xox", rb"[abceoprs]-[A-Za-z0-9-]{10,}+"), b"xox"),
    _prefix("slack-token", _at(b"xapp-", rb"[A-Za-z0-9-]{20,}+"), b"xapp-"),
    _prefix("slack-webhook", rb"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}+",
            b"hooks.slack.com"),
    _prefix("discord-webhook", rb"api/webhooks/\d{5,25}/[A-Za-z0-9_-]{20,}+", b"api/webhooks"),
    _prefix("aws-key-id", _at(b"AKIA", rb"[A-Z0-9]{16}(?![A-Za-z0-9])"), b"AKIA"),
    _prefix("aws-key-id", _at(b"ASIA", rb"[A-Z0-9]{16}(?![A-Za-z0-9])"), b"ASIA"),
    _prefix("google-key", _at(b"AIza", rb"[A-Za-z0-9_-]{35}"), b"AIza"),
    _prefix("gitlab-token", _at(b"glpat-", rb"[A-Za-z0-9_-]{20,}+"), b"glpat-"),
    _prefix("npm-token", _at(b"npm_", rb"[A-Za-z0-9]{30,}+"), b"npm_"),
    _prefix("pypi-token", _at(b"pypi-", rb"[A-Za-z0-9_-]{40,}+"), b"pypi-"),
    _prefix("huggingface-token", _at(b"hf_", rb"[A-Za-z0-9]{30,}+"), b"hf_"),
    _prefix("sendgrid-key", _at(b"SG.", rb"[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,}+"), b"SG."),
    _prefix("jwt", _at(b"eyJ", rb"[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+(?:\.[A-Za-z0-9_-]*+)?"), b"eyJ"),
    _prefix("age-key", rb"AGE-SECRET-KEY-1[A-Z0-9]{40,}+", b"AGE-SECRET-KEY-1"),
    _prefix("private-key", _PEM, b"-----BEGIN"),
    Rule((b"://",), _url_password),
)  # fmt: skip
