"""Cuts code without a grammar at lines that begin a definition."""

import re
from collections.abc import Iterator, Sequence

from holdfast.analysis.search.chunks.chunk import Chunk, named_chunks, of_lines, uncovered_spans
from holdfast.analysis.search.chunks.grammars import OUTLINE

# Indentation, modifiers, a keyword of some language, SQL's "or replace table", then the name.
_DEFINITION = re.compile(
    r"^(?P<indent>\s*)(?:@\w+\s+)?(?:(?:export|default|public|private|protected|internal|open|override|static|final|"
    r"abstract|sealed|data|inline|suspend|async|pub|local|virtual|case|implicit|lazy|const)\s+)*"
    r"(?P<word>fun|func|function|def|defp|defmodule|defmacro|class|struct|interface|trait|enum|module|object|protocol|"
    r"extension|actor|type|sub|proc|procedure|method|message|service|rpc|resource|data|variable|instance|create)\s+"
    r"(?:or\s+replace\s+)?(?:table|view|function|procedure|trigger|index)?\s*(?:if\s+not\s+exists\s+)?"
    r"[\"'`]?(?P<name>[A-Za-z_][\w.:$-]*)",
    re.IGNORECASE,
)


def cut_outline(lines: Sequence[str], language: str) -> list[Chunk]:
    return list(_outline_chunks(lines)) if language in OUTLINE.languages else []


def _list_definitions(lines: Sequence[str]) -> list[tuple[int, re.Match[str]]]:
    # A longer line is data and would only cost time.
    matches = ((row, _DEFINITION.match(line)) for row, line in enumerate(lines) if len(line) < 500)
    return [(row, match) for row, match in matches if match]


def _outline_chunks(lines: Sequence[str]) -> Iterator[Chunk]:
    definitions = _list_definitions(lines)
    if not definitions:
        return
    outermost = min(len(match["indent"]) for _, match in definitions)
    # Members one level below the outermost are chunks of their own, deeper ones are not.
    spans = [(_with_comments(lines, row), match) for row, match in definitions if len(match["indent"]) <= outermost + 4]
    ends = [start for start, _ in spans[1:]] + [len(lines)]
    for start, end in uncovered_spans([(spans[0][0], len(lines))], 0, len(lines)):
        yield from of_lines(lines, start, end, "module", "")
    for (start, match), end in zip(spans, ends, strict=True):
        kind = "function" if match["word"].lower() in OUTLINE.functions else "class"
        symbol = match["name"].strip(".")
        yield from named_chunks(of_lines(lines, start, max(start, end), kind, symbol), kind, symbol, start, end)


def _with_comments(lines: Sequence[str], row: int) -> int:
    while row > 0 and lines[row - 1].lstrip().startswith(("//", "#", "--", "/*", "*", "@", ";;", "%%")):
        row -= 1
    return row
