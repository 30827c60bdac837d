"""Finds the rules' anchors in a text in one pass, natively or by Aho–Corasick."""

import ctypes
import re
import struct
import threading
from collections.abc import Iterable, Iterator

import msgspec
from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from holdfast.analysis.redact.native_library import load_library
from holdfast.analysis.redact.prefixed import may_be_token
from holdfast.analysis.redact.rule_data import RULES, PackedAnchors

Hit = tuple[int, int, int]
"""The anchor's number, its start and its end."""

_LIMITS = RULES.limits
_SEEN, _SECOND = 1 << _LIMITS.seen_bits, 1 << _LIMITS.second_bits
_ROOM_LEAST, _ROOM_PER = 640, 2048
"""How many hits of a text are reported: a minimum, plus one per so many bytes."""
_ROOM = 4096
_COMMON = RULES.words["common_character"][0].encode()
# By byte: its weight, 0 for a rare one.
_COMMONNESS = bytes(40 - _COMMON.index(code) if code in _COMMON else 0 for code in range(256))
_LEFT = RULES.words["left_of_token"][0].encode("latin-1")
# In characters: the runs passed to `prefixed.find_prefixed`.
RUN_LEAST, RUN_MOST = 20, 128
_RUN = re.compile(rb"(?<=[_|:.-])[A-Za-z0-9]{20,}|(?<![A-Za-z0-9])[A-Za-z0-9]{32}(?=[.-])")
_ENTRY = struct.Struct(_LIMITS.entry)
_FAR = _LIMITS.guards["far"]


class Anchor(msgspec.Struct, frozen=True):
    """A text to search for, followed by at least `count` bytes of `follow`; with `alone` no part of a word or name may
    precede it."""

    text: bytes
    number: int
    follow: bytes = b""
    count: int = 0
    alone: bool = False
    then: bytes = b""
    """The byte right after these `count`, if only one is allowed."""
    guard: int = 0
    """A further condition. Only the guard `far` affects the result; the others avoid futile checks."""


