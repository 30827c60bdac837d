"""Reads other spellings of a text (escapes, percent codes, base64) and maps findings back to it."""

import base64
import binascii
import ctypes
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from holdfast.analysis.redact.native_library import BUFFERS, load_library
from holdfast.analysis.redact.rule_data import PATTERNS, RULES
from holdfast.analysis.redact.spans import STRING_END, UNJUDGED, Span

T = TypeVar("T")
Find = Callable[[bytes], list[Span] | None]
"""None: not enough work was left to read it."""

_ENTITIES = {name.encode(): sign.encode() for name, sign in RULES.entities.items()}
# In bytes: a secret that begins before a mark or continues after it is seen whole.
_WINDOW_BEFORE, _WINDOW_AFTER, _WINDOW_GAP = 256, 2048, 4096
_DUMP = b"00000010"
_MOST_UNPACKED = 1 << 18

Decoded = tuple[bytes, Sequence[int], Sequence[int]]


class View:
    """A rewritten text and the origin of its parts: pairs of positions in the new and the old text, at the start and
    at both ends of each change."""

    def __init__(self, decoded: Decoded) -> None:
        self.text, self._out, self._in = decoded

    def changed_span(self, offset: int = 0) -> Span:
        """From the first change to the last, for a text that is not read."""
        return offset + self._in[1], offset + self._in[-1], UNJUDGED

    def source_span(self, span: Span, offset: int = 0) -> Span:
        return offset + self._source(span[0]), offset + self._source_end(span[1]), span[2]

    def _source(self, at: int) -> int:
        n = bisect_right(self._out, at) - 1
        # Even pairs begin a copied stretch; odd ones an escape, which maps to its start.
        return self._in[n] + (at - self._out[n] if n % 2 == 0 else 0)

    def _source_end(self, at: int) -> int:
        n = bisect_right(self._out, at - 1) - 1
        return self._in[n] + at - self._out[n] if n % 2 == 0 else self._in[n + 1]


def view_spelling(text: bytes, percent: bool = False) -> View:
    """Decode escapes or percent codes."""
    library = load_library()
    return View(_decode_natively(library, text, percent) if library else _decode_escapes(text, percent))


_LINK_IN_JSON = b"\\u001b]8;"
_BEFORE_COLOUR = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.-")
_AFTER_COLOUR = _BEFORE_COLOUR - frozenset(b"=-")


def view_without_colours(text: bytes) -> View | None:
    """The text as a terminal shows it, with words joined that colours split."""
    library = load_library()
    decoded, is_within = _strip_natively(library, text) if library else _strip_colours(text)
    return View(decoded) if is_within else None


def hides_word(body: bytes) -> bool:
    """Whether colours, or perhaps a link, are inside a word of this undecoded JSON."""
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
    for match in PATTERNS.colours.finditer(text):
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
    for match in (PATTERNS.percent if percent else PATTERNS.escape).finditer(text):
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


