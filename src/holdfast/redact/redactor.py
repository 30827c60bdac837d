"""Removes secrets from payloads and from text: the one place that everything stored passes through."""

import base64
import binascii
import hashlib
import random
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import msgspec

from holdfast.redact.document import Document, replace_spans
from holdfast.redact.judge import (
    Finding,
    NameRule,
    PlaceRule,
    Span,
    TokenRule,
    is_mixed_password,
    looks_random,
)
from holdfast.redact.scanner import Scanner, join_spans
from holdfast.redact.shapes import make_example, make_filler
from holdfast.redact.views import UNJUDGED
from holdfast.redact.work import Work

_LABEL = re.compile(rb"\[redacted:[a-z0-9-]{1,60}\]")
_skip_json = msgspec.json.Decoder(msgspec.Raw).decode


def labels_in(text: bytes) -> list[tuple[int, int]]:
    """Where labels of an earlier redaction stand."""
    return [match.span() for match in _LABEL.finditer(text)]


def is_json(body: bytes) -> bool:
    """Whether it is a JSON document with at least one string in it."""
    if body.lstrip()[:1] not in (b"{", b"[", b'"'):
        return False
    try:
        _skip_json(body)
        # What is not UTF-8 throughout is cleaned as text.
        body.decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


# A removal can bring together what is found in the next round; the number bounds what a text may cost.
_MOST_ROUNDS = 4
# In candidates: more than the longest sources have, and still bounded for a file that is nothing but names of secrets.
_WORK_OF_FILE = 160_000
# In bytes.
_DECODE_AT_ONCE = 1 << 16
_ECHO_LEAST, _ECHO_MOST, _ECHOED = 8, 4096, 16
"""How long a value must be to be looked for elsewhere, and how many of one text are."""
Clean = Callable[[bytes, Work], tuple[bytes, list[Span]]]


class Redactor:
    """`names`: further names whose values are secret; `patterns`: regular expressions; `keep`: exact texts to leave."""

    def __init__(
        self, names: Iterable[str] = (), patterns: Iterable[str] = (), keep: Iterable[str] = (), enabled: bool = True
    ) -> None:
        self._names = tuple(name for name in names if name)
        self._patterns = _compile_patterns(patterns)
        self._keep = frozenset(text.encode() for text in keep)
        self._enabled = enabled

    def redact(self, body: bytes) -> tuple[bytes, int]:
        """A payload without its secrets, and how many there were. Never raises; twice is the same as once."""
        cleaned, findings = self.redact_body(body)
        return cleaned, len(findings)

    def redact_body(self, body: bytes) -> tuple[bytes, list[Finding]]:
        """JSON is cleaned in its decoded strings and stays JSON; anything else is cleaned as text."""
        look = self._look_at(body) if self._enabled else None
        if not look:
            return body, []
        work = Work(len(body), look=look)
        try:
            return self._in_rounds(body, self._clean_document if is_json(body) else self._clean_text, work)
        # JSON nested too deep for the decoder is still cleaned, as text.
        except RecursionError:
            return self._in_rounds(body, self._clean_text, work)

    def redact_lines(self, body: bytes) -> bytes:
        """A file without its secrets, line for line. Nobody waits for it, so many more candidates are judged."""
        if not self._enabled or not self._look_at(body):
            return body
        clean = self._clean_document if is_json(body) else self._clean_lines
        return self._in_rounds(body, clean, Work(len(body), _WORK_OF_FILE))[0]

    def redact_text(self, text: str) -> tuple[str, list[Finding]]:
        """The same for text that is not JSON, or that shall be read as text."""
        if not self._enabled:
            return text, []
        body, findings = self._in_rounds(text.encode("utf-8", "surrogatepass"), self._clean_text)
        return (body.decode("utf-8", "surrogatepass"), findings) if findings else (text, [])

    def _look_at(self, body: bytes) -> Work | None:
        """A short body is worth reading where it has a candidate; a long one, which always has some, where its decoded
        strings hold a secret. What the look found out is used when it is read."""
        # A user's patterns have no anchors, so nothing can be ruled out beforehand.
        if self._patterns:
            return Work(0)
        first = body.lstrip()[:1]
        if len(body) <= _DECODE_AT_ONCE or first == b'"':
            return Work(0) if self._scanner.may_hold_secret(body) else None
        if (first, body.rstrip()[-1:]) not in ((b"{", b"}"), (b"[", b"]")):
            return self._scanner.look_at(body)
        document = Document(body)
        look = self._scanner.look_at(document.text) if document.is_whole else Work(0)
        if look:
            look.document = document
        return look

    @property
    def _scanner(self) -> Scanner:
        return _cached_scanner(self._names)

    def _in_rounds(self, body: bytes, clean: Clean, work: Work | None = None) -> tuple[bytes, list[Finding]]:
        findings: list[Finding] = []
        work = work or Work(len(body))
        for _ in range(_MOST_ROUNDS):
            body, spans = clean(body, work)
            if not spans:
                break
            findings += [Finding(span[2]) for span in spans]
            if not work.begin_round():
                break
        return body, findings

    def _clean_document(self, body: bytes, work: Work) -> tuple[bytes, list[Span]]:
        known = work.document
        document = known if known and known.body is body else Document(body)
        spans = self._scanner.find(document.text, work=work)
        if self._patterns:
            # A pattern must not match across the border of two strings.
            pieces = document.pieces()
            spans = _merge_spans(spans, self._find_patterns(document.text, pieces))
        spans = self._without_kept(document.text, add_echoes(document.text, spans))
        return (document.without(spans), spans) if spans else (body, [])

    def _clean_text(self, body: bytes, work: Work) -> tuple[bytes, list[Span]]:
        spans = self._find_in_text(body, work)
        return (replace_spans(body, spans), spans) if spans else (body, [])

    def _clean_lines(self, body: bytes, work: Work) -> tuple[bytes, list[Span]]:
        spans = [part for span in self._find_in_text(body, work) for part in _split_span(body, span)]
        return (replace_spans(body, spans), spans) if spans else (body, [])

    def _find_in_text(self, body: bytes, work: Work) -> list[Span]:
        spans = self._scanner.find(body, work=work)
        if self._patterns:
            spans = _merge_spans(spans, self._find_patterns(body, [(0, len(body))]))
        return self._without_kept(body, add_echoes(body, spans))

    def _find_patterns(self, text: bytes, pieces: list[tuple[int, int]]) -> list[Span]:
        # A pattern that matches a label of its own would replace it again in every round.
        done = labels_in(text)
        hits = [
            (start + match.start(), start + match.end(), "pattern")
            for start, end in pieces
            for pattern in self._patterns
            for match in pattern.finditer(text[start:end])
            if match[0]
        ]
        hits.sort()
        return _hits_outside(hits, done)

    def _without_kept(self, text: bytes, spans: list[Span]) -> list[Span]:
        return [span for span in spans if text[span[0] : span[1]] not in self._keep] if self._keep else spans


