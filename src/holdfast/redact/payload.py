"""The strings of a JSON document, decoded, as one text that can be scanned; and the document with some of it removed."""

import re
from bisect import bisect_right

import msgspec

from holdfast.redact.assignment import KEY_END, STRING_END
from holdfast.redact.rule import Span, make_label

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
