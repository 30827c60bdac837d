"""From a file's text to its chunks: the one door."""

from collections.abc import Iterator

from holdfast.search.chunks import headings, outline, syntax
from holdfast.search.chunks.chunk import Chunk, windows
from holdfast.search.languages import PROSE

LONGEST_LINE = 20_000


def cut(text: str, language: str) -> list[Chunk]:
    """Every line that says something is in at least one chunk."""
    return list(_cut(text, language))


def _cut(text: str, language: str) -> Iterator[Chunk]:
    lines = [line[:LONGEST_LINE] for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    if language in PROSE:
        return headings.cut(lines, language)
    if found := syntax.cut(lines, language):
        return iter(found)
    if found := outline.cut(lines, language):
        return iter(found)
    return windows(lines, 0, len(lines), "lines")
