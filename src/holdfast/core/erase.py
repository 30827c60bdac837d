"""Finds what quotes a text, and takes it out: whole, cut off, in other case, in Markdown, escaped, or a long part. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from holdfast.core.lazy import lazy_pattern

INSTEAD = "[forgotten]"
FEWEST = 4
"""The first so many words in a row are taken for a quotation; a shorter text must be there as a whole."""
FEWEST_INSIDE = 5
"""A quotation that does not begin at the beginning is this long, and has one of the text's longest words."""
MOST_ANCHORS = 6
SHORTEST_ANCHOR = 5

Change = Callable[[bytes], bytes]
Span = tuple[int, int]

# What may stand between two words: escapes of JSON, percent codes, all but letters and digits.
_SEPARATOR = r"(?:\\[nrtbf]|%[0-9A-Fa-f]{2}|\\u00[0-2][0-9a-fA-F]|[\W_])"
# Separators, or in group 1 a word, whose letters may be escaped.
_TOKEN = lazy_pattern(rf"{_SEPARATOR}+|((?:[^\W_]|\\u[0-9a-fA-F]{{4}})+)")
_ESCAPED = lazy_pattern(r"\\u([0-9a-fA-F]{4})")
# A quotation that was cut ends in dots or with the text; the next pattern is for its beginning.
_CUT_AFTER = lazy_pattern(r"\s*(?:…|\.\.\.|\Z)")
_CUT_BEFORE = lazy_pattern(r"(?:…|\.\.\.|\A)\s*\Z")


class Token(msgspec.Struct, frozen=True):
    """A word of a text in plain letters, and where it stands."""

    word: str
    start: int
    end: int


def split_words(text: str) -> list[Token]:
    return [Token(_decode_word(match[1]), *match.span(1)) for match in _TOKEN.finditer(text) if match[1]]


def _decode_word(word: str) -> str:
    decoded = _ESCAPED.sub(lambda code: chr(int(code[1], 16)), word) if "\\" in word else word
    return decoded.lower()


class Quotation:
    """One text that is to be found wherever it is repeated. The name of a session or a folder (`is_name`) is found as a
    whole: a part of it is a part of many others too."""

    def __init__(self, text: str, *, is_name: bool = False) -> None:
        self.text = text
        self.words = [token.word for token in split_words(text)]
        # Long words are mostly rare: they tell a quotation from a common phrase.
        long = sorted({w for w in self.words if len(w) >= SHORTEST_ANCHOR}, key=lambda word: (-len(word), word))
        self._anchors = set(long[:MOST_ANCHORS])
        self._places: dict[str, list[int]] = {}
        for number, word in enumerate(self.words):
            self._places.setdefault(word, []).append(number)
        self._whole = _pattern_of_whole(text, self.words, is_name) if is_name or len(self.words) < FEWEST else None
        self._containing = " ".join(self.words)

    @property
    def probes(self) -> tuple[bytes, ...]:
        """Small letters one of which is in every row that quotes it, in a spelling no JSON escapes; `b""`: in any."""
        opening = [ascii_part(word) for word in self.words[:FEWEST]]
        first = max(opening, key=len, default="")
        if not first:
            return (b"",)
        # What has to be there as a whole is searched by its opening alone.
        inside = {ascii_part(word) for word in self._anchors} if not self._whole else set()
        return (first.encode(), *sorted(word.encode() for word in inside - {first, ""}))

    def spans(self, quoting: str) -> list[Span]:
        """Where it is quoted, in order."""
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
        """Whether a string, such as the name of a file, was taken out of this text."""
        words = [token.word for token in split_words(word)]
        return bool(words) and f" {' '.join(words)} " in f" {self._containing} "

    def _longest_run(self, tokens: list[Token], at: int) -> tuple[int, int, int] | None:
        """(first token, last token, place of the first one in the text) of the longest quotation that begins here."""
        best: tuple[int, int, int] | None = None
        for offset in self._places.get(tokens[at].word, ()):
            length = 0
            while (
                at + length < len(tokens)
                and offset + length < len(self.words)
                and tokens[at + length].word == self.words[offset + length]
            ):
                length += 1
            # A word may stand at several places of the text: the longest run from any of them counts.
            if self._counts(offset, length) and (best is None or length > best[1] - best[0] + 1):
                best = (at, at + length - 1, offset)
        return best

    def _counts(self, offset: int, length: int) -> bool:
        if offset == 0:
            return length >= FEWEST
        return length >= FEWEST_INSIDE and not self._anchors.isdisjoint(self.words[offset : offset + length])

    def _widened(self, quoting: str, tokens: list[Token], first: int, last: int, offset: int) -> Span:
        """With the halves of words in which it was cut off."""
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
    """A word or two: anywhere, also inside a longer name, unless it is so short that it would be everywhere."""
    return ("", "") if sum(map(len, words)) >= SHORTEST_ANCHOR + 1 else (r"(?<![^\W_])", r"(?![^\W_])")


def _bounds_of_name(text: str) -> tuple[str, str]:
    """`session-1` is not `session-10`, and `/home/me/api` neither `/home/me/api-v2` nor within `/mnt/home/me/api`."""
    if text.startswith("/"):
        return r"(?<![^\W_])(?<![^\W_]/)", r"(?!\w|[-.][^\W_])"
    # A file is named for its session: `rollout-ID.jsonl`.
    return r"(?<![^\W_])", r"(?!\w|-[^\W_])"


def _letter_pattern(char: str) -> str:
    return re.escape(char) if char.isascii() else rf"(?:{re.escape(char)}|\\u{ord(char):04x})"


def build_eraser(quotations: Iterable[Quotation]) -> Change:
    """Bytes of a JSON value → the same without the texts. What is not JSON is searched as it is."""
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
    # Bytes that are no UTF-8 come out as they went in.
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
    # By the values from before: the changed ones quote nothing any more.
    quoted = [q for q in quotations if any(isinstance(one, str) and q.spans(one) for one in value.values())]
    return {name: _without_extracts(one, quoted) for name, one in changed.items()} if quoted else changed


def _without_extracts(value: Any, quoted: list[Quotation]) -> Any:
    """A list of strings beside the text, such as the files it names: those that were taken out of it go with it."""
    if not isinstance(value, list):
        return value
    return [one for one in value if not (isinstance(one, str) and any(q.mentions(one) for q in quoted))]


def find_excerpts(value: Any, quotation: Quotation, around: int = 40) -> Iterator[tuple[str, str]]:
    """(name of the field, the words with a little of what stands around them) for every place that quotes it."""
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
