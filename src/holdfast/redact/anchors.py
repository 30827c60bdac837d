"""Where the anchors of the rules stand in a text: one pass, by a small native library or, without it, by Aho–Corasick."""

import ctypes
import re
import struct
import threading
from array import array
from collections.abc import Callable, Iterable
from functools import cache
from itertools import accumulate
from pathlib import Path

import msgspec
from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from holdfast.redact.prefixed import may_be_token

Hit = tuple[int, int, int]
"""The anchor's number, where it begins and where it ends."""

# As HASH_BITS, BUCKET_BITS, SEEN and SECOND in native/search.h.
_HASH_BITS, _BUCKET_BITS = 16, 13
_SEEN = _SECOND = 1 << 13
_ROOM_LEAST, _ROOM_PER = 640, 2048
"""How many hits of a text are reported: so many, and one more for each so many bytes of it."""
_ROOM = 4096
_COMMON = b' etaoinsrhldcumfpgwybv0k\\1"_,.x'
"""The characters of ordinary payloads, the most frequent first."""
_COMMON_PARTS = frozenset(
    b"con Con ret val sig wit ion tio ing ent ate ati the and for ter res pro com per str est men def elf sel imp ort rin lin ine nam ame"
    b" typ ype ode cod dat ata fil ile lis ist arg pri int inp put out tri ext tex key log err ror exc cep not Non one ate han and all cal"
    b" las ass cla cha har err ver ers val alu lue ess ser use par ara ram fro rom obj bje ect rec dec Dec sta tat tes set get add new nex"
    b" 000 ure nte tur urn sto res ith her ere are ove rea ead wri ite raw lse els eck che hec"
    b" fun pat ts. st. jec The nod nfi exe unc wor Key Val ssi ck_ _ke pas ign Str Tes oke re_ sio _pa ont htt Thi ns. qui _pr"
    b" tok .co aut req psw Int cio pac rs. hav riv equ egr iva .lo Fun gra _re odu ntr Com rve eam onl erv teg _co atu ryp ifi"
    b" duc cry at_ api rod ps: ive ecu ppl ble fie too ori spa HTT nsu pli ume tif rvi Tex".split()
) | frozenset(
    word.encode() for word in " fo, 0., us, ke, pa, si, Ke, lo, by, co, ur,er ,ed ,he ,r =,d b,r t,\\u0".split(",")
)
"""Groups of letters that stand in most texts."""
# By byte: its weight, 0 for a rare one.
_COMMONNESS = bytes(40 - _COMMON.index(code) if code in _COMMON else 0 for code in range(256))
_LEFT = b" \"'`=:(,<>[{|&;/@\t\n\x1e\x1f\x9c\x98\xab\x9a\x88"
"""What may stand before a text that stands alone; the last five end the quotes and colons of other scripts."""


_WORD = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# In characters: the runs that `prefixed.find_prefixed` is given.
RUN_LEAST, RUN_MOST = 20, 128
_RUN = re.compile(rb"(?<=[_|:.-])[A-Za-z0-9]{20,}|(?<![A-Za-z0-9])[A-Za-z0-9]{32}(?=[.-])")


class Anchor(msgspec.Struct, frozen=True):
    """A text to search for. At least `count` bytes of `follow` must stand after it; with `alone` nothing may stand before
    it that a word or a name could go on with."""

    text: bytes
    number: int
    follow: bytes = b""
    count: int = 0
    alone: bool = False
    then: bytes = b""
    """The byte right behind these `count`, if only one may stand there."""
    guard: int = 0
    """What else is asked of it, as in native/search.h. Only `GUARD_FAR` changes what is found in the end: the others
    spare a look that finds nothing."""


# As in native/search.h.
GUARD_VALUE, GUARD_RANDOM, GUARD_WORD, GUARD_KEY, GUARD_TOKEN, GUARD_PASS, GUARD_SPOKEN, GUARD_PAREN = (
    1 << bit for bit in range(8)
)
# Bits 8 to 10 hold a number: the width of a stem, or the sort of a mark with GUARD_FAR.
GUARD_CODE, GUARD_PLAIN, GUARD_COOKIE, GUARD_LOGIN, GUARD_FAR = (1 << bit for bit in range(11, 16))
# In bytes, as FAR in native/search.h.
_FAR = 512


