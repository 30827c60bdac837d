"""One file on its way into the index: read, judged, cut, its words counted. No database here."""

import hashlib
import time
import zlib

import msgspec

from holdfast.search import tokenize
from holdfast.search.chunks import Chunk, Definition, cut, lines_of
from holdfast.search.index import checkout, exclusions
from holdfast.search.settings import IndexSettings


class FileChunk(msgspec.Struct):
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


class FileEntry(msgspec.Struct):
    found: checkout.Found
    hash: bytes = b""
    mtime: int = checkout.UNTRUSTED
    lang: str = ""
    left_out: str = ""
    text: bytes = b""
    """Compressed; the chunks are lines of it."""
    parts: list[FileChunk] = []


def read_entry(root: str, found: checkout.Found, settings: IndexSettings, known_hash: bytes = b"") -> FileEntry | None:
    """None: it has the content that `known_hash` names, only its times differ."""
    largest = settings.largest_kb * 1024
    if not found.plain:
        return FileEntry(found, mtime=found.mtime, left_out=exclusions.LINK)
    if reason := exclusions.by_name(found.path, found.size, largest):
        return FileEntry(found, mtime=found.mtime, left_out=reason)
    try:
        content = checkout.read(root, found, largest)
    except OSError:
        return FileEntry(found, left_out=exclusions.UNREADABLE)
    return _read(found, content, largest, known_hash)


def trusted_mtime(found: checkout.Found) -> int:
    return found.mtime if found.mtime < time.time_ns() - checkout.FRESH_NS else checkout.UNTRUSTED


def _read(found: checkout.Found, content: bytes, largest: int, known_hash: bytes) -> FileEntry | None:
    digest = hashlib.blake2b(content, digest_size=16).digest()
    if digest == known_hash:
        return None
    made = FileEntry(found, digest, trusted_mtime(found), exclusions.language(found.path, content))
    made.left_out = exclusions.by_content(content, found.path, largest)
    if not made.left_out:
        text, made.left_out = exclusions.text_of(content)
        made.parts = [_part(chunk) for chunk in cut(text, made.lang)]
        made.text = pack_text(text)
    return made


def _part(chunk: Chunk) -> FileChunk:
    defined = [Definition(d.kind, d.symbol, d.start - chunk.start, d.end - chunk.start) for d in chunk.definitions]
    digest = hashlib.blake2b(chunk.text.encode("utf-8", "replace"), digest_size=8)
    digest.update(repr(defined).encode("utf-8", "replace"))
    tokens = " ".join(sorted(tokenize.whole_tokens(chunk.text)))
    words = searchable(chunk.text)
    return FileChunk(chunk.kind, chunk.symbol, chunk.start, chunk.end, digest.digest(), words, tokens, defined)


def pack_text(text: str) -> bytes:
    return zlib.compress("\n".join(lines_of(text)).encode("utf-8", "replace"), 6)


def unpack_text(text: bytes) -> list[str]:
    return zlib.decompress(text).decode("utf-8", "replace").split("\n")


def searchable(text: str) -> str:
    """Words for the full text: identifiers cut into parts. What is there often is put in fewer times: the tenth time
    tells a ranking next to nothing, and each takes room in the index."""
    out: list[str] = []
    for word, times in tokenize.counted(text).items():
        out.extend((word,) * times.bit_length())
    return " ".join(out)
