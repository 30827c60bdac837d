"""Finds and removes quotations of a text: whole, cut, in other case, in Markdown, escaped, or partial."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from holdfast.core.lazy import lazy_pattern

INSTEAD = "[forgotten]"
FEWEST = 4
"""This many leading words in a row count as a quotation; a shorter text must appear in full."""
FEWEST_INSIDE = 5
"""A quotation that starts elsewhere has this length and contains one of the text's longest words."""
MOST_ANCHORS = 6
SHORTEST_ANCHOR = 5

Change = Callable[[bytes], bytes]
Span = tuple[int, int]

# What may separate two words: JSON escapes, percent codes, anything but letters and digits.
_SEPARATOR = r"(?:\\[nrtbf]|%[0-9A-Fa-f]{2}|\\u00[0-2][0-9a-fA-F]|[\W_])"
# Separators, or in group 1 a word whose letters may be escaped.
_TOKEN = lazy_pattern(rf"{_SEPARATOR}+|((?:[^\W_]|\\u[0-9a-fA-F]{{4}})+)")
_ESCAPED = lazy_pattern(r"\\u([0-9a-fA-F]{4})")
# A cut quotation ends in dots or at the end of the text; the next pattern is for its beginning.
_CUT_AFTER = lazy_pattern(r"\s*(?:…|\.\.\.|\Z)")
_CUT_BEFORE = lazy_pattern(r"(?:…|\.\.\.|\A)\s*\Z")


class Token(msgspec.Struct, frozen=True):
    """A word in plain letters and its position."""

    word: str
    start: int
    end: int


def split_words(text: str) -> list[Token]:
    return [Token(_decode_word(match[1]), *match.span(1)) for match in _TOKEN.finditer(text) if match[1]]


def _decode_word(word: str) -> str:
    decoded = _ESCAPED.sub(lambda code: chr(int(code[1], 16)), word) if "\\" in word else word
    return decoded.lower()


class Quotation:
    """One text to find wherever it is repeated. A name of a session or folder (`is_name`) only matches as a whole."""

    def __init__(self, text: str, *, is_name: bool = False) -> None:
        self.text = text
        self.words = [token.word for token in split_words(text)]
        # Long words are mostly rare and tell a quotation from a common phrase.
        long = sorted({w for w in self.words if len(w) >= SHORTEST_ANCHOR}, key=lambda word: (-len(word), word))
        self._anchors = set(long[:MOST_ANCHORS])
        self._places: dict[str, list[int]] = {}
        for number, word in enumerate(self.words):
            self._places.setdefault(word, []).append(number)
        self._whole = _pattern_of_whole(text, self.words, is_name) if is_name or len(self.words) < FEWEST else None
        self._containing = " ".join(self.words)

    @property
    def probes(self) -> tuple[bytes, ...]:
        """Return lowercase probes of which every quoting row contains one, in a spelling no JSON escapes; `b""`
        matches any row."""
        opening = [ascii_part(word) for word in self.words[:FEWEST]]
        first = max(opening, key=len, default="")
        if not first:
            return (b"",)
        # A text that must appear in full is searched by its opening alone.
        inside = {ascii_part(word) for word in self._anchors} if not self._whole else set()
        return (first.encode(), *sorted(word.encode() for word in inside - {first, ""}))

    def spans(self, quoting: str) -> list[Span]:
        """Return where it is quoted, in order."""
        if self._whole:
            return [match.span() for match in self._whole.finditer(quoting)]
        tokens = split_words(quoting)
        spans: list[Span] = []
        at = 0
        while at < len(tokens):
            run = self._longest_run(tokens, at)
            if run is None:
                at += 1
                continue
            first, last, offset = run
            spans.append(self._widened(quoting, tokens, first, last, offset))
            at = last + 1
        return spans

    def without(self, quoting: str) -> str:
        pieces, at = [], 0
        for start, end in self.spans(quoting):
            pieces += [quoting[at:start], INSTEAD]
            at = max(at, end)
        return "".join([*pieces, quoting[at:]]) if pieces else quoting

    def mentions(self, word: str) -> bool:
        """Return whether a string, such as a file name, was taken from this text."""
        words = [token.word for token in split_words(word)]
        return bool(words) and f" {' '.join(words)} " in f" {self._containing} "

    def _longest_run(self, tokens: list[Token], at: int) -> tuple[int, int, int] | None:
        """Return the longest quotation that begins here: first token, last token, position of the first in the text."""
        best: tuple[int, int, int] | None = None
        for offset in self._places.get(tokens[at].word, ()):
            length = 0
            while (
                at + length < len(tokens)
                and offset + length < len(self.words)
                and tokens[at + length].word == self.words[offset + length]
            ):
                length += 1
            # A word may occur several times in the text; the longest run from any of them counts.
            if self._counts(offset, length) and (best is None or length > best[1] - best[0] + 1):
                best = (at, at + length - 1, offset)
        return best

    def _counts(self, offset: int, length: int) -> bool:
        if offset == 0:
            return length >= FEWEST
        return length >= FEWEST_INSIDE and not self._anchors.isdisjoint(self.words[offset : offset + length])

    def _widened(self, quoting: str, tokens: list[Token], first: int, last: int, offset: int) -> Span:
        """Extend a span to the halves of words at which it was cut."""
        start, end = tokens[first].start, tokens[last].end
        following = offset + last - first + 1
        if last + 1 < len(tokens) and following < len(self.words):
            cut = tokens[last + 1]
            if self.words[following].startswith(cut.word) and _CUT_AFTER.match(quoting, cut.end):
                end = cut.end
        if first and offset:
            cut = tokens[first - 1]
            if self.words[offset - 1].endswith(cut.word) and _CUT_BEFORE.search(quoting, 0, cut.start):
                start = cut.start
        return start, end


