"""Other spellings of a text: escapes, percent signs, base64. What is found in one is removed from the text itself."""

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from urllib.parse import unquote_to_bytes

from holdfast.redact.rule import Span

Find = Callable[[bytes], list[Span]]

_ESCAPE = re.compile(
    rb"[\\&](?:(?<=\\)\\{0,7}(?:(?:u00|x)([2-7][0-9A-Fa-f])|(/))|(?<=&)(?:#x([2-7][0-9A-Fa-f]);|#(\d{2,3});|(quot|amp|apos|lt|gt);))"
)
_ENTITIES = {b"quot": b'"', b"amp": b"&", b"apos": b"'", b"lt": b"<", b"gt": b">"}
_PERCENT = re.compile(rb"%([2-7][0-9A-Fa-f])")
_RUN = re.compile(rb"[^\s\"'<>\\\x1e\x1f`]{1,4096}")
_WINDOW_BEFORE, _WINDOW_AFTER = 256, 2048
_DUMP = b"00000010"
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX_DUMP = re.compile(
    rb"(?<![0-9a-f])(?:[0-9a-f]{6,8}[: ] {0,2}(?:[0-9a-f]{2,4} {1,2}){1,16}[^\n\x1f]{0,24}(?:\n|(?=\x1f)|$)){2,400}"
)
_HEX_LINE = re.compile(rb"(?<![0-9a-f])[0-9a-f]{6,8}[: ] {0,2}((?:[0-9a-f]{4} |[0-9a-f]{2} {1,2}){1,16})")
_CODES = tuple(f"{kind}{digit}" for kind in ("\\u00", "\\x") for digit in "234567")
ESCAPE_MARKS = (*_CODES, "\\/", "&#", "&quot;", "&amp;")
AFTER_MARK = {"\\/": (bytes(range(0x21, 0x7F)), 1), "&#": (b"0123456789xX", 1)}
"""What follows marks of two characters."""
DUMP_MARKS = ("00000010: ", "00000010  ")
PERCENT_MARKS = tuple(
    {
        mark
        for code in range(0x20, 0x7F)
        for mark in (f"%{code:02x}", f"%{code:02X}")
        if chr(code).isalnum() or chr(code) in "_-:@/=+.~"
    }
)
_STEMS = (
    "password", "PASSWORD", "Password", "passwd", "secret", "SECRET", "Secret", "token", "TOKEN", "Token", "api_key", "API_KEY",
    "apiKey", "PRIVATE KEY", "_KEY=", "_PASS=", "ghp_", "sk-ant-", "github_pat_", "AKIA", "xoxb-", "postgres", "mongodb", "redis://",
)  # fmt: skip


def base64_marks() -> tuple[str, ...]:
    """How words of secrets look inside base64, at each of the three places they may begin at."""
    marks = set()
    for stem in _STEMS:
        for shift in range(3):
            encoded = base64.b64encode(b"\0" * shift + stem.encode()).decode()
            first = (0, 2, 3)[shift]
            last = (len(stem) + shift) * 8 // 6
            if last - first >= 5:
                marks.add(encoded[first:last])
    return tuple(sorted(marks))


class View:
    """A text that was rewritten, and where each part of it came from."""

    def __init__(self, text: bytes, pattern: re.Pattern[bytes], replace: Callable[[re.Match[bytes]], bytes]) -> None:
        parts: list[bytes] = []
        self._out: list[int] = [0]
        self._in: list[int] = [0]
        at = size = 0
        for match in pattern.finditer(text):
            parts += (text[at : match.start()], replace(match))
            size += len(parts[-2])
            self._out += (size, size + len(parts[-1]))
            self._in += (match.start(), match.end())
            size += len(parts[-1])
            at = match.end()
        self.text = b"".join((*parts, text[at:]))

    def source_span(self, span: Span, offset: int = 0) -> Span:
        return offset + self._source(span[0]), offset + self._source_end(span[1]), span[2]

    def _source(self, at: int) -> int:
        n = bisect_right(self._out, at) - 1
        return self._in[n] + (at - self._out[n] if n % 2 == 0 else 0)

    def _source_end(self, at: int) -> int:
        n = bisect_right(self._out, at - 1) - 1
        return self._in[n] + at - self._out[n] if n % 2 == 0 else self._in[n + 1]


