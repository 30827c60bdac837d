"""One file on its way into the index: read, judged, cut, its words counted. No database here."""

import hashlib
import time
import zlib

import msgspec

from holdfast.search import words
from holdfast.search.chunks import Chunk, cut, lines_of
from holdfast.search.index import files, judge
from holdfast.search.settings import IndexSettings


class Part(msgspec.Struct):
    """A chunk as it is stored."""

    kind: str
    symbol: str
    name: str
    start: int
    stop: int
    hash: bytes
    words: str
    """What the full text sees."""


class Piece(msgspec.Struct):
    found: files.Found
    hash: bytes = b""
    mtime: int = files.UNTRUSTED
    lang: str = ""
    left_out: str = ""
    text: bytes = b""
    """Compressed; the chunks are lines of it."""
    parts: list[Part] = []


def piece(root: str, found: files.Found, settings: IndexSettings, known_hash: bytes = b"") -> Piece | None:
    """None: it has the content that `known_hash` names, only its times differ."""
    largest = settings.largest_kb * 1024
    if not found.plain:
        return Piece(found, mtime=found.mtime, left_out=judge.LINK)
    if reason := judge.by_name(found.path, found.size, largest):
        return Piece(found, mtime=found.mtime, left_out=reason)
    try:
        content = files.read(root, found, largest)
    except OSError:
        return Piece(found, left_out=judge.UNREADABLE)
    return _read(found, content, largest, known_hash)


def trusted(found: files.Found) -> int:
    return found.mtime if found.mtime < time.time_ns() - files.FRESH_NS else files.UNTRUSTED


def _read(found: files.Found, content: bytes, largest: int, known_hash: bytes) -> Piece | None:
    digest = hashlib.blake2b(content, digest_size=16).digest()
    if digest == known_hash:
        return None
    made = Piece(found, digest, trusted(found), judge.language(found.path, content))
    made.left_out = judge.by_content(content, found.path, largest)
    if not made.left_out:
        text, made.left_out = judge.text_of(content)
        made.parts = [_part(chunk) for chunk in cut(text, made.lang)]
        made.text = packed(text)
    return made


def _part(chunk: Chunk) -> Part:
    digest = hashlib.blake2b(chunk.text.encode("utf-8", "replace"), digest_size=8).digest()
    return Part(chunk.kind, chunk.symbol, chunk.name, chunk.start, chunk.end, digest, searchable(chunk.text))


def packed(text: str) -> bytes:
    return zlib.compress("\n".join(lines_of(text)).encode("utf-8", "replace"), 6)


def unpacked(text: bytes) -> list[str]:
    return zlib.decompress(text).decode("utf-8", "replace").split("\n")


def searchable(text: str) -> str:
    """Words for the full text: identifiers cut into parts. What is there often is put in fewer times: the tenth time
    tells a ranking next to nothing, and each takes room in the index."""
    out: list[str] = []
    for word, times in words.counted(text).items():
        out.extend((word,) * times.bit_length())
    return " ".join(out)
