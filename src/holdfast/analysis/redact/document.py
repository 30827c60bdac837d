"""The decoded strings of a JSON document as one text to scan, and the document with parts removed."""

import ctypes
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from holdfast.analysis.redact.native_library import BUFFERS, load_library
from holdfast.analysis.redact.spans import KEY_END, STRING_END, UNJUDGED, Span, make_label, replace_spans
from holdfast.core.lazy import lazy_pattern

# A string, with a colon after it if it is a key, or a number; nothing else in JSON can hold a secret.
_TOKEN = lazy_pattern(rb"\"([^\"\\]*(?:\\.[^\"\\]*)*)\"(\s*:)?|-?\d[\d.eE+-]*", re.DOTALL)
_decode_string = msgspec.json.Decoder(str).decode


class Document:
    """`text` holds every key, string and number in order; keys end with `KEY_END`, the others with `STRING_END`."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        library = load_library()
        flatten = _flatten_natively if library else _flatten_json
        self.text, self._begins, self._ends, self.starts, other = flatten(body)
        self.is_whole = not other
        """Whether nothing but JSON syntax is outside the strings, so that `text` is all there is to read."""

    def pieces(self) -> list[tuple[int, int]]:
        """The position of each string or number in `text`."""
        return [self._string_span(number) for number in range(len(self.starts))]

    def _string_span(self, number: int) -> tuple[int, int]:
        last = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.starts[number], last - 1

    def without(self, spans: list[Span]) -> bytes:
        """The document with these spans of `text` replaced by labels."""
        cuts: dict[int, list[Span]] = {}
        unjudged: list[range] = []
        for span in spans:
            touched = self._touched(span)
            # An unread stretch over several strings replaces each of them whole.
            if span[2] == UNJUDGED and len(touched) > 1:
                unjudged.append(touched)
                continue
            for number in touched:
                cuts.setdefault(number, []).append(span)
        alone = (range(number, number + 1) for number in cuts if not _is_within(number, unjudged))
        parts: list[bytes] = []
        at = 0
        for numbers in sorted([*alone, *unjudged], key=lambda numbers: numbers[0]):
            first, last = numbers[0], numbers[-1]
            parts.append(self.body[at : self._begins[first]])
            parts.append(self._rewritten(first, cuts[first]) if first == last else self._replaced(first, last))
            at = self._ends[last]
        return b"".join((*parts, self.body[at:]))

    def _touched(self, span: Span) -> range:
        first = bisect_right(self.starts, span[0]) - 1
        return range(first, max(first + 1, bisect_left(self.starts, span[1])))

    def _rewritten(self, number: int, spans: list[Span]) -> bytes:
        start, end = self._string_span(number)
        # A span may cover several strings: each gets its own part.
        inner = [(max(span[0], start) - start, min(span[1], end) - start, span[2]) for span in spans]
        text = replace_spans(self.text[start:end], [span for span in inner if span[0] < span[1]])
        return msgspec.json.encode(text.decode("utf-8", "replace"))

    def _replaced(self, first: int, last: int) -> bytes:
        """The part of the document with these strings, each replaced."""
        label = msgspec.json.encode(make_label(UNJUDGED).decode())
        begins, ends = self._begins, self._ends
        gaps = (self.body[ends[n] : begins[n + 1]] for n in range(first, last))
        return b"".join(label + gap for gap in gaps) + label


def _is_within(number: int, ranges: list[range]) -> bool:
    """Whether one of these ordered ranges contains the number."""
    at = bisect_right(ranges, number, key=lambda one: one.start) - 1
    return at >= 0 and number in ranges[at]


Flat = tuple[bytes, Sequence[int], Sequence[int], Sequence[int], bool]
# Punctuation, spaces and the letters of `true`, `false` and `null`.
_BESIDE_STRINGS = b" \t\r\n{}[],:truefalsn"


def _flatten_json(body: bytes) -> Flat:
    begins, ends, starts = [], [], []
    parts: list[bytes] = []
    size = 0
    for match in _TOKEN.finditer(body):
        decoded = _decode_token(match)
        begins.append(match.start())
        ends.append(match.end() if match[1] is None else match.end(1) + 1)
        starts.append(size)
        parts += (decoded, KEY_END if match[2] else STRING_END)
        size += len(decoded) + 1
    return b"".join(parts), begins, ends, starts, bool(_TOKEN.sub(b"", body).translate(None, _BESIDE_STRINGS))


def _flatten_natively(body: bytes) -> Flat:
    library = load_library()
    assert library is not None
    # A string or number takes at least two bytes with its separator; three numbers are written for each.
    out, offsets = BUFFERS.of_size(len(body) + 16, 3 * (len(body) // 2 + 2))
    size = library.holdfast_flatten_json(body, len(body), out, offsets, BUFFERS.count_ref, BUFFERS.other_ref)
    triples = BUFFERS.numbers(offsets, 3)
    return ctypes.string_at(out, size), triples[::3], triples[1::3], triples[2::3], BUFFERS.other.value > 0


def _decode_token(match: re.Match[bytes]) -> bytes:
    if match[1] is None:
        return match[0]
    if b"\\" not in match[1]:
        return match[1]
    try:
        return _decode_string(b'"' + match[1] + b'"').encode("utf-8", "replace")
    except (msgspec.DecodeError, UnicodeError):
        return match[1]


_UNJUDGED_BEFORE, _UNJUDGED_AFTER = 400, 20_000
_STRING_ENDS = (KEY_END, STRING_END)


def unjudged_spans(text: bytes, candidates: Iterable[tuple[int, int]], rest: tuple[int, int] | None) -> list[Span]:
    """What is removed where candidates could not be judged: the string of each, and for a key its value too."""
    spans: list[Span] = []
    string = stop = -1
    for start, end in sorted([*candidates, *([rest] if rest else [])]):
        if string < end:
            string = text.find(STRING_END, end)
            string = string if string >= 0 else len(text)
        last = end + _UNJUDGED_AFTER if end + _UNJUDGED_AFTER < string else string
        # A value may continue after what an earlier candidate removes.
        if start <= stop:
            if last > stop:
                stop = last
                spans[-1] = spans[-1][0], stop, UNJUDGED
            continue
        # The end of a key: the key comes before it.
        before = _UNJUDGED_AFTER if text.startswith(b"PRIVATE KEY", start) else _UNJUDGED_BEFORE
        least = max(0, start - before)
        first = max(least, *(text.rfind(stop, least, start) + 1 for stop in _STRING_ENDS))
        spans.append((first, last, UNJUDGED))
        stop = last
    return spans