def add_echoes(text: bytes, spans: list[Span]) -> list[Span]:
    """These spans, and wherever else the same values stand: programs repeat in their own words what was typed."""
    values: dict[bytes, str] = {}
    for start, end, kind in spans:
        value = text[start:end]
        # A short or plain word would be removed wherever it stands in ordinary text.
        if (
            _ECHO_LEAST <= len(value) <= _ECHO_MOST
            and kind != UNJUDGED
            and (is_mixed_password(value) or looks_random(value))
        ):
            values.setdefault(value, kind)
            if len(values) >= _ECHOED:
                break
    # By length: in most texts the values are equally long, and what is kept is joined once.
    kept = {length: _join_kept(text, spans, length - 1) for length in {len(value) for value in values}}
    echoes = [
        (at, at + len(value), kind)
        for value, kind in values.items()
        if value in kept[len(value)]
        for at in _find_places(text, value)
    ]
    return _merge_spans(spans, echoes) if echoes else spans


def _join_kept(text: bytes, spans: list[Span], reach: int) -> bytes:
    """What these spans, which are in order, leave of the text, each piece with so many bytes of the spans beside it."""
    ends = [0, *(max(0, end - reach) for _, end, _ in spans)]
    starts = [*(start + reach for start, _, _ in spans), len(text)]
    return b"\n".join(text[first:last] for first, last in zip(ends, starts, strict=True))


def _find_places(text: bytes, value: bytes) -> Iterator[int]:
    """Where it stands, except within a longer word."""
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        if not text[max(0, at - 1) : at].isalnum() and not text[end : end + 1].isalnum():
            yield at
        at = text.find(value, end)


def _split_span(text: bytes, span: Span) -> Iterator[Span]:
    """Line by line: the ends of lines are no part of a secret."""
    at, end, kind = span
    for line in text[at:end].split(b"\n"):
        if line:
            yield at, at + len(line), kind
        at += len(line) + 1


def _merge_spans(one: list[Span], other: list[Span]) -> list[Span]:
    both = [*one, *other]
    return join_spans(both) if len(both) > 1 else both


def _hits_outside(hits: list[Span], done: list[tuple[int, int]]) -> list[Span]:
    """The hits that touch none of these places; both are in order."""
    untouched: list[Span] = []
    n = 0
    for hit in hits:
        while n < len(done) and done[n][1] <= hit[0]:
            n += 1
        if n == len(done) or done[n][0] >= hit[1]:
            untouched.append(hit)
    return untouched


