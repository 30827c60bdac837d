"""Prose is cut at its headings: `# …` of Markdown, underlined lines of reStructuredText and plain text."""

import re
from collections.abc import Iterator, Sequence

from holdfast.search.chunks.chunk import Chunk, named_chunks, of_lines

_MARKDOWN = re.compile(r"^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_UNDERLINE = re.compile(r"^([=\-~`^\"'+*#<>_.:])\1{2,}\s*$")
LONGEST_TITLE = 120

Heading = tuple[int, int, str]
"""(row, level, title)"""


def cut(lines: Sequence[str], language: str) -> Iterator[Chunk]:
    found = list(_markdown(lines) if language == "markdown" else _underlined(lines))
    starts = [row for row, _, _ in found]
    if not starts or starts[0] > 0:
        yield from of_lines(lines, 0, starts[0] if starts else len(lines), "section", "")
    above: list[tuple[int, str]] = []
    for number, (row, level, title) in enumerate(found):
        above = [*(a for a in above if a[0] < level), (level, title)]
        end = starts[number + 1] if number + 1 < len(starts) else len(lines)
        symbol = " > ".join(title for _, title in above[-3:])
        yield from named_chunks(of_lines(lines, row, end, "section", symbol), "section", symbol, row, end)


def _markdown(lines: Sequence[str]) -> Iterator[Heading]:
    fenced = False
    for row, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (match := _MARKDOWN.match(line)):
            yield row, len(match[1]), match[2][:LONGEST_TITLE]


def _underlined(lines: Sequence[str]) -> Iterator[Heading]:
    """Levels in the order their signs appear, as reStructuredText has it."""
    levels: dict[str, int] = {}
    for row in range(len(lines) - 1):
        title = lines[row].rstrip()
        below = _UNDERLINE.match(lines[row + 1])
        if below and title and not _UNDERLINE.match(title) and not title[0].isspace() and len(title) <= LONGEST_TITLE:
            yield row, levels.setdefault(below[1], len(levels) + 1), title
