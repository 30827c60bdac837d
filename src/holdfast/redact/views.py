"""Other spellings of a text: escapes, percent signs, base64. What is found in one is removed from the text itself."""

import base64
import binascii
import ctypes
import re
import threading
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from holdfast.core.lazy import lazy_pattern
from holdfast.redact.acceptance import STRING_END
from holdfast.redact.anchors import load_library
from holdfast.redact.judge import Span

Find = Callable[[bytes], list[Span] | None]
"""None: there was not enough work left to read it."""
UNJUDGED = "unjudged"
"""The kind of what holds more candidates than can be judged: it is removed unread."""

# `\u0070`, `\x70`, `\U00000070`, `\u{70}`, `\160`, `\/` and `\_` with up to seven further backslashes; `&#x70;`, `&#112;`
# and named entities.
_ESCAPE = lazy_pattern(
    rb"[\\&](?:(?<=\\)\\{0,7}(?:(?:u00|U000000|x(?!\{))([2-7][0-9A-Fa-f])|([/_])|[ux]\{0{0,4}([2-7][0-9A-Fa-f])\}"
    rb"|(1[0-7]{2}|0[4-7][0-7]|[4-7][0-7](?![0-7])))"
    rb"|(?<=&)(?:#x([2-7][0-9A-Fa-f]);|#(\d{2,3});|(quot|amp|apos|lt|gt);))"
)
_ENTITIES = {b"quot": b'"', b"amp": b"&", b"apos": b"'", b"lt": b"<", b"gt": b">"}
_PERCENT = lazy_pattern(rb"%([2-7][0-9A-Fa-f])")
# In bytes: a secret that begins before a mark or goes on behind it is still seen whole.
_WINDOW_BEFORE, _WINDOW_AFTER, _WINDOW_GAP = 256, 2048, 4096
_DUMP = b"00000010"
_BASE64 = lazy_pattern(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
# At least two lines as `xxd` and `hexdump -C` write them: offset, bytes in hexadecimal, text.
_HEX_DUMP = lazy_pattern(
    rb"(?<![0-9a-f])(?:[0-9a-f]{6,8}[: ] {0,2}(?:[0-9a-f]{2,4} {1,2}){1,16}[^\n\x1f]{0,24}(?:\n|(?=\x1f)|$)){2,400}"
)
_HEX_LINE = lazy_pattern(rb"(?<![0-9a-f])[0-9a-f]{6,8}[: ] {0,2}((?:[0-9a-f]{4} |[0-9a-f]{2} {1,2}){1,16})")
_CODES = tuple(f"{kind}{digit}" for kind in ("\\u00", "\\x", "\\U000000") for digit in "234567")
# Of octal codes those of letters and digits: a terminal's colours begin with `\033`.
_OCTAL_CODES = tuple(f"\\{digits}" for digits in ("06", "07", *(f"1{digit}" for digit in "01234567")))
ESCAPE_MARKS = (*_CODES, *_OCTAL_CODES, "\\u{", "\\x{", "\\/", "\\_", "&#", "&quot;", "&amp;", "&lt;")
AFTER_MARK = {
    "\\/": (bytes(range(0x21, 0x7F)), 1),
    "\\_": (b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 4),
    "\\u{": (b"0234567", 1),
    "\\x{": (b"0234567", 1),
    "&#": (b"0123456789xX", 1),
} | dict.fromkeys(_OCTAL_CODES, (b"01234567", 1))
"""What follows marks of two characters."""
DUMP_MARKS = ("00000010: ", "00000010  ")
PERCENT_MARKS = tuple(
    dict.fromkeys(
        mark
        for code in range(0x20, 0x7F)
        for mark in (f"%{code:02x}", f"%{code:02X}")
        if chr(code).isalnum() or chr(code) in "_-:@/=+.~%"
    )
)
# Words that are likely near a secret; base64 is decoded only where one of them shows.
_STEMS = (
    "password", "PASSWORD", "Password", "passwd", "secret", "SECRET", "Secret", "token", "TOKEN", "Token", "api_key", "API_KEY",
    "apiKey", "PRIVATE KEY", "_KEY=", "_PASS=", "ghp_", "sk-ant-", "github_pat_", "AKIA", "xoxb-", "postgres", "mongodb", "redis://",
)  # fmt: skip


HEX_MARKS = tuple(
    stem.encode().hex()
    for stem in ("password", "PASSWORD", "passwd", "secret", "SECRET", "token", "TOKEN", "api_key", "API_KEY")
)
"""How words of secrets look in hexadecimal."""
COMPRESSED_MARKS = ("H4sI", "eJw", "eJx", "eJy", "eJz")
"""How base64 of what gzip or zlib made begins."""
AFTER_COMPRESSED = (b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-", 36)
_MOST_UNPACKED = 1 << 18
NUL_MARKS = ("\\u0000", "\0")


def base64_marks() -> tuple[str, ...]:
    """How words of secrets look inside base64, at each of the three places they may begin at."""
    marks = set()
    for stem in _STEMS:
        for shift in range(3):
            encoded = base64.b64encode(b"\0" * shift + stem.encode()).decode()
            # The first and last characters also depend on the bytes around the stem: they are left out.
            first = (0, 2, 3)[shift]
            last = (len(stem) + shift) * 8 // 6
            # Shorter marks appear in base64 by chance.
            if last - first >= 5:
                marks.add(encoded[first:last])
    return tuple(sorted(marks))


Decoded = tuple[bytes, Sequence[int], Sequence[int]]


class View:
    """A text that was rewritten, and where each part of it came from: pairs of places, one in the new text and one in
    the old, at the start and at both ends of each change."""

    def __init__(self, decoded: Decoded) -> None:
        self.text, self._out, self._in = decoded

    def changed_span(self, offset: int = 0) -> Span:
        """From the first change to the last, for a text that is not read."""
        return offset + self._in[1], offset + self._in[-1], UNJUDGED

    def source_span(self, span: Span, offset: int = 0) -> Span:
        return offset + self._source(span[0]), offset + self._source_end(span[1]), span[2]

    def _source(self, at: int) -> int:
        n = bisect_right(self._out, at) - 1
        # Even pairs begin a stretch that was copied; odd ones an escape, which maps to its start.
        return self._in[n] + (at - self._out[n] if n % 2 == 0 else 0)

    def _source_end(self, at: int) -> int:
        n = bisect_right(self._out, at - 1) - 1
        return self._in[n] + at - self._out[n] if n % 2 == 0 else self._in[n + 1]


def view_spelling(text: bytes, percent: bool = False) -> View:
    """What escapes, or percent signs, stand for."""
    library = load_library()
    return View(_decode_natively(library, text, percent) if library else _decode_escapes(text, percent))


# Colours of a terminal and the clearing of a line, as bytes or as programs write them; the ends of links.
_COLOURS = lazy_pattern(
    rb"(?:(?:\x1b|(?<!\\)\\{1,8}(?:u001[bB]|x1[bB]|033|e))\[[0-9;:]{0,24}[mK]|\x1b\]8;[^\x07\x1b\x1e\x1f\r\n]{0,399}(?:\x07|\x1b\\))+"
)
COLOUR_MARKS = ("\x1b[", "\x1b]8;", "u001b[", "u001B[", "u001b]8;", "x1b[", "x1B[", "\\033[", "\\e[")
_LINK_IN_JSON = b"\\u001b]8;"
_BEFORE_COLOUR = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.-")
_AFTER_COLOUR = _BEFORE_COLOUR - frozenset(b"=-")


def view_without_colours(text: bytes) -> View | None:
    """What a terminal shows, where it shows a word in one piece that is none in the text."""
    library = load_library()
    decoded, is_within = _strip_natively(library, text) if library else _strip_colours(text)
    return View(decoded) if is_within else None


def hides_word(body: bytes) -> bool:
    """Whether colours lie within a word of this undecoded JSON, or perhaps a link."""
    return view_without_colours(body) is not None or _LINK_IN_JSON in body


def _strip_natively(library: ctypes.CDLL, text: bytes) -> tuple[Decoded, bool]:
    out, offsets = BUFFERS.of_size(len(text) + 1, 2 * len(text) + 8)
    size = library.holdfast_strip_colours(text, len(text), out, offsets, BUFFERS.count_ref, BUFFERS.other_ref)
    if not BUFFERS.other.value:
        return (text, (), ()), False
    pairs = BUFFERS.numbers(offsets, 2)
    return (ctypes.string_at(out, size), pairs[::2], pairs[1::2]), True


def _strip_colours(text: bytes) -> tuple[Decoded, bool]:
    parts: list[bytes] = []
    out, source = [0], [0]
    at = size = 0
    is_within = False
    for match in _COLOURS.finditer(text):
        start, end = match.span()
        is_within |= 0 < start < end < len(text) and text[start - 1] in _BEFORE_COLOUR and text[end] in _AFTER_COLOUR
        parts.append(text[at:start])
        size += start - at
        out += (size, size)
        source += (start, end)
        at = end
    return (b"".join((*parts, text[at:])), out, source), is_within


def _decode_escapes(text: bytes, percent: bool) -> Decoded:
    parts: list[bytes] = []
    out, source = [0], [0]
    at = size = 0
    for match in (_PERCENT if percent else _ESCAPE).finditer(text):
        parts += (text[at : match.start()], bytes([int(match[1], 16)]) if percent else _unescape_match(match))
        size += len(parts[-2])
        out += (size, size + len(parts[-1]))
        source += (match.start(), match.end())
        size += len(parts[-1])
        at = match.end()
    return b"".join((*parts, text[at:])), out, source


def _decode_natively(library: ctypes.CDLL, text: bytes, percent: bool) -> Decoded:
    # Room for the worst case: every byte is kept, or every second one begins a change.
    out, offsets = BUFFERS.of_size(len(text) + 1, 2 * len(text) + 8)
    size = library.holdfast_decode_view(text, len(text), int(percent), out, offsets, BUFFERS.count_ref)
    pairs = BUFFERS.numbers(offsets, 2)
    return ctypes.string_at(out, size), pairs[::2], pairs[1::2]


class _Buffers(threading.local):
    """What the library writes to. Kept between calls: fresh memory costs more than the work that is done in it."""

    def __init__(self) -> None:
        self.count = ctypes.c_size_t()
        self.count_ref = ctypes.byref(self.count)
        self.other = ctypes.c_size_t()
        self.other_ref = ctypes.byref(self.other)
        self._make(1 << 16, 1 << 16)

    def _make(self, size: int, numbers: int) -> None:
        self._text = ctypes.create_string_buffer(size)
        self._numbers = (ctypes.c_uint32 * numbers)()

    def of_size(self, size: int, numbers: int) -> tuple[Any, Any]:
        if size > len(self._text) or numbers > len(self._numbers):
            # One very large text must not hold its memory for the life of the thread.
            if size > _MOST_KEPT:
                return ctypes.create_string_buffer(size), (ctypes.c_uint32 * numbers)()
            self._make(max(size, len(self._text)), max(numbers, len(self._numbers)))
        return self._text, self._numbers

    def numbers(self, offsets: Any, width: int) -> memoryview:
        """What the library wrote, as a copy: the next call writes over it."""
        return memoryview(ctypes.string_at(offsets, 4 * width * self.count.value)).cast("I")


_MOST_KEPT = 1 << 20
BUFFERS = _Buffers()


class Spellings:
    """Other spellings of the texts of one payload. It is looked at and then read, and each is made once."""

    __slots__ = ("_dumps", "_shown", "_views")

    def __init__(self) -> None:
        self._views: dict[tuple[int, int, int, bool], tuple[bytes, View | None]] = {}
        self._dumps: dict[int, tuple[bytes, Dumps]] = {}
        self._shown: dict[int, tuple[bytes, View | None]] = {}

    def view(self, text: bytes, start: int, end: int, percent: bool) -> View | None:
        """This part of the text, decoded; none where there is nothing to decode, so that it was read in full already."""
        # The text is kept beside what was made of it: no other can have its identity meanwhile.
        key = id(text), start, end, percent
        if key not in self._views:
            window = text[start:end]
            view = view_spelling(window, percent)
            self._views[key] = text, view if view.text != window else None
        return self._views[key][1]

    def shown(self, text: bytes) -> View | None:
        """As a terminal shows it, without colours."""
        if id(text) not in self._shown:
            self._shown[id(text)] = text, view_without_colours(text)
        return self._shown[id(text)][1]

    def dumps(self, text: bytes) -> "Dumps":
        if id(text) not in self._dumps:
            self._dumps[id(text)] = text, _list_dumps(text)
        return self._dumps[id(text)][1]


def find_in_escaped(text: bytes, hits: list[int], find: Find, spellings: Spellings) -> list[Span]:
    """Secrets that appear once `\\u0070`, `\\x70`, `&quot;` and the like are read."""
    spans = find_in_hex_dump(text, find, spellings) if _DUMP in text else []
    return spans + _find_in_windows(text, hits, find, spellings, percent=False)


def _find_in_windows(text: bytes, hits: list[int], find: Find, spellings: Spellings, percent: bool) -> list[Span]:
    spans: list[Span] = []
    for start, end in _merge_windows(hits, len(text)):
        view = spellings.view(text, start, end, percent)
        found = find(view.text) if view else []
        if view and found is None:
            spans.append(view.changed_span(start))
        elif view and found:
            spans += [view.source_span(span, start) for span in found]
    return spans


def _merge_windows(hits: list[int], length: int) -> Iterator[tuple[int, int]]:
    """What lies around these places; where two meet they are one."""
    start = end = -1
    for hit in hits:
        # To read what lies between two costs less than to read them one by one.
        if hit > end + _WINDOW_GAP or start < 0:
            if start >= 0:
                yield start, end
            # Windows never overlap: a secret would be reported twice.
            start = max(0, end, hit - _WINDOW_BEFORE)
        end = min(length, hit + _WINDOW_AFTER)
    if start >= 0:
        yield start, end


def _unescape_match(match: re.Match[bytes]) -> bytes:
    code = match[1] or match[3] or match[5]
    if code:
        return bytes([int(code, 16)])
    if match[4]:
        return bytes([int(match[4], 8)])
    if match[6]:
        # Other codes are left as they are: they are no printable ASCII.
        return bytes([int(match[6])]) if 32 <= int(match[6]) < 127 else match[0]
    return match[2] or _ENTITIES[match[7]]


def find_in_percent(text: bytes, hits: list[int], find: Find, spellings: Spellings) -> list[Span]:
    """Secrets in addresses and forms that are percent-encoded."""
    return _find_in_windows(text, hits, find, spellings, percent=True)


def find_in_base64(text: bytes, hits: list[int], find: Find, is_spent: Callable[[], bool]) -> list[Span]:
    """Runs of base64 whose content holds a secret are removed whole. When the work is spent, so is all that is left."""
    spans: list[Span] = []
    done = -1
    for hit in hits:
        if hit < done:
            continue
        if is_spent():
            # Up to the end of the last run, because none of those in between can be judged any more.
            last = _BASE64.match(text, hits[-1], hits[-1] + 65536)
            spans.append((hit, last.end() if last else hits[-1], UNJUDGED))
            break
        # In bytes: how far back the beginning of the run is looked for.
        lowest = max(done, 0, hit - 4096)
        start = _start_of_run(text, hit, lowest, b"+/")
        # Of the URL-safe alphabet, unless these are the hyphens of the words before it.
        wide = _start_of_run(text, start, lowest, b"+/-_")
        runs = [run for at in dict.fromkeys((start, wide)) if (run := _BASE64.match(text, at, at + 65536))]
        if not runs:
            continue
        done = runs[0].end()
        if any(_holds_secret(run[0], find) for run in runs):
            spans.append((min(run.start() for run in runs), done, "encoded-secret"))
    return spans


_ALNUM = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def _start_of_run(text: bytes, at: int, lowest: int, signs: bytes) -> int:
    return lowest + len(text[lowest:at].rstrip(_ALNUM + signs))


def _holds_secret(run: bytes, find: Find) -> bool:
    return any(find(content) != [] for content in _decode_run(run))


def _decode_run(run: bytes) -> Iterator[bytes]:
    """What a run of letters and digits may stand for: hexadecimal, base64, and what that unpacks to."""
    digits = run.removeprefix(b"0x")
    if not digits.translate(None, b"0123456789abcdefABCDEF"):
        yield bytes.fromhex(digits[: len(digits) // 2 * 2].decode())
        return
    body = run.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    try:
        content = base64.b64decode(
            # A last group of one character is no base64: it is left out.
            body[: len(body) // 4 * 4 + (len(body) % 4 if len(body) % 4 > 1 else 0)] + b"=" * (-len(body) % 4)
        )
    except (binascii.Error, ValueError):
        return
    yield _unpack(content) if content[:2] in (b"\x1f\x8b", b"x\x9c", b"x\x01", b"x\xda", b"x^") else content


def _unpack(content: bytes) -> bytes:
    """As much as can be unpacked; the rest of it may be cut off."""
    try:
        return zlib.decompressobj(wbits=47).decompress(content, _MOST_UNPACKED)
    except zlib.error:
        return content


# In bytes, as lines of a dump below: more of it than anybody reads is not judged while an agent waits.
_MOST_UTF16, _MOST_DUMPED = 1 << 14, 1 << 15
_ZEROS = b"\0" * 8
_UTF16 = lazy_pattern(rb"(?:[\x01-\xff]\x00){8,4096}[\x01-\xff]?|(?:\x00[\x01-\xff]){8,4096}")


def find_in_utf16(text: bytes, find: Find, is_spent: Callable[[], bool]) -> list[Span]:
    """Secrets in UTF-16 that was read as bytes: every second one is a zero."""
    spans: list[Span] = []
    start = max(0, text.find(b"\0") - 1)
    stop = min(len(text), start + _MOST_UTF16)
    # Every run has its zeros at every second place; the pattern is asked only where there are as many.
    zeros = any(_ZEROS in text[first:stop:2] for first in (start, start + 1))
    for run in _UTF16.finditer(text, start, stop) if zeros else ():
        if is_spent():
            stop = run.start()
            break
        first = run.start() + (text[run.start()] == 0)
        spans += [
            (first + 2 * one, first + 2 * last - 1, kind) for one, last, kind in find(text[first : run.end() : 2]) or ()
        ]
    if text.count(b"\0", stop) * 3 > len(text) - stop:
        spans.append((stop, text.rfind(b"\0") + 1, UNJUDGED))
    return spans


def _end_of_dumps(text: bytes, at: int) -> int:
    end = text.find(STRING_END, at)
    return end if end >= 0 else len(text)


Dumps = tuple[list[tuple[int, int, bytes]], Span | None]
"""Where each dump lies and the bytes that it shows; what is too much to be read."""


def _list_dumps(text: bytes) -> Dumps:
    dumps: list[tuple[int, int, bytes]] = []
    read = 0
    for dump in _HEX_DUMP.finditer(text):
        read += dump.end() - dump.start()
        if read > _MOST_DUMPED:
            return dumps, (dump.start(), _end_of_dumps(text, dump.end()), UNJUDGED)
        digits = b"".join(_HEX_LINE.findall(dump[0])).replace(b" ", b"")
        # An odd digit at the end is cut off.
        dumps.append((*dump.span(), bytes.fromhex(digits[: len(digits) // 2 * 2].decode())))
    return dumps, None


def find_in_hex_dump(text: bytes, find: Find, spellings: Spellings) -> list[Span]:
    """Dumps of `xxd` and `hexdump -C` whose bytes hold a secret are removed whole."""
    dumps, rest = spellings.dumps(text)
    spans = [(start, end, "encoded-secret") for start, end, content in dumps if find(content) != []]
    return [*spans, rest] if rest else spans