def find_in_escaped(text: bytes, hits: list[int], find: Find) -> list[Span]:
    """Secrets that appear once `\\u0070`, `\\x70`, `&quot;` and the like are read."""
    found = find_in_hex_dump(text, find) if _DUMP in text else []
    for start, end in _windows(hits, len(text)):
        window = text[start:end]
        plain = _ESCAPE.sub(_unescape, window)
        if plain != window and find(plain):
            view = View(window, _ESCAPE, _unescape)
            found += [view.source_span(span, start) for span in find(view.text)]
    return found


def _windows(hits: list[int], length: int) -> Iterator[tuple[int, int]]:
    """What lies around these places; where two meet they are one."""
    start = end = -1
    for hit in hits:
        if hit > end:
            if start >= 0:
                yield start, end
            start = max(0, end, hit - _WINDOW_BEFORE)
        end = min(length, hit + _WINDOW_AFTER)
    if start >= 0:
        yield start, end


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1] or match[3]
    if code:
        return bytes([int(code, 16)])
    if match[4]:
        return bytes([int(match[4])]) if 32 <= int(match[4]) < 127 else match[0]
    return match[2] or _ENTITIES[match[5]]


def find_in_percent(text: bytes, hits: list[int], find: Find) -> list[Span]:
    """Secrets in addresses and forms that are percent-encoded."""
    found: list[Span] = []
    for start, end in runs_around(text, hits):
        if not find(unquote_to_bytes(text[start:end])):
            continue
        view = View(text[start:end], _PERCENT, lambda match: bytes([int(match[1], 16)]))
        found += [view.source_span(span, start) for span in find(view.text)]
    return found


def runs_around(text: bytes, hits: list[int]) -> Iterator[tuple[int, int]]:
    """The runs without a space or a quote that hold these places, each once. A run is at most 4 KB to either side."""
    done = -1
    for hit in hits:
        if hit < done:
            continue
        start = max(done, hit - 1024, 0)
        first = max(
            (text.rfind(stop, start, hit) for stop in (b" ", b"\n", b'"', b"'", b"\x1e", b"\x1f", b"<", b"\t")),
            default=-1,
        )
        start = max(start, first + 1)
        run = _RUN.match(text, start)
        if run and run.end() > hit:
            done = run.end()
            yield start, done


def find_in_base64(text: bytes, hits: list[int], find: Find) -> list[Span]:
    """Runs of base64 whose content holds a secret are removed whole."""
    found: list[Span] = []
    done = -1
    for hit in hits:
        if hit < done:
            continue
        start = hit
        lowest = max(done, 0, hit - 4096)
        while start > lowest and (text[start - 1 : start].isalnum() or text[start - 1 : start] in (b"+", b"/")):
            start -= 1
        run = _BASE64.match(text, start, start + 65536)
        if not run:
            continue
        done = run.end()
        if _holds_secret(run[0], find):
            found.append((start, done, "encoded-secret"))
    return found


def _holds_secret(run: bytes, find: Find) -> bool:
    body = run.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    try:
        content = base64.b64decode(
            body[: len(body) // 4 * 4 + (len(body) % 4 if len(body) % 4 > 1 else 0)] + b"=" * (-len(body) % 4)
        )
    except (binascii.Error, ValueError):
        return False
    return bool(find(content))


def find_in_hex_dump(text: bytes, find: Find) -> list[Span]:
    """Dumps of `xxd` and `hexdump -C` whose bytes hold a secret are removed whole."""
    found: list[Span] = []
    for dump in _HEX_DUMP.finditer(text):
        digits = b"".join(line[1].replace(b" ", b"") for line in _HEX_LINE.finditer(dump[0]))
        content = bytes.fromhex(digits[: len(digits) // 2 * 2].decode())
        if find(content):
            found.append((dump.start(), dump.end(), "encoded-secret"))
    return found
