"""Removes secrets from payloads and text; everything stored passes through it."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import msgspec

from holdfast.analysis.redact.document import Document
from holdfast.analysis.redact.judge import is_mixed_password, looks_random
from holdfast.analysis.redact.scanner import Scanner
from holdfast.analysis.redact.spans import UNJUDGED, Span, join_spans, replace_spans, spans_outside, split_lines
from holdfast.analysis.redact.work import Work

_LABEL = re.compile(rb"\[redacted:[a-z0-9-]{1,60}\]")
_skip_json = msgspec.json.Decoder(msgspec.Raw).decode


def labels_in(text: bytes) -> list[tuple[int, int]]:
    """The positions of labels from an earlier redaction."""
    return [match.span() for match in _LABEL.finditer(text)]


def is_json(body: bytes) -> bool:
    """Whether it is a JSON document with at least one string."""
    if body.lstrip()[:1] not in (b"{", b"[", b'"'):
        return False
    try:
        _skip_json(body)
        # Invalid UTF-8 is redacted as text.
        body.decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


# A removal can join parts into a new finding; the number bounds the cost.
_MOST_ROUNDS = 4
# In candidates: more than the longest sources have, and bounded for a file full of secret names.
_WORK_OF_FILE = 160_000
# In bytes.
_DECODE_AT_ONCE = 1 << 16
_ECHO_LEAST, _ECHO_MOST, _ECHOED = 8, 4096, 16
"""Minimum length of a value searched elsewhere, and how many are searched per text."""


class Finding(msgspec.Struct, frozen=True):
    """One removed secret."""

    kind: str


Clean = Callable[[bytes, Work], tuple[bytes, list[Span]]]


class Redactor:
    """`names`: further secret names; `patterns`: regular expressions; `keep`: exact texts to leave."""

    def __init__(
        self, names: Iterable[str] = (), patterns: Iterable[str] = (), keep: Iterable[str] = (), enabled: bool = True
    ) -> None:
        self._names = tuple(name for name in names if name)
        self._patterns = _compile_patterns(patterns)
        self._keep = frozenset(text.encode() for text in keep)
        self._enabled = enabled

    def redact(self, body: bytes) -> tuple[bytes, int]:
        """A payload without its secrets, and their count. Never raises; idempotent."""
        cleaned, findings = self.redact_body(body)
        return cleaned, len(findings)

    def redact_body(self, body: bytes) -> tuple[bytes, list[Finding]]:
        """JSON is redacted in its decoded strings and stays JSON; anything else is redacted as text."""
        look = self._look_at(body) if self._enabled else None
        if not look:
            return body, []
        work = Work(len(body), look=look)
        try:
            return self._in_rounds(body, self._clean_document if is_json(body) else self._clean_text, work)
        # JSON nested too deep for the decoder is redacted as text.
        except RecursionError:
            return self._in_rounds(body, self._clean_text, work)

    def redact_lines(self, body: bytes) -> bytes:
        """A file without its secrets, line for line. Nobody waits for it, so many more candidates are judged."""
        if not self._enabled or not self._look_at(body):
            return body
        clean = self._clean_document if is_json(body) else self._clean_lines
        return self._in_rounds(body, clean, Work(len(body), _WORK_OF_FILE))[0]

    def redact_text(self, text: str) -> tuple[str, list[Finding]]:
        """The same for text that is not JSON, or is to be read as text."""
        if not self._enabled:
            return text, []
        body, findings = self._in_rounds(text.encode("utf-8", "surrogatepass"), self._clean_text)
        return (body.decode("utf-8", "surrogatepass"), findings) if findings else (text, [])

    def _look_at(self, body: bytes) -> Work | None:
        """A short body is read if it has a candidate; a long one, which always has some, if its decoded strings
        contain a secret. The results are reused when it is read."""
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
            # A pattern must not match across two strings.
            pieces = document.pieces()
            spans = join_spans([*spans, *self._find_patterns(document.text, pieces)])
        spans = self._without_kept(document.text, add_echoes(document.text, spans))
        return (document.without(spans), spans) if spans else (body, [])

    def _clean_text(self, body: bytes, work: Work) -> tuple[bytes, list[Span]]:
        spans = self._find_in_text(body, work)
        return (replace_spans(body, spans), spans) if spans else (body, [])

    def _clean_lines(self, body: bytes, work: Work) -> tuple[bytes, list[Span]]:
        spans = [part for span in self._find_in_text(body, work) for part in split_lines(body, span)]
        return (replace_spans(body, spans), spans) if spans else (body, [])

    def _find_in_text(self, body: bytes, work: Work) -> list[Span]:
        spans = self._scanner.find(body, work=work)
        if self._patterns:
            spans = join_spans([*spans, *self._find_patterns(body, [(0, len(body))])])
        return self._without_kept(body, add_echoes(body, spans))

    def _find_patterns(self, text: bytes, pieces: list[tuple[int, int]]) -> list[Span]:
        # A pattern that matches its own label would replace it in every round.
        done = labels_in(text)
        hits = [
            (start + match.start(), start + match.end(), "pattern")
            for start, end in pieces
            for pattern in self._patterns
            for match in pattern.finditer(text[start:end])
            if match[0]
        ]
        hits.sort()
        return spans_outside(hits, done)

    def _without_kept(self, text: bytes, spans: list[Span]) -> list[Span]:
        return [span for span in spans if text[span[0] : span[1]] not in self._keep] if self._keep else spans


def add_echoes(text: bytes, spans: list[Span]) -> list[Span]:
    """These spans, and all other occurrences of the same values, because programs repeat their input."""
    values: dict[bytes, str] = {}
    for start, end, kind in spans:
        if kind != UNJUDGED and _is_distinct(text[start:end]):
            values.setdefault(text[start:end], kind)
        if len(values) >= _ECHOED:
            break
    # By length: values are mostly equally long, and the kept text is joined once.
    kept = {length: _join_kept(text, spans, length - 1) for length in set(map(len, values))}
    echoes = [
        (at, at + len(value), kind)
        for value, kind in values.items()
        if value in kept[len(value)]
        for at in _find_places(text, value)
    ]
    return join_spans([*spans, *echoes]) if echoes else spans


def _is_distinct(value: bytes) -> bool:
    """A short or plain word would be removed from ordinary text."""
    return _ECHO_LEAST <= len(value) <= _ECHO_MOST and (is_mixed_password(value) or looks_random(value))


def _join_kept(text: bytes, spans: list[Span], reach: int) -> bytes:
    """What these ordered spans leave of the text, each piece with so many bytes of the adjacent spans."""
    ends = [0, *(max(0, end - reach) for _, end, _ in spans)]
    starts = [*(start + reach for start, _, _ in spans), len(text)]
    return b"\n".join(text[first:last] for first, last in zip(ends, starts, strict=True))


def _find_places(text: bytes, value: bytes) -> Iterator[int]:
    """Its positions, except within a longer word."""
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        if not text[max(0, at - 1) : at].isalnum() and not text[end : end + 1].isalnum():
            yield at
        at = text.find(value, end)


def _compile_patterns(patterns: Iterable[str]) -> list[re.Pattern[bytes]]:
    """Invalid patterns are omitted: settings report them, and redaction must not fail."""
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