class AnchorTable:
    """Anchors in the form of the native search; empty without arguments."""

    def __init__(self, packed: PackedAnchors | None = None) -> None:
        packed = packed or msgspec.structs.replace(
            RULES.search, texts=b"", entries=b"", classes=RULES.search.classes[: 3 * 256]
        )
        self.texts, self.entries = bytearray(packed.texts), bytearray(packed.entries)
        self._classes = {packed.classes[at : at + 256]: at // 256 for at in range(0, len(packed.classes), 256)}

    @classmethod
    def of(cls, anchors: Iterable[Anchor]) -> "AnchorTable":
        table = cls()
        for anchor in anchors:
            table.add(anchor)
        return table

    @property
    def classes(self) -> bytes:
        return b"".join(self._classes)

    def add(self, anchor: Anchor) -> None:
        # Imported here: at run time only a user's names are added.
        from holdfast.analysis.redact.rule_compiler import pack_anchor

        self.entries += pack_anchor(msgspec.structs.astuple(anchor), _ENTRY, self.texts, self._classes)

    def __len__(self) -> int:
        return len(self.entries) // _ENTRY.size

    def __iter__(self) -> Iterator[Anchor]:
        members = [bytes(code for code in range(256) if table[code]) for table in self._classes]
        for at, number, _, length, _, count, kind, sides, guard in _ENTRY.iter_unpack(self.entries):
            text, then = bytes(self.texts[at : at + length]), bytes([sides >> 8]) if sides >> 8 else b""
            yield Anchor(text, number, members[kind], count, bool(sides & 1), then, guard)


class Hits(msgspec.Struct, frozen=True):
    """The hits of a search. `rest` is the range of those that are too many to list."""

    hits: list[Hit]
    left_out: bool = False
    """Whether hits with the same surroundings as an earlier one were omitted."""
    rest: tuple[int, int] | None = None
    looked: int = 0
    """The cost of comparisons and guards, beyond scanning the text."""

    @property
    def numbers(self) -> set[int]:
        """The numbers of the anchors hit."""
        return {hit[0] for hit in self.hits}


class AnchorSearch:
    """Finds all anchors, including overlapping ones, roughly in order of their start."""

    def __init__(
        self, anchors: AnchorTable | Iterable[Anchor], run_number: int = -1, guard_words: list[bytes] | None = None
    ) -> None:
        """`run_number`: report long runs of letters and digits that may be tokens under this number."""
        table = anchors if isinstance(anchors, AnchorTable) else AnchorTable.of(anchors)
        library = load_library()
        # The library hashes three bytes and can extend an anchor of two bytes, but not of one.
        shortest = min((entry[3] for entry in _ENTRY.iter_unpack(table.entries)), default=0)
        self._native = _NativeTables(library, table, run_number, guard_words) if library and shortest > 1 else None
        self._automaton = None if self._native else _Automaton(table, run_number)

    @property
    def is_native(self) -> bool:
        return self._native is not None

    def find(self, text: bytes, once: bool = False, most: int = 0, judged: int = 0) -> Hits:
        """Find hits. With `once`, hits with the same surroundings as an earlier one are omitted in texts with very
        many. With `most` the search may stop after that many. At least `judged` are listed."""
        if self._native:
            return self._native.find(text, once, most, judged)
        assert self._automaton is not None
        return self._automaton.find(text, judged)


def room_for(text: bytes, judged: int = 0) -> int:
    return max(judged, _ROOM_LEAST + len(text) // _ROOM_PER)


class _Automaton:
    def __init__(self, anchors: Iterable[Anchor], run_number: int = -1) -> None:
        self._run_number = run_number
        by_text: dict[bytes, list[Anchor]] = {}
        for anchor in anchors:
            by_text.setdefault(anchor.text, []).append(anchor)
        self._by_text = list(by_text.values())
        self._search = BytesAhoCorasick(
            [*by_text], matchkind=MatchKind.Standard, implementation=Implementation.DFA
        ).find_matches_as_indexes

    def find(self, text: bytes, judged: int = 0) -> Hits:
        hits = self._list_hits(text)
        room = room_for(text, judged)
        if len(hits) <= room:
            return Hits(hits)
        rest = hits[room:]
        return Hits(hits[:room], rest=(min(hit[1] for hit in rest), max(hit[2] for hit in rest)))

    def _list_hits(self, text: bytes) -> list[Hit]:
        runs = _RUN.finditer(text) if self._run_number >= 0 else ()
        far = _Distance()
        hits = [
            (anchor.number, start, end)
            for n, start, end in self._search(text, overlapping=True)
            for anchor in self._by_text[n]
            if _is_hit(text, start, end, anchor)
            # `far` is the highest bit of the guards.
            and (anchor.guard < _FAR or far.is_next(anchor.guard, start))
        ]
        return hits + [(self._run_number, *run.span()) for run in runs if _may_be_run(text, *run.span())]


def _may_be_run(text: bytes, start: int, end: int) -> bool:
    return end - start <= RUN_MOST and may_be_token(text, start, end)


def _is_hit(text: bytes, start: int, end: int, anchor: Anchor) -> bool:
    return (
        (not anchor.count or _is_followed(text, end, anchor))
        and not _is_within_row(text, start, end)
        and (not anchor.alone or _is_alone(text, start))
    )


class _Distance:
    """Of marks that are close together one is enough."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}

    def is_next(self, sort: int, start: int) -> bool:
        if start < self._next.get(sort, 0):
            return False
        self._next[sort] = start + _LIMITS.far
        return True


def _is_followed(text: bytes, end: int, anchor: Anchor) -> bool:
    last = end + anchor.count
    after = text[end:last]
    return (
        len(after) == anchor.count
        and not after.translate(None, anchor.follow)
        and (not anchor.then or text[last : last + 1] == anchor.then)
    )


def _is_within_row(text: bytes, start: int, end: int) -> bool:
    """A one-letter anchor matches everywhere in a row of that letter: only the start of the row can be a token."""
    least, before = _LIMITS.row_least, _LIMITS.row_before
    return end - start >= least and start >= before and len(set(text[start - before : end])) == 1


def _is_alone(text: bytes, start: int) -> bool:
    """In undecoded JSON a line begins after the two characters of an escape."""
    return not start or text[start - 1] in _LEFT or text[start - 2 : start] in (b"\\n", b"\\t", b"\\r")


# Matches the struct in native/search.h.
class _Tables(ctypes.Structure):
    _fields_ = (
        ("filter", ctypes.c_void_p), ("first", ctypes.c_void_p), ("anchors", ctypes.c_void_p),
        ("texts", ctypes.c_void_p), ("classes", ctypes.c_void_p), ("second", ctypes.c_void_p),
        ("tail_words", ctypes.c_void_p), ("said_words", ctypes.c_void_p), ("glued_key", ctypes.c_void_p),
        ("glued_token", ctypes.c_void_p), ("plain_words", ctypes.c_void_p),
        ("cookie_words", ctypes.c_void_p), ("no_words", ctypes.c_void_p), ("public_words", ctypes.c_void_p),
        ("secret_words", ctypes.c_void_p), ("run_number", ctypes.c_uint32),
        ("run_least", ctypes.c_uint32), ("run_most", ctypes.c_uint32),
    )  # fmt: skip


# Matches the struct in native/tables.c.
class _Making(ctypes.Structure):
    _fields_ = (
        ("given", ctypes.c_char_p), ("count", ctypes.c_size_t), ("texts", ctypes.c_void_p),
        ("classes", ctypes.c_void_p), ("weights", ctypes.c_char_p), ("parts", ctypes.c_char_p),
        ("part_count", ctypes.c_size_t), ("loads", ctypes.c_void_p), ("load_size", ctypes.c_size_t),
        ("keyed", ctypes.c_void_p), ("ordered", ctypes.c_void_p), ("room", ctypes.c_size_t),
        ("starts", ctypes.c_void_p), ("filter", ctypes.c_void_p), ("first", ctypes.c_void_p),
        ("second", ctypes.c_void_p),
    )  # fmt: skip


class _NativeTables:
    def __init__(
        self, library: ctypes.CDLL, table: AnchorTable, run_number: int = -1, guard_words: list[bytes] | None = None
    ) -> None:
        self._call = library.holdfast_find_anchors
        # Kept as attributes: the library holds bare addresses, which do not keep the buffers alive.
        self._texts = ctypes.create_string_buffer(bytes(table.texts))
        self._classes = ctypes.create_string_buffer(table.classes)
        self._filter = ctypes.create_string_buffer(4 << _LIMITS.hash_bits)
        self._first = ctypes.create_string_buffer(4 * ((1 << _LIMITS.bucket_bits) + 1))
        self._second = ctypes.create_string_buffer(2 * _SECOND)
        self._entries = self._make_tables(library, table)
        self._lists = [ctypes.create_string_buffer(words) for words in guard_words or RULES.search.no_guard_words]
        self._tables = _Tables(
            ctypes.addressof(self._filter), ctypes.addressof(self._first), ctypes.addressof(self._entries),
            ctypes.addressof(self._texts), ctypes.addressof(self._classes), ctypes.addressof(self._second),
            *map(ctypes.addressof, self._lists),
            max(run_number, 0), RUN_LEAST if run_number >= 0 else 0, RUN_MOST,
        )  # fmt: skip
        self._by_ref = ctypes.byref(self._tables)
        self._space = _Space()

    def _make_tables(self, library: ctypes.CDLL, table: AnchorTable) -> ctypes.Array[ctypes.c_char]:
        """Sort the anchors in search order while the library fills its filters."""
        # A two-byte anchor has an entry for each byte that may be next to it.
        room = len(table) + 255 * sum(entry[3] == 2 for entry in _ENTRY.iter_unpack(table.entries))
        keyed, ordered = (ctypes.create_string_buffer(_ENTRY.size * room) for _ in range(2))
        parts = RULES.words["common_part"]
        load_size = 1 << (2 * (len(table) + len(parts))).bit_length()
        loads = ctypes.create_string_buffer(8 * load_size)
        starts = ctypes.create_string_buffer(4 * ((1 << _LIMITS.hash_bits) + 1))
        making = _Making(
            bytes(table.entries), len(table), ctypes.addressof(self._texts), ctypes.addressof(self._classes), _COMMONNESS,
            "".join(parts).encode(), len(parts), ctypes.addressof(loads), load_size,
            ctypes.addressof(keyed), ctypes.addressof(ordered), room, ctypes.addressof(starts),
            ctypes.addressof(self._filter), ctypes.addressof(self._first), ctypes.addressof(self._second),
        )  # fmt: skip
        count = library.holdfast_make_tables(ctypes.byref(making))
        # Only now: the library holds just their addresses.
        del loads, starts
        return ctypes.create_string_buffer(ordered.raw[: _ENTRY.size * count])

    def find(self, text: bytes, once: bool, most: int = 0, judged: int = 0) -> Hits:
        space = self._space
        # With `most` the caller only needs to know that there are many.
        room = most or room_for(text, judged)
        hits = space.hits if room <= _ROOM else (ctypes.c_uint32 * (3 * room))()
        count = self._call(
            self._by_ref, text, len(text), hits, room, space.seen if once else None, space.counts,
            None if most else space.rest,
        )  # fmt: skip
        counts = space.counts
        if not count:
            return _NO_HITS if most else Hits([], looked=counts[1])
        flat = hits[: 3 * count]
        listed = list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
        rest = (space.rest[0], space.rest[1]) if not most and space.rest[1] else None
        return Hits(listed, counts[0] > 0, rest, counts[1])


_NO_HITS = Hits([])


class _Space(threading.local):
    """The memory a search writes to. Searches of several threads run at once, without the GIL."""

    def __init__(self) -> None:
        self.hits: ctypes.Array[ctypes.c_uint32] = (ctypes.c_uint32 * (3 * _ROOM))()
        self.seen = (ctypes.c_uint64 * _SEEN)()
        self.counts = (ctypes.c_size_t * 2)()
        self.rest = (ctypes.c_size_t * 2)()
