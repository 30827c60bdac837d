"""Removes secrets from payloads and from text: the one place that everything stored passes through."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import msgspec

from holdfast.redact.assignment import KEY_END, STRING_END
from holdfast.redact.rule import Finding, Span, make_label
from holdfast.redact.scanner import Scanner, join_spans

# The strings of a JSON document, decoded, as one text that can be scanned; and the document with some of it removed.

_TOKEN = re.compile(rb"\"([^\"\\]*(?:\\.[^\"\\]*)*)\"(\s*:)?|-?\d[\d.eE+-]*", re.DOTALL)
_LABEL = re.compile(rb"\[redacted:[a-z0-9-]{1,60}\]")
_decode_string = msgspec.json.Decoder(str).decode


class Document:
    """`text` holds every key, string and number in order; keys end with `KEY_END`, the others with `STRING_END`."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._places: list[tuple[int, int]] = []
        self.starts: list[int] = []
        parts: list[bytes] = []
        size = 0
        for match in _TOKEN.finditer(body):
            decoded = _decoded(match)
            self._places.append(match.span() if match[1] is None else (match.start(), match.end(1) + 1))
            self.starts.append(size)
            parts += (decoded, KEY_END if match[2] else STRING_END)
            size += len(decoded) + 1
        self.text = b"".join(parts)

    def pieces(self) -> list[tuple[int, int]]:
        """Where each string or number lies in `text`."""
        return [(start, end - 1) for start, end in zip(self.starts, [*self.starts[1:], len(self.text)], strict=True)]

    def without(self, spans: list[Span]) -> bytes:
        """The document with these spans of `text` replaced by labels; everything else as it was."""
        cuts: dict[int, list[Span]] = {}
        pieces = self.pieces()
        for span in spans:
            for number in self._touched(span, pieces):
                cuts.setdefault(number, []).append(span)
        parts: list[bytes] = []
        at = 0
        for number in sorted(cuts):
            start, end = self._places[number]
            parts += (self._body[at:start], self._rewritten(pieces[number], cuts[number]))
            at = end
        return b"".join((*parts, self._body[at:]))

    def _touched(self, span: Span, pieces: list[tuple[int, int]]) -> range:
        first = bisect_right(self.starts, span[0]) - 1
        last = first
        while last + 1 < len(pieces) and pieces[last + 1][0] < span[1]:
            last += 1
        return range(first, last + 1)

    def _rewritten(self, piece: tuple[int, int], spans: list[Span]) -> bytes:
        start, end = piece
        inner = [(max(span[0], start) - start, min(span[1], end) - start, span[2]) for span in spans]
        text = replace_spans(self.text[start:end], [span for span in inner if span[0] < span[1]])
        return msgspec.json.encode(text.decode("utf-8", "replace"))


def _decoded(match: re.Match[bytes]) -> bytes:
    if match[1] is None:
        return match[0]
    if b"\\" not in match[1]:
        return match[1]
    try:
        return _decode_string(b'"' + match[1] + b'"').encode("utf-8", "replace")
    except (msgspec.DecodeError, UnicodeError):
        return match[1]


def replace_spans(text: bytes, spans: list[Span]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for start, end, kind in spans:
        parts += (text[at:start], make_label(kind))
        at = end
    return b"".join((*parts, text[at:]))


def labels_in(text: bytes) -> list[tuple[int, int]]:
    """Where labels of an earlier redaction stand."""
    return [match.span() for match in _LABEL.finditer(text)]


def is_json(body: bytes) -> bool:
    """Whether it is a JSON document with at least one string in it."""
    if body.lstrip()[:1] not in (b"{", b"[", b'"'):
        return False
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


_MOST_ROUNDS = 4
Clean = Callable[[bytes], tuple[bytes, list[Span]]]


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
        if not self._enabled or not self._may_hold_secret(body):
            return body, []
        try:
            return self._in_rounds(body, self._clean_document if is_json(body) else self._clean_text)
        except RecursionError:
            return self._in_rounds(body, self._clean_text)

    def redact_text(self, text: str) -> tuple[str, list[Finding]]:
        """The same for text that is not JSON, or that shall be read as text."""
        if not self._enabled:
            return text, []
        body, findings = self._in_rounds(text.encode("utf-8", "surrogatepass"), self._clean_text)
        return (body.decode("utf-8", "surrogatepass"), findings) if findings else (text, [])

    def redact_payload(self, payload: Any) -> tuple[Any, list[Finding]]:
        """The same for a decoded payload: every string and every key of it."""
        body, findings = self.redact_body(msgspec.json.encode(payload))
        return (msgspec.json.decode(body), findings) if findings else (payload, [])

    def _may_hold_secret(self, body: bytes) -> bool:
        return bool(self._patterns) or bool(self._scanner.find(body, raw=True))

    @property
    def _scanner(self) -> Scanner:
        return _scanner(self._names)

    def _in_rounds(self, body: bytes, clean: Clean) -> tuple[bytes, list[Finding]]:
        findings: list[Finding] = []
        for _ in range(_MOST_ROUNDS):
            body, spans = clean(body)
            if not spans:
                break
            findings += [Finding(span[2]) for span in spans]
        return body, findings

    def _clean_document(self, body: bytes) -> tuple[bytes, list[Span]]:
        document = Document(body)
        spans = self._find(document.text)
        if self._patterns:
            pieces = document.pieces()
            spans = _merge(spans, self._find_patterns(document.text, pieces))
        spans = self._without_kept(document.text, spans)
        return (document.without(spans), spans) if spans else (body, [])

    def _clean_text(self, body: bytes) -> tuple[bytes, list[Span]]:
        spans = self._find(body)
        if self._patterns:
            spans = _merge(spans, self._find_patterns(body, [(0, len(body))]))
        spans = self._without_kept(body, spans)
        return (replace_spans(body, spans), spans) if spans else (body, [])

    def _find(self, text: bytes) -> list[Span]:
        return self._scanner.find(text)

    def _find_patterns(self, text: bytes, pieces: list[tuple[int, int]]) -> list[Span]:
        done = labels_in(text)
        hits = [
            (start + match.start(), start + match.end(), "pattern")
            for start, end in pieces
            for pattern in self._patterns
            for match in pattern.finditer(text[start:end])
            if match[0]
        ]
        hits.sort()
        return _outside(hits, done)

    def _without_kept(self, text: bytes, spans: list[Span]) -> list[Span]:
        return [span for span in spans if text[span[0] : span[1]] not in self._keep] if self._keep else spans


def _merge(one: list[Span], other: list[Span]) -> list[Span]:
    both = [*one, *other]
    return join_spans(both) if len(both) > 1 else both


def _outside(hits: list[Span], done: list[tuple[int, int]]) -> list[Span]:
    """The hits that touch none of these places; both are in order."""
    kept: list[Span] = []
    n = 0
    for hit in hits:
        while n < len(done) and done[n][1] <= hit[0]:
            n += 1
        if n == len(done) or done[n][0] >= hit[1]:
            kept.append(hit)
    return kept


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
def _scanner(names: tuple[str, ...]) -> Scanner:
    return Scanner(names)
