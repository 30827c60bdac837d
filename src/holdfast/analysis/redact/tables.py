"""Finds secrets in text and SQL tables, by the names of columns."""

import csv
import re
from collections.abc import Callable, Iterator

from holdfast.analysis.redact import judge
from holdfast.analysis.redact.rule_data import PATTERNS, NameRule
from holdfast.analysis.redact.spans import KEY_END, REDACTED, STRING_END, UNJUDGED, Span, match_around

_MOST_ROWS, _ROWS_WITHOUT = 20, 3
"""How many rows are read, and after how many without a secret reading stops."""
_MOST_INSERTED = 60
_REFUSED = 4
"""The cost of finding no table, in units of work.py."""


def find_column(text: bytes, rule: NameRule, start: int, end: int) -> list[Span]:
    """The name heads a column of a comma-separated table: the values below it."""
    first = _begin_of_line(text, start)
    header = PATTERNS.header_line.match(text, first if first or start < 400 else start)
    if not header or header.end() < end:
        return []
    column, width = text.count(b",", first, start), header[0].count(b",")
    # A heading says less than an assignment, so its passwords must look mixed.
    name = {"password": "mixed", "code": "mixed"}.get(rule.judge, rule.judge)
    below = text.find(b"\n", header.end()) + 1
    return _read_rows(text, below, b",", [column], width, rule.kind, judge.JUDGES.get(name, judge.looks_random))


def _read_rows(
    text: bytes,
    at: int,
    sign: bytes,
    columns: list[int],
    width: int | None = None,
    kind: str = "table-password",
    accept: Callable[[bytes], bool] = judge.is_mixed_password,
) -> list[Span]:
    """The values in these columns, from rows with the expected number of separators."""
    spans: list[Span] = []
    without = 0
    for first, stop in _list_lines(text, at):
        if text.startswith(b"\\.", first) or without == _ROWS_WITHOUT:
            break
        if PATTERNS.rule_line.match(text[first:stop]):
            continue
        # A row with another number of separators is not part of the table.
        cells = _split_row(text[first:stop], sign)
        if width is not None and len(cells) != width + 1:
            break
        found = _cell_spans(text, first, stop, cells, columns, kind)
        spans += [span for span in found if accept(text[span[0] : span[1]])]
        without += not spans and width is not None
    return spans


def _begin_of_line(text: bytes, at: int) -> int:
    return max(text.rfind(mark, max(0, at - 400), at) for mark in (b"\n", KEY_END, STRING_END)) + 1


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
    """The cells of a row. A quoted one may contain commas."""
    if sign != b"," or b'"' not in row:
        return row.split(sign)
    return [cell.encode("latin-1") for cell in next(csv.reader([row.decode("latin-1")]), [])]


def _cell_spans(text: bytes, at: int, stop: int, cells: list[bytes], columns: list[int], kind: str) -> Iterator[Span]:
    """The positions of the values in these columns of a row, without spaces and quotes."""
    for column, cell in enumerate(cells):
        value = cell.strip(b" \t\r\"'`")
        first = text.find(value, at, stop)
        # A quote within a cell is doubled, so the cell is not found as it was read.
        if first < 0:
            return
        if column in columns and value and REDACTED not in value:
            yield first, first + len(value), kind
        at = first + len(value)


def find_table_values(text: bytes, start: int, end: int) -> list[Span] | int:
    """The values below a heading, in a table separated by tabs, semicolons or bars."""
    first = _begin_of_line(text, start + 1)
    last = text.find(b"\n", max(end - 1, first), first + 1000)
    heading = text[first:last] if last > first else b""
    if not PATTERNS.table_heading.match(heading):
        return _REFUSED + 2
    sign = next((sign for sign in (b"\t", b"|", b";", b",") if sign in heading.strip()), b"")
    columns = _secret_columns(heading.split(sign)) if sign else []
    return _read_rows(text, last + 1, sign, columns, heading.count(sign)) if columns else []


def _secret_columns(names: list[bytes]) -> list[int]:
    return [n for n, name in enumerate(names) if PATTERNS.secret_heading.search(name.strip(b' \t\r\n"'))]


def find_copied_values(text: bytes, start: int, _end: int) -> list[Span] | int:
    """`COPY users (name, password) FROM stdin;` and its lines."""
    copy = match_around(PATTERNS.copy_statement, text, start, 760, 130)
    if not copy:
        return _REFUSED + 2
    columns = _secret_columns(copy["columns"].split(b","))
    return _read_rows(text, copy.end(), b"\t", columns) if columns else []


def find_inserted_values(text: bytes, start: int, _end: int) -> list[Span] | int:
    """`INSERT INTO users (name, password) VALUES ('ada', '…'), …`: values by column name."""
    # In undecoded JSON the line break before VALUES is an escape.
    if not text[max(0, start - 5) : start].rstrip(b" \t\r\n").endswith((b")", b")\\n", b")\\r")):
        return _REFUSED
    insert = match_around(PATTERNS.insert, text, start, 620, 46)
    if not insert or not PATTERNS.secret_column.search(insert["columns"]):
        return 3 * _REFUSED
    columns, spans, row = insert["columns"].split(b","), list[Span](), insert.end()
    for _ in range(_MOST_INSERTED):
        end = _read_row(text, columns, row, spans)
        following = PATTERNS.next_row.match(text, end)
        if not following:
            return spans
        row = following.end()
    return [*spans, (row, _end_of_rows(text, row), UNJUDGED)]


def _end_of_rows(text: bytes, at: int) -> int:
    string = text.find(STRING_END, at)
    end = text.find(b");", at, string if string >= 0 else len(text))
    return end if end >= 0 else string if string >= 0 else len(text)


def _read_row(text: bytes, columns: list[bytes], at: int, spans: list[Span]) -> int:
    """Where the row ends; its passwords are added to `spans`."""
    for column in columns:
        item = PATTERNS.inserted_item.match(text, at, min(len(text), at + 4000))
        if not item or item.end() == at:
            break
        if _is_password_of(column, item):
            spans.append((*item.span("value"), "sql-password"))
        at = item.end()
        if not item["comma"]:
            break
    return at


def _is_password_of(column: bytes, item: re.Match[bytes]) -> bool:
    is_secret = item["value"] and PATTERNS.secret_column.search(column)
    return bool(is_secret) and judge.is_mixed_password(item["value"])