class Spellings:
    """Caches other spellings of one payload's texts, which are used in two passes."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], tuple[bytes, Any]] = {}

    def once(self, make: Callable[..., T], text: bytes, *where: int) -> T:
        # The text is kept with the result, so that no other text can have its identity.
        key = make, id(text), *where
        if key not in self._made:
            self._made[key] = text, make(text, *where)
        made: T = self._made[key][1]
        return made


def _view_window(text: bytes, start: int, end: int, percent: bool) -> View | None:
    """Decode this part of the text; None if there is nothing to decode."""
    window = text[start:end]
    view = view_spelling(window, percent)
    return view if view.text != window else None


def find_in_windows(text: bytes, hits: list[int], find: Find, spellings: Spellings, percent: bool) -> list[Span]:
    r"""Find secrets that appear once `\u0070`, `\x70`, `&quot;` or percent codes are decoded."""
    spans = find_in_hex_dump(text, find, spellings) if not percent and _DUMP in text else []
    for start, end in _merge_windows(hits, len(text)):
        view = spellings.once(_view_window, text, start, end, percent)
        found = find(view.text) if view else []
        if view and found is None:
            spans.append(view.changed_span(start))
        elif view and found:
            spans += [view.source_span(span, start) for span in found]
    return spans


def _merge_windows(hits: list[int], length: int) -> Iterator[tuple[int, int]]:
    """The surroundings of these positions, merged where they meet."""
    start = end = -1
    for hit in hits:
        # Reading the gap costs less than reading two windows.
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
        # Other codes stay: they are no printable ASCII.
        return bytes([int(match[6])]) if 32 <= int(match[6]) < 127 else match[0]
    return match[2] or _ENTITIES[match[7]]


def find_in_base64(text: bytes, hits: list[int], find: Find, is_spent: Callable[[], bool]) -> list[Span]:
    """Remove whole runs of base64 that contain a secret. When the work is spent, the rest is removed too."""
    spans: list[Span] = []
    done = -1
    for hit in hits:
        if hit < done:
            continue
        if is_spent():
            # Up to the end of the last run, because those in between cannot be judged any more.
            last = PATTERNS.base64_run.match(text, hits[-1], hits[-1] + 65536)
            spans.append((hit, last.end() if last else hits[-1], UNJUDGED))
            break
        # In bytes: how far back the start of the run is searched.
        lowest = max(done, 0, hit - 4096)
        start = _start_of_run(text, hit, lowest, b"+/")
        # URL-safe alphabet, unless these are hyphens of preceding words.
        wide = _start_of_run(text, start, lowest, b"+/-_")
        runs = [run for at in dict.fromkeys((start, wide)) if (run := PATTERNS.base64_run.match(text, at, at + 65536))]
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
    """What a run of letters and digits may encode: hexadecimal, base64, and what that unpacks to."""
    digits = run.removeprefix(b"0x")
    if not digits.translate(None, b"0123456789abcdefABCDEF"):
        yield bytes.fromhex(digits[: len(digits) // 2 * 2].decode())
        return
    body = run.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    try:
        content = base64.b64decode(
            # A last group of one character is not base64 and is omitted.
            body[: len(body) // 4 * 4 + (len(body) % 4 if len(body) % 4 > 1 else 0)] + b"=" * (-len(body) % 4)
        )
    except (binascii.Error, ValueError):
        return
    yield _unpack(content) if content[:2] in (b"\x1f\x8b", b"x\x9c", b"x\x01", b"x\xda", b"x^") else content


def _unpack(content: bytes) -> bytes:
    """Decompress as much as possible; the rest may be cut off."""
    try:
        return zlib.decompressobj(wbits=47).decompress(content, _MOST_UNPACKED)
    except zlib.error:
        return content


# In bytes, like lines of a dump below: more is not judged while an agent waits.
_MOST_UTF16, _MOST_DUMPED = 1 << 14, 1 << 15
_ZEROS = b"\0" * 8


def find_in_utf16(text: bytes, find: Find, is_spent: Callable[[], bool]) -> list[Span]:
    """Find secrets in UTF-16 that was read as bytes: every second byte is zero."""
    spans: list[Span] = []
    start = max(0, text.find(b"\0") - 1)
    stop = min(len(text), start + _MOST_UTF16)
    # Every run has zeros at every second position; the pattern runs only where there are enough.
    zeros = any(_ZEROS in text[first:stop:2] for first in (start, start + 1))
    for run in PATTERNS.utf16.finditer(text, start, stop) if zeros else ():
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
"""The position and bytes of each dump; and what is too much to read."""


def _list_dumps(text: bytes) -> Dumps:
    dumps: list[tuple[int, int, bytes]] = []
    read = 0
    for dump in PATTERNS.hex_dump.finditer(text):
        read += dump.end() - dump.start()
        if read > _MOST_DUMPED:
            return dumps, (dump.start(), _end_of_dumps(text, dump.end()), UNJUDGED)
        digits = b"".join(PATTERNS.hex_line.findall(dump[0])).replace(b" ", b"")
        # An odd digit at the end is cut off.
        dumps.append((*dump.span(), bytes.fromhex(digits[: len(digits) // 2 * 2].decode())))
    return dumps, None


def find_in_hex_dump(text: bytes, find: Find, spellings: Spellings) -> list[Span]:
    """Remove whole dumps of `xxd` and `hexdump -C` whose bytes contain a secret."""
    dumps, rest = spellings.once(_list_dumps, text)
    spans = [(start, end, "encoded-secret") for start, end, content in dumps if find(content) != []]
    return [*spans, rest] if rest else spans