class Guards(msgspec.Struct, frozen=True):
    """The words that guards compare with, in lower case."""

    tail: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    glued_key: tuple[str, ...] = ()
    glued_token: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    cookie: tuple[str, ...] = ()
    no_words: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()


class Hits(msgspec.Struct, frozen=True):
    """What a search found. `rest` is where the first and the last of those lie that are too many to be listed."""

    hits: list[Hit]
    left_out: bool = False
    """Whether some stand in the same surroundings as an earlier one, and were left out."""
    rest: tuple[int, int] | None = None
    looked: int = 0
    """How much was compared and asked for it, beyond going through the text."""

    @property
    def numbers(self) -> set[int]:
        """Of what they are hits."""
        return {hit[0] for hit in self.hits}


class AnchorSearch:
    """Finds all of some anchors, overlapping ones too, in the order in which they begin or nearly so."""

    def __init__(self, anchors: Iterable[Anchor], run_number: int = -1, guards: Guards | None = None) -> None:
        """`run_number`: report long runs of letters and digits that may be a token too, under this number."""
        self._anchors = [anchor for anchor in anchors if anchor.text]
        library = load_library()
        # The library hashes three bytes and can add one to an anchor of two, not two to one of a single byte.
        usable = library is not None and min((len(anchor.text) for anchor in self._anchors), default=0) > 1
        self._native = (
            _NativeTables(library, self._anchors, run_number, guards or Guards()) if library and usable else None
        )
        self._automaton = None if self._native else _Automaton(self._anchors, run_number)

    @property
    def is_native(self) -> bool:
        return self._native is not None

    def find(self, text: bytes, once: bool = False, most: int = 0, judged: int = 0) -> Hits:
        """With `once` those are left out that stand in the same surroundings as an earlier one, in texts that have
        very many. With `most` the search may end after so many. At least `judged` are listed, however many there are."""
        if self._native:
            return self._native.find(text, once, most, judged)
        assert self._automaton is not None
        return self._automaton.find(text, judged)


def room_for(text: bytes, judged: int = 0) -> int:
    return max(judged, _ROOM_LEAST + len(text) // _ROOM_PER)


class _Automaton:
    def __init__(self, anchors: list[Anchor], run_number: int = -1) -> None:
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
            if (not anchor.count or _is_followed(text, end, anchor))
            and not _is_within_row(text, start, end)
            and (not anchor.alone or _is_alone(text, start))
            # GUARD_FAR is the highest bit.
            and (anchor.guard < GUARD_FAR or far.is_next(anchor.guard, start))
        ]
        return hits + [
            (self._run_number, *run.span())
            for run in runs
            if len(run[0]) <= RUN_MOST and may_be_token(text, *run.span())
        ]


