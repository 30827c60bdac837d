"""The answer of an MCP tool: text lines, and the same as data."""

import time
from collections.abc import Iterable
from typing import Any

import msgspec

LONGEST_LINE = 300


class Row(msgspec.Struct, omit_defaults=True):
    """One item of a list. `at` is in UTC."""

    id: str
    at: str = ""
    status: str = ""
    type: str = ""
    text: str = ""
    session: str = ""


class Page(msgspec.Struct, omit_defaults=True, rename={"next_cursor": "nextCursor"}):
    items: list[Row]
    next_cursor: str = ""


class Answer(msgspec.Struct):
    text: str
    data: Any


def date_of(at_ms: int | float | None) -> str:
    return time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(at_ms / 1000)) if at_ms else ""


def page_answer(items: Iterable[Row], cursor: str = "", empty: str = "Nothing.", *, whole: bool = False) -> Answer:
    """`whole`: texts in full, on their own lines."""
    rows = list(items)
    lines = [format_row(row, whole=whole) for row in rows] or [empty]
    if cursor:
        lines.append(f"More: call again with cursor {cursor}")
    return Answer("\n".join(lines), Page(rows, cursor))


def format_row(row: Row, *, whole: bool = False) -> str:
    about = ", ".join(part for part in (row.type, row.status) if part) or "no status"
    text = f"\n{row.text}" if whole else " ".join(row.text.split())[:LONGEST_LINE]
    return f"{row.id} | {row.at or 'undated'} | {about} | {text}"


def next_cursor(offset: int, shown: int, has_more: bool) -> str:
    return str(offset + shown) if has_more else ""