def ascii_part(word: str) -> str:
    return max(re.findall(r"[a-z0-9]+", word), key=len, default="")


def _pattern_of_whole(text: str, words: list[str], is_name: bool) -> re.Pattern[str]:
    if not words:
        return re.compile(re.escape(text.strip()) or r"(?!)")
    flexible = rf"{_SEPARATOR}+".join("".join(_letter_pattern(char) for char in word) for word in words)
    before, after = _bounds_of_name(text) if is_name else _bounds_of_words(words)
    return re.compile(f"{before}{flexible}{after}", re.IGNORECASE)


def _bounds_of_words(words: list[str]) -> tuple[str, str]:
    """One or two words match anywhere, also inside a longer name, unless they are too short."""
    return ("", "") if sum(map(len, words)) >= SHORTEST_ANCHOR + 1 else (r"(?<![^\W_])", r"(?![^\W_])")


def _bounds_of_name(text: str) -> tuple[str, str]:
    """`session-1` does not match in `session-10`, nor `/home/me/api` in `/home/me/api-v2` or `/mnt/home/me/api`."""
    if text.startswith("/"):
        return r"(?<![^\W_])(?<![^\W_]/)", r"(?!\w|[-.][^\W_])"
    # A file may be named for its session: `rollout-ID.jsonl`.
    return r"(?<![^\W_])", r"(?!\w|-[^\W_])"


def _letter_pattern(char: str) -> str:
    return re.escape(char) if char.isascii() else rf"(?:{re.escape(char)}|\\u{ord(char):04x})"


def build_eraser(quotations: Iterable[Quotation]) -> Change:
    """Build a function that removes the texts from the bytes of a JSON value. Anything else is searched as it is."""
    to_erase = tuple(quotations)

    def change(row: bytes) -> bytes:
        try:
            value = msgspec.json.decode(row)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return _erase_plain(row, to_erase)
        changed = _erase_value(value, to_erase)
        return row if changed == value else msgspec.json.encode(changed)

    return change


def _erase_plain(row: bytes, quotations: tuple[Quotation, ...]) -> bytes:
    # Invalid UTF-8 comes out unchanged.
    text = row.decode("utf-8", "surrogateescape")
    changed = erase_text(text, quotations)
    return row if changed == text else changed.encode("utf-8", "surrogateescape")


def erase_text(text: str, quotations: Iterable[Quotation]) -> str:
    for quotation in quotations:
        text = quotation.without(text)
    return text


def _erase_value(value: Any, quotations: tuple[Quotation, ...]) -> Any:
    if isinstance(value, str):
        return erase_text(value, quotations)
    if isinstance(value, list):
        return [_erase_value(one, quotations) for one in value]
    if not isinstance(value, dict):
        return value
    changed = {erase_text(name, quotations): _erase_value(one, quotations) for name, one in value.items()}
    # Compare the original values: the changed ones quote nothing any more.
    quoted = [q for q in quotations if any(isinstance(one, str) and q.spans(one) for one in value.values())]
    return {name: _without_extracts(one, quoted) for name, one in changed.items()} if quoted else changed


def _without_extracts(value: Any, quoted: list[Quotation]) -> Any:
    """Drop strings next to the text that were extracted from it, such as file names."""
    if not isinstance(value, list):
        return value
    return [one for one in value if not (isinstance(one, str) and any(q.mentions(one) for q in quoted))]


def find_excerpts(value: Any, quotation: Quotation, around: int = 40) -> Iterator[tuple[str, str]]:
    """Return (field, words with some context) for every quotation."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from (
                (f"{name}.{inner}".rstrip("."), excerpt) for inner, excerpt in find_excerpts(one, quotation, around)
            )
    elif isinstance(value, list):
        for one in value:
            yield from find_excerpts(one, quotation, around)
    elif isinstance(value, str):
        for start, end in quotation.spans(value):
            yield "", value[max(0, start - around) : end + around]
