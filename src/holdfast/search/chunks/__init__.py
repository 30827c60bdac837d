"""Texts cut along their own seams: functions, classes and headings, or lines where there are none. Pure."""

from holdfast.search.chunks.chunk import Chunk, Definition
from holdfast.search.chunks.cut import cut, lines_of

__all__ = ["Chunk", "Definition", "cut", "lines_of"]
