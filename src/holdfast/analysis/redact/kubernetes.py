"""Finds the values of a Kubernetes `Secret`."""

from holdfast.analysis.redact.rule_data import PATTERNS
from holdfast.analysis.redact.spans import Span

# In bytes before and after the anchor.
_DOCUMENT = 16_000
_MOST_DATA = 24
_REFUSED = 4
"""The cost of finding nothing, in units of work.py."""


def find_secret_values(text: bytes, start: int, end: int) -> list[Span] | int:
    """Every value under `data` or `stringData` of the document with `kind: Secret`."""
    first, last = _document_around(text, start, end)
    # Only what is below it.
    if text.startswith(b"stringData", start):
        data = PATTERNS.secret_data.search(text, max(0, start - 40), end + 4)
        return _list_entries(text, data.end(), last) if data else _REFUSED
    spans: list[Span] = []
    at = first
    for _ in range(_MOST_DATA):
        data = PATTERNS.secret_data.search(text, at, last)
        if not data:
            break
        entries = _list_entries(text, data.end(), last)
        # If none follows, there is none under a later `data` either, and each check reads to the end.
        if not entries and not PATTERNS.secret_entry.search(text, data.end(), last):
            break
        spans += entries
        at = entries[-1][1] if entries else data.end()
    return spans


def work_of_document(text: bytes, start: int, end: int) -> int:
    """The cost of `find_secret_values`, in units of work.py."""
    first, last = _document_around(text, start, end)
    # Below `stringData` everything is an entry; elsewhere `data` is searched first.
    return _REFUSED + ((last - start) // 36 if text.startswith(b"stringData", start) else (last - first) // 72)


def _document_around(text: bytes, start: int, end: int) -> tuple[int, int]:
    """`---` separates YAML documents: only the one with the anchor counts."""
    first = max(text.rfind(b"\n---", max(0, start - _DOCUMENT), start), start - _DOCUMENT, 0)
    last = text.find(b"\n---", end, end + _DOCUMENT)
    return first, last if last >= 0 else min(len(text), end + _DOCUMENT)


def _list_entries(text: bytes, at: int, last: int) -> list[Span]:
    spans: list[Span] = []
    depth = _indent_of(text[text.rfind(b"\n", 0, at) + 1 : at])
    for entry in PATTERNS.secret_entry.finditer(text, at, last):
        # A line indented no more than `data` itself ends the block.
        if entry[0][:1] in (b"\r", b"\n") and _indent_of(entry[0].lstrip(b"\r\n")) <= depth:
            break
        # Templates such as Helm's are references.
        if not entry["value"].startswith((b"$", b"{", b"<", b"[")):
            spans.append((*entry.span("value"), "kubernetes-secret"))
    return spans


def _indent_of(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))
