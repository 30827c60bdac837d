"""Cuts texts at functions, classes and headings, or by lines if there are none."""

from collections.abc import Iterator

from holdfast.analysis.search.chunks import outline, prose, syntax
from holdfast.analysis.search.chunks.chunk import Chunk, Definition, join_small, window_chunks
from holdfast.analysis.search.languages import PROSE

__all__ = ["Chunk", "Definition", "cut_chunks", "lines_of"]

# In characters.
LONGEST_LINE = 20_000


def lines_of(text: str) -> list[str]:
    """The lines that chunks are made of: uniform line ends, bounded length."""
    return [line[:LONGEST_LINE] for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def cut_chunks(text: str, language: str) -> list[Chunk]:
    """Every meaningful line is in at least one chunk. A chunk's text is its lines of `lines_of(text)`."""
    return join_small(list(_cut_by_language(lines_of(text), language)))


def _cut_by_language(lines: list[str], language: str) -> Iterator[Chunk]:
    if language in PROSE:
        return prose.cut_prose(lines, language)
    # From the most exact method to the crudest; each returns nothing if it does not apply.
    if chunks := syntax.cut_by_syntax(lines, language):
        return iter(chunks)
    if chunks := outline.cut_outline(lines, language):
        return iter(chunks)
    return window_chunks(lines, 0, len(lines), "lines")
