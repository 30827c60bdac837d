"""Tables: the name of a column tells what stands below it."""

import csv
import re
from collections.abc import Iterator

from holdfast.core.lazy import lazy_pattern
from holdfast.redact import judge, notation
from holdfast.redact.acceptance import KEY_END, STRING_END
from holdfast.redact.judge import NameRule, Span

_MOST_ROWS, _ROWS_WITHOUT = 20, 2
"""How many rows are read, and how many of them without a secret are enough."""


def find_column(text: bytes, rule: NameRule, start: int, end: int) -> list[Span]:
    """The name heads a column of a table with commas: the values below it."""
    # The line or the string in which the name stands.
    first = max(text.rfind(mark, max(0, start - 400), start) for mark in (b"\n", KEY_END, STRING_END)) + 1
    header = notation.HEADER_LINE.match(text, first if first or start < 400 else start)
    if not header or header.end() < end:
        return []
    column, width = text.count(b",", first, start), header[0].count(b",")
    # A column heading says less than an assignment, so its passwords must look mixed.
    accept = judge.JUDGES.get({"password": "mixed", "code": "mixed"}.get(rule.judge, rule.judge), judge.looks_random)
    spans: list[Span] = []
    for row, (at, stop) in enumerate(_list_lines(text, text.find(b"\n", header.end()) + 1)):
        # A row with another number of commas is no part of the table.
        if len(_split_row(text[at:stop], b",")) != width + 1:
            break
        spans += [
            (*span, rule.kind)
            for span in _cell_spans(text, at, stop, b",", [column])
            if b"[redacted:" not in text[slice(*span)] and accept(text[slice(*span)])
        ]
        if not spans and row + 1 >= _ROWS_WITHOUT:
            break
    return spans


def _list_lines(text: bytes, at: int) -> Iterator[tuple[int, int]]:
    for _ in range(_MOST_ROWS):
        stop = min((n for mark in (b"\n", STRING_END) if (n := text.find(mark, at, at + 4000)) >= 0), default=len(text))
        if stop <= at:
            return
        yield at, stop
        if text[stop : stop + 1] == STRING_END:
            return
        at = stop + 1


def _split_row(row: bytes, sign: bytes) -> list[bytes]:
    """The cells of a row. One in quotes may have commas of its own."""
    if sign != b"," or b'"' not in row:
        return row.split(sign)
    return [cell.encode("latin-1") for cell in next(csv.reader([row.decode("latin-1")]), [])]


def _cell_spans(text: bytes, at: int, stop: int, sign: bytes, columns: list[int]) -> list[tuple[int, int]]:
    """Where the values in these columns of a row stand, without spaces and quotes around them."""
    spans = []
    for column, cell in enumerate(_split_row(text[at:stop], sign)):
        value = cell.strip(b" \t\r\"'`")
        first = text.find(value, at, stop)
        # A quote within a cell is written twice, so the cell is not found as it was read.
        if first < 0:
            break
        if column in columns and value:
            spans.append((first, first + len(value)))
        at = first + len(value)
    return spans


# Tables with tabs, semicolons or bars, and what `COPY` of PostgreSQL reads.

_NAMES = (
    *"password Password PASSWORD passwd pwd pass secret Secret SECRET token Token TOKEN api_key API_KEY apikey".split(),
    "API key",
)
BEFORE_CELL = tuple(f"{name};" for name in _NAMES)
TABLE_ANCHORS = (
    *(f"{name}{sign}" for name in _NAMES for sign in ("\t", " |", "|", "\\t")),
    *(f"{sign}{name}{end}" for name in _NAMES for sign in ("\t", ";", ",", "| ") for end in ("\n", "\r")),
    *(f"{sign}{name}\\{end}" for name in _NAMES for sign in ("\\t", ";", ",", "| ") for end in "nr"),
    *BEFORE_CELL,
)
COPY_ANCHORS = ("FROM stdin", "FROM STDIN", "from stdin")
_COPY = lazy_pattern(
    rb"COPY\s[^()\r\n]{1,120}\((?P<columns>[^()]{1,600})\)\s(?i:from stdin)[^\r\n]{0,80}\r?\n", re.IGNORECASE
)
_HEADING = lazy_pattern(
    rb"[ \t|;]*(?:[\"'`*]{0,3}[\w .()/-]{0,40}[\"'`*]{0,3}[ ]?[\t|;,]){1,40}[\"'`*]{0,3}[\w .()/-]{0,40}[\"'`*]{0,3}[ \t\r]*$"
)
_SECRET_HEADING = lazy_pattern(rb"(?i:passw(?:or)?d|passwd|pwd|\bpass|secret|token|api[_ ]?key)[\"'`* ]*$")
_RULE_LINE = lazy_pattern(rb"[ \t|:+-]{3,}\r?$")


_REFUSED = 6
"""What it costs to see that there is no table, in units of work.py."""


def find_table_values(text: bytes, start: int, end: int) -> list[Span] | int:
    """The values below a heading, in a table whose cells are divided by tabs, semicolons or bars."""
    first = max(text.rfind(mark, max(0, start - 400), start + 1) for mark in (b"\n", KEY_END, STRING_END)) + 1
    last = text.find(b"\n", max(end - 1, first), first + 1000)
    heading = text[first:last] if last > first else b""
    if not _HEADING.match(heading):
        return _REFUSED
    sign = next((sign for sign in (b"\t", b"|", b";", b",") if sign in heading.strip()), b"")
    columns = [n for n, name in enumerate(heading.split(sign)) if _SECRET_HEADING.search(name.strip())] if sign else []
    width, spans = heading.count(sign) if sign else 0, list[Span]()
    for row, (at, stop) in enumerate(_list_lines(text, last + 1) if columns else ()):
        line = text[at:stop]
        if _RULE_LINE.match(line):
            continue
        if line.count(sign) != width or (not spans and row >= _ROWS_WITHOUT + 1):
            break
        spans += _mixed_cells(text, at, stop, sign, columns)
    return spans


def find_copied_values(text: bytes, start: int, end: int) -> list[Span] | int:
    """`COPY users (name, password) FROM stdin;` and the lines that it reads."""
    copy = next((m for m in _COPY.finditer(text, max(0, start - 760), end + 120) if m.start() < start < m.end()), None)
    if not copy:
        return _REFUSED
    columns = [n for n, name in enumerate(copy["columns"].split(b",")) if _SECRET_HEADING.search(name.strip(b' \t"'))]
    spans: list[Span] = []
    for at, stop in _list_lines(text, copy.end()) if columns else ():
        if text.startswith(b"\\.", at):
            break
        spans += _mixed_cells(text, at, stop, b"\t", columns)
    return spans


def _mixed_cells(text: bytes, at: int, stop: int, sign: bytes, columns: list[int]) -> list[Span]:
    return [
        (*span, "table-password")
        for span in _cell_spans(text, at, stop, sign, columns)
        if b"[redacted:" not in text[slice(*span)] and judge.is_mixed_password(text[slice(*span)])
    ]