def _compile_patterns(patterns: Iterable[str]) -> list[re.Pattern[bytes]]:
    """What cannot be compiled is left out: settings report it, redaction must not fail."""
    usable = []
    for pattern in patterns:
        try:
            usable.append(re.compile(pattern.encode()))
        except (re.error, RecursionError, OverflowError):
            continue
    return usable


@cache
def _cached_scanner(names: tuple[str, ...]) -> Scanner:
    return Scanner(names)


# One text with a secret and one without for every rule, made when asked for: no file at rest holds a token.

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
# By judge: the shape of a value that it accepts.
_VALUES = {
    "password": "<w10>7x",
    "mixed": "<w10>7x",
    "cased": "<w10>7xQ",
    "wild": "q7X<d1>kL<d2>mP<d1>zR8",
    "spoken": "q7X<d1>kL<d2>mP<d1>zR8",
    "given": "q7X<d1>kL<d2>mP<d1>zR8",
    "phrase": "<w10>7x",
    "token": "<w36>",
    "strong": "<w36>",
    "any": "<w44>",
    "certain": "<w44>",
    "pin": "<d8>",
    "code": "<l5>-<l5>",
}
_SEED_WORDS = (
    "acid",
    "bench",
    "cargo",
    "dune",
    "echo",
    "fabric",
    "gadget",
    "hockey",
    "icon",
    "jungle",
    "ketchup",
    "lemon",
)
# The version byte of a private key in each network.
_WIF_VERSIONS = {"bitcoin-wif": 0x80, "testnet-wif": 0xEF, "litecoin-key": 0xB0}
_PIECE = re.compile(r"<uuid>|<\w\d+\+?>")


class Example(msgspec.Struct, frozen=True):
    """`text` with `secret` in it; without one it is ordinary text."""

    text: str
    secret: str = ""


def token_examples(rule: TokenRule) -> tuple[Example, Example]:
    """A token of the rule's form, and the same form filled with one repeated character."""
    seed = f"{rule.kind} {rule.shape}"
    make = _MAKERS.get(rule.check)
    token = make(rule, seed) if make else make_example(rule.shape, seed)
    return Example(f"use {token} here", token), Example(f"use {make_filler(rule.shape)} here")


def place_examples(rule: PlaceRule) -> tuple[Example, Example]:
    value = make_value(rule.judge, rule.kind)
    text = rule.positive.replace("{}", value)
    made = _PIECE.sub(lambda match: make_example(match[0], rule.kind), text)
    secret = value if "{}" in rule.positive else made.rpartition(",")[2]
    return Example(made, secret), Example(_PIECE.sub(lambda match: make_example(match[0], rule.kind), rule.negative))


def name_examples(rule: NameRule) -> tuple[Example, Example]:
    stem = rule.stems[0]
    name = (
        f"db_{stem}"
        if rule.part == "word" and stem.isascii()
        else f"api_{stem.lstrip('_')}"
        if rule.part == "key"
        else f"X{stem}"
        if rule.part == "tail"
        else stem
    )
    value = make_value(rule.judge, rule.kind + stem)
    return Example(f"{name}: {value}", value), Example(f"{name}: ${{VALUE}}")


def make_value(judge: str, seed: str) -> str:
    """A value of the sort that this judge accepts."""
    if judge == "seed":
        return " ".join(_SEED_WORDS)
    shape = {
        "dotnet-machine-key": "<H64>",
        "ntlm-hash": "<h32>:<h32>",
        "totp-secret": "<232>",
        "scanner-login": "<h40>",
    }.get(seed)
    return make_example(shape or _VALUES[judge], seed)


def _wallet_key(rule: TokenRule, seed: str) -> str:
    """A key whose checksum is right and that begins as the rule's form does."""
    chance = random.Random(seed)  # noqa: S311  (an example is no secret)
    starts = tuple(re.findall(r"[A-Za-z0-9]{2}", rule.shape.partition(")")[0])) if "(" in rule.shape[:1] else ()
    # The first letters follow from the random bytes, so keys are made until one begins as the rule asks.
    while True:
        raw = bytes([_WIF_VERSIONS[rule.kind], *chance.randbytes(32), *([1] if "<k50>" in rule.shape else [])])
        key = _encode_base58(raw + hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4])
        if not starts or key.startswith(starts):
            return key


def _stellar_seed(_rule: TokenRule, seed: str) -> str:
    raw = bytes([0x90, *random.Random(seed).randbytes(32)])  # noqa: S311  (an example is no secret)
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode()


_MAKERS: dict[str, Callable[[TokenRule, str], str]] = {"base58": _wallet_key, "stellar": _stellar_seed}


def _encode_base58(raw: bytes) -> str:
    number, text = int.from_bytes(raw, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text
