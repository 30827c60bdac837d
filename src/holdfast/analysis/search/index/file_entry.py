"""Reads one file for the index: judges it, cuts it into chunks, counts its words."""

import hashlib
import time
import zlib
from collections import Counter

import msgspec

from holdfast.analysis.search import tokens
from holdfast.analysis.search.chunks import Chunk, Definition, cut_chunks, lines_of
from holdfast.analysis.search.index import checkout, left_out
from holdfast.analysis.search.settings import IndexSettings

ChunkKey = tuple[str, str, bytes]
"""Kind, symbol and hash: they identify a chunk within its file."""


class FileChunk(msgspec.Struct):
    """A chunk as stored."""

    kind: str
    symbol: str
    start: int
    stop: int
    hash: bytes
    words: str
    """For the full text. Empty, like the tokens, if the file's index already has this chunk: counting words is half
    the work, and most chunks of a changed file are unchanged."""
    tokens: str
    """Whole names, separated by spaces."""
    definitions: list[Definition]
    """Lines relative to the chunk's first line."""

    @property
    def key(self) -> ChunkKey:
        return self.kind, self.symbol, self.hash


class KnownFile(msgspec.Struct, frozen=True):
    """What the index has of a file."""

    hash: bytes = b""
    chunks: tuple[ChunkKey, ...] = ()


NOTHING = KnownFile()


class FileEntry(msgspec.Struct):
    listed_file: checkout.ListedFile
    hash: bytes = b""
    mtime: int = checkout.UNTRUSTED
    lang: str = ""
    left_out: str = ""
    text: bytes = b""
    """Compressed; chunks are lines of it."""
    parts: list[FileChunk] = []


def read_entry(
    root: str, listed_file: checkout.ListedFile, settings: IndexSettings, known: KnownFile = NOTHING
) -> FileEntry | None:
    """None: the content is known, only its times differ."""
    largest = settings.largest_kb * 1024
    if not listed_file.plain:
        return FileEntry(listed_file, mtime=listed_file.mtime, left_out=left_out.LINK)
    if reason := left_out.by_name(listed_file.path, listed_file.size, largest):
        return FileEntry(listed_file, mtime=listed_file.mtime, left_out=reason)
    try:
        content = checkout.read_file(root, listed_file, largest)
    except OSError:
        return FileEntry(listed_file, left_out=left_out.UNREADABLE)
    return _build_entry(listed_file, content, largest, known)


def trusted_mtime(listed_file: checkout.ListedFile) -> int:
    # A file that changed just now may change again without a new mtime: it is read next time.
    return listed_file.mtime if listed_file.mtime < time.time_ns() - checkout.FRESH_NS else checkout.UNTRUSTED


def _build_entry(listed_file: checkout.ListedFile, content: bytes, largest: int, known: KnownFile) -> FileEntry | None:
    digest = hashlib.blake2b(content, digest_size=16).digest()
    # Compared by content: switching branches back and forth changes times only.
    if digest == known.hash:
        return None
    made = FileEntry(
        listed_file, digest, trusted_mtime(listed_file), left_out.language_of_file(listed_file.path, content)
    )
    made.left_out = left_out.by_content(content, listed_file.path, largest)
    if not made.left_out:
        text, made.left_out = left_out.text_of(content)
        unclaimed = Counter(known.chunks)
        made.parts = [_file_chunk(chunk, unclaimed) for chunk in cut_chunks(text, made.lang)]
        made.text = pack_text(text)
    return made


def _file_chunk(chunk: Chunk, unclaimed: Counter[ChunkKey]) -> FileChunk:
    """`unclaimed`: indexed chunks not yet matched."""
    # Relative lines: a chunk that only moved keeps its hash and thus its vector.
    defined = [Definition(d.kind, d.symbol, d.start - chunk.start, d.end - chunk.start) for d in chunk.definitions]
    digest = hashlib.blake2b(chunk.text.encode("utf-8", "replace"), digest_size=8)
    digest.update(repr(defined).encode("utf-8", "replace"))
    made = FileChunk(chunk.kind, chunk.symbol, chunk.start, chunk.end, digest.digest(), "", "", defined)
    if unclaimed[made.key]:
        unclaimed[made.key] -= 1
    else:
        made.words = searchable_words(chunk.text)
        made.tokens = " ".join(sorted(tokens.whole_tokens(chunk.text)))
    return made


def pack_text(text: str) -> bytes:
    return zlib.compress("\n".join(lines_of(text)).encode("utf-8", "replace"), 6)


def unpack_text(text: bytes) -> list[str]:
    return zlib.decompress(text).decode("utf-8", "replace").split("\n")


def searchable_words(text: str) -> str:
    """Words for the full text: identifiers split into parts. Frequent words are stored fewer times: the tenth
    occurrence tells a ranking next to nothing, and each takes space."""
    out: list[str] = []
    for word, times in tokens.count_words(text).items():
        # 1, 2, 2, 3, 3, 3, 3, 4 times: about the logarithm.
        out.extend((word,) * times.bit_length())
    return " ".join(out)