class _Distance:
    """Of marks that stand close together one is enough."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}

    def is_next(self, sort: int, start: int) -> bool:
        if start < self._next.get(sort, 0):
            return False
        self._next[sort] = start + _FAR
        return True


def _is_followed(text: bytes, end: int, anchor: Anchor) -> bool:
    last = end + anchor.count
    after = text[end:last]
    return (
        len(after) == anchor.count
        and not after.translate(None, anchor.follow)
        and (not anchor.then or text[last : last + 1] == anchor.then)
    )


_ROW_LEAST, _ROW_BEFORE = 8, 2
"""As ROW_LEAST and ROW_BEFORE in native/search.h."""


def _is_within_row(text: bytes, start: int, end: int) -> bool:
    """A text of one letter stands at every place of a longer row of that letter: only where the row begins may it be a
    token."""
    return end - start >= _ROW_LEAST and start >= _ROW_BEFORE and len(set(text[start - _ROW_BEFORE : end])) == 1


def _is_alone(text: bytes, start: int) -> bool:
    """In undecoded JSON a line begins after the two characters of an escape."""
    return not start or text[start - 1] in _LEFT or text[start - 2 : start] in (b"\\n", b"\\t", b"\\r")


# ── The native library: native/anchors.c ─────────────────────────────────────────────────────────────────────────────


# Field by field the struct of native/search.h: text, number, hash; length, key, follow, class, left and then, guard.
_ENTRY = struct.Struct("=IIIHhHHHH")


# Likewise.
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


# As the struct of native/tables.c.
class _Making(ctypes.Structure):
    _fields_ = (
        ("given", ctypes.c_char_p), ("count", ctypes.c_size_t), ("texts", ctypes.c_void_p),
        ("classes", ctypes.c_void_p), ("weights", ctypes.c_char_p), ("parts", ctypes.c_char_p),
        ("part_count", ctypes.c_size_t), ("loads", ctypes.c_void_p), ("load_size", ctypes.c_size_t),
        ("keyed", ctypes.c_void_p), ("ordered", ctypes.c_void_p), ("room", ctypes.c_size_t),
        ("starts", ctypes.c_void_p), ("filter", ctypes.c_void_p), ("first", ctypes.c_void_p),
        ("second", ctypes.c_void_p),
    )  # fmt: skip


@cache
def load_library() -> ctypes.CDLL | None:
    """The library that was built for this machine with the package, if one was."""
    try:
        library = ctypes.CDLL(str(Path(__file__).with_name("libanchors.so")))
        find = library.holdfast_find_anchors
        library.holdfast_make_tables  # noqa: B018 (a library of an older build lacks it)
    except (OSError, AttributeError):
        return None
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    find.restype = size
    find.argtypes = (pointer, ctypes.c_char_p, size, pointer, size, pointer, pointer, pointer)
    text = ctypes.c_char_p
    for name, arguments in (
        ("holdfast_decode_view", (text, size, ctypes.c_int, pointer, pointer, pointer)),
        ("holdfast_strip_colours", (text, size, pointer, pointer, pointer, pointer)),
        ("holdfast_flatten_json", (text, size, pointer, pointer, pointer, pointer)),
        ("holdfast_find_word", (text, size, size, text, size)),
        ("holdfast_make_tables", (pointer,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = size, arguments
    return library


FindWord = Callable[[bytes, int], int]
"""(text, where to begin) → where the word stands, or the text's length."""


@cache
def word_search(word: bytes) -> FindWord | None:
    """For a word, given in lower case, in any mixture of capitals. In a long text it takes a tenth of what `find` and patterns
    do; None without the library."""
    library = load_library()
    if library is None:
        return None
    find, length = library.holdfast_find_word, len(word)
    return lambda text, at: int(find(text, len(text), at, word, length))


