"""Cuts prose at its headings."""

import re
from collections.abc import Iterator, Sequence

from holdfast.analysis.search.chunks.chunk import Chunk, named_chunks, of_lines

_MARKDOWN = re.compile(r"^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
# Three or more of the same sign, and nothing else.
_UNDERLINE = re.compile(r"^([=\-~`^\"'+*#<>_.:])\1{2,}\s*$")
LONGEST_TITLE = 120

Heading = tuple[int, int, str]
"""(row, level, title)"""


def cut_prose(lines: Sequence[str], language: str) -> Iterator[Chunk]:
    headings = list(_markdown_headings(lines) if language == "markdown" else _underlined_headings(lines))
    starts = [row for row, _, _ in headings]
    if not starts or starts[0] > 0:
        yield from of_lines(lines, 0, starts[0] if starts else len(lines), "section", "")
    above: list[tuple[int, str]] = []
    for number, (row, level, title) in enumerate(headings):
        # Headings of the same or a deeper level end.
        above = [*(a for a in above if a[0] < level), (level, title)]
        end = starts[number + 1] if number + 1 < len(starts) else len(lines)
        # At most three levels, so that a name stays readable.
        symbol = " > ".join(title for _, title in above[-3:])
        yield from named_chunks(of_lines(lines, row, end, "section", symbol), "section", symbol, row, end)


def _markdown_headings(lines: Sequence[str]) -> Iterator[Heading]:
    fenced = False
    for row, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (match := _MARKDOWN.match(line)):
            yield row, len(match[1]), match[2][:LONGEST_TITLE]


def _underlined_headings(lines: Sequence[str]) -> Iterator[Heading]:
    """Levels in the order in which their signs appear, as in reStructuredText."""
    levels: dict[str, int] = {}
    for row in range(len(lines) - 1):
        title = lines[row].rstrip()
        below = _UNDERLINE.match(lines[row + 1])
        # Indented lines above a rule are code or tables.
        if below and title and not _UNDERLINE.match(title) and not title[0].isspace() and len(title) <= LONGEST_TITLE:
            yield row, levels.setdefault(below[1], len(levels) + 1), title
