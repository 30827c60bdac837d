"""One file on its way into the index: read, judged, cut, its words counted. No database here."""

import hashlib
import time
import zlib

import msgspec

from holdfast.search import tokenize
from holdfast.search.chunks import Chunk, Definition, cut, lines_of
from holdfast.search.index import files, judge
from holdfast.search.settings import IndexSettings


class Part(msgspec.Struct):
    """A chunk as it is stored."""

    kind: str
    symbol: str
    start: int
    stop: int
    hash: bytes
    words: str
    """What the full text sees."""
    tokens: str
    """Whole names, with a space between them."""
    definitions: list[Definition]
    """Lines counted from the first line of the chunk."""


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
    defined = [Definition(d.kind, d.symbol, d.start - chunk.start, d.end - chunk.start) for d in chunk.definitions]
    digest = hashlib.blake2b(chunk.text.encode("utf-8", "replace"), digest_size=8)
    digest.update(repr(defined).encode("utf-8", "replace"))
    tokens = " ".join(sorted(tokenize.whole_tokens(chunk.text)))
    words = searchable(chunk.text)
    return Part(chunk.kind, chunk.symbol, chunk.start, chunk.end, digest.digest(), words, tokens, defined)


def packed(text: str) -> bytes:
    return zlib.compress("\n".join(lines_of(text)).encode("utf-8", "replace"), 6)


def unpacked(text: bytes) -> list[str]:
    return zlib.decompress(text).decode("utf-8", "replace").split("\n")


def searchable(text: str) -> str:
    """Words for the full text: identifiers cut into parts. What is there often is put in fewer times: the tenth time
    tells a ranking next to nothing, and each takes room in the index."""
    out: list[str] = []
    for word, times in tokenize.counted(text).items():
        out.extend((word,) * times.bit_length())
    return " ".join(out)