class _NativeTables:
    def __init__(
        self, library: ctypes.CDLL, anchors: list[Anchor], run_number: int = -1, guards: Guards | None = None
    ) -> None:
        self._call = library.holdfast_find_anchors
        # The library expects the classes 0 to 2 in this order.
        classes: dict[bytes, int] = {b"": 0, _LEFT: 1, _WORD: 2}
        texts, given = bytearray(), bytearray()
        for anchor in anchors:
            given += _ENTRY.pack(
                len(texts), anchor.number, 0, len(anchor.text), 0, anchor.count,
                classes.setdefault(anchor.follow, len(classes)) if anchor.count else 0,
                anchor.alone | (anchor.then[0] << 8 if anchor.then else 0), anchor.guard,
            )  # fmt: skip
            texts += anchor.text
        # Kept as attributes: the library holds bare addresses, which do not keep the buffers alive.
        self._texts = ctypes.create_string_buffer(bytes(texts))
        self._classes = ctypes.create_string_buffer(b"".join(map(_class_table, classes)))
        self._filter = ctypes.create_string_buffer(4 << _HASH_BITS)
        self._first = ctypes.create_string_buffer(4 * ((1 << _BUCKET_BITS) + 1))
        self._second = ctypes.create_string_buffer(2 * _SECOND)
        self._entries = self._make_tables(library, anchors, bytes(given))
        self._lists = [ctypes.create_string_buffer(words) for words in _word_lists(guards or Guards())]
        self._tables = _Tables(
            ctypes.addressof(self._filter), ctypes.addressof(self._first), ctypes.addressof(self._entries),
            ctypes.addressof(self._texts), ctypes.addressof(self._classes), ctypes.addressof(self._second),
            *map(ctypes.addressof, self._lists),
            max(run_number, 0), RUN_LEAST if run_number >= 0 else 0, RUN_MOST,
        )  # fmt: skip
        self._by_ref = ctypes.byref(self._tables)
        self._space = _Space()

    def _make_tables(self, library: ctypes.CDLL, anchors: list[Anchor], given: bytes) -> ctypes.Array[ctypes.c_char]:
        """The anchors in the order in which the library looks for them; it fills the filters meanwhile."""
        # An anchor of two bytes has an entry for each byte that may stand beside it.
        room = len(anchors) + 255 * sum(len(anchor.text) == 2 for anchor in anchors)
        keyed, ordered = (ctypes.create_string_buffer(_ENTRY.size * room) for _ in range(2))
        parts = b"".join(_COMMON_PARTS)
        load_size = 1 << (2 * (len(anchors) + len(_COMMON_PARTS))).bit_length()
        making = _Making(
            given, len(anchors), ctypes.addressof(self._texts), ctypes.addressof(self._classes), _COMMONNESS,
            parts, len(_COMMON_PARTS), ctypes.addressof(loads := ctypes.create_string_buffer(8 * load_size)), load_size,
            ctypes.addressof(keyed), ctypes.addressof(ordered), room,
            ctypes.addressof(starts := ctypes.create_string_buffer(4 * ((1 << _HASH_BITS) + 1))),
            ctypes.addressof(self._filter), ctypes.addressof(self._first), ctypes.addressof(self._second),
        )  # fmt: skip
        count = library.holdfast_make_tables(ctypes.byref(making))
        # The library had their addresses only.
        del loads, starts
        return ctypes.create_string_buffer(ordered.raw[: _ENTRY.size * count])

    def find(self, text: bytes, once: bool, most: int = 0, judged: int = 0) -> Hits:
        space = self._space
        # With `most` the caller only wants to know that there are many, so no room is needed beyond it.
        room = most or room_for(text, judged)
        hits = space.hits if room <= _ROOM else (ctypes.c_uint32 * (3 * room))()
        count = self._call(
            self._by_ref, text, len(text), hits, room, space.seen if once else None, space.told,
            None if most else space.rest,
        )  # fmt: skip
        told = space.told
        if not count:
            return _NO_HITS if most else Hits([], looked=told[1])
        flat = hits[: 3 * count]
        listed = list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
        rest = (space.rest[0], space.rest[1]) if not most and space.rest[1] else None
        return Hits(listed, told[0] > 0, rest, told[1])


_NO_HITS = Hits([])


class _Space(threading.local):
    """What a search writes to. Searches of several threads run at once: the library is called without the GIL."""

    def __init__(self) -> None:
        self.hits: ctypes.Array[ctypes.c_uint32] = (ctypes.c_uint32 * (3 * _ROOM))()
        self.seen = (ctypes.c_uint64 * _SEEN)()
        self.told = (ctypes.c_size_t * 2)()
        self.rest = (ctypes.c_size_t * 2)()


_INDEXED = ("tail", "said", "plain", "no_words", "public")
_LENGTHS = 32


def _word_lists(guards: Guards) -> list[bytes]:
    return [
        _indexed_words(words) if name in _INDEXED else _plain_words(words)
        for name, words in msgspec.structs.asdict(guards).items()
    ]


def _plain_words(words: Iterable[str]) -> bytes:
    return b"".join(bytes([len(word)]) + word.encode() for word in words)


def _indexed_words(words: tuple[str, ...]) -> bytes:
    """Long lists: where the words of each length begin, then the words, the short ones first."""
    ordered = sorted((word for word in words if len(word) < _LENGTHS), key=lambda word: (len(word), word))
    sizes = [0] * (_LENGTHS + 1)
    for word in ordered:
        sizes[len(word) + 1] += len(word)
    head = array("H", accumulate(sizes, initial=2 * (_LENGTHS + 1)))[1:]
    return head.tobytes() + "".join(ordered).encode()


def _class_table(members: bytes) -> bytes:
    table = bytearray(256)
    for code in members:
        table[code] = 1
    return bytes(table)
