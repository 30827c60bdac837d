"""Extracts what can be searched in an event: its texts and files, split into words."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import TOOL_ENDS
from holdfast.core.lazy import lazy_pattern
from holdfast.core.ports import EventQuery, HistoryEntry, Reader
from holdfast.core.text import strip_controls

MARK = "history"
"""The key under which the store keeps how far the log is indexed."""
# In characters; the rest is not indexed.
LONGEST_TEXT = 20_000
LONGEST_WORD = 64

TEXT_FIELDS = (
    "prompt", "command", "args", "message", "text", "error", "output", "summary", "title", "subject", "description",
    "instructions", "reason", "reasons", "notices", "why", "problem", "skill", "verb", "commits", "input",
)  # fmt: skip
"""In order of importance."""
UNSEARCHED = frozenset(
    ("message.displayed", "model.answered", "tool.batch", "check.finished", "daemon.started", "daemon.stopped")
)
"""Fields that another event has in full (the command of a check), and figures."""
FAILURES = frozenset(("tool.failed", "turn.failed", "permission.denied", "job.failed"))


class HistoryMark(msgspec.Struct, frozen=True):
    """Every event up to `seq` is indexed. `erasures` counts erasures: an entry made before one must not be written
    after it."""

    seq: int = 0
    erasures: int = 0

    @classmethod
    def parse(cls, text: str) -> "HistoryMark":
        seq, _, erasures = text.partition(".")
        return cls(int(seq), int(erasures or 0)) if seq.isdecimal() else cls()

    def __str__(self) -> str:
        return f"{self.seq}.{self.erasures}"


class HistoryPage(msgspec.Struct, frozen=True):
    """The next events to index, prepared from what was stored at the mark `before`."""

    before: HistoryMark
    after: HistoryMark
    entries: list[HistoryEntry]


def next_page(reader: Reader, limit: int) -> HistoryPage | None:
    """Return None if the log is indexed to its head. The mark is read first, so later changes are noticed."""
    before = HistoryMark.parse(reader.meta(MARK))
    events = reader.events(EventQuery(after=before.seq, limit=limit))
    if not events:
        return None
    after = HistoryMark(events[-1].seq, before.erasures)
    return HistoryPage(before, after, [entry for event in events if (entry := history_entry(event))])


def history_entry(event: Event) -> HistoryEntry | None:
    """Return None if the event has nothing to search."""
    if event.kind in UNSEARCHED:
        return None
    text = split_words(_strip_colours("\n".join(part for _field, part in text_parts(event))[:LONGEST_TEXT]))
    paths = split_words("\n".join(files_of(event)))
    if not text and not paths:
        return None
    return HistoryEntry(
        seq=event.seq, words=" ".join([*text, *paths]), paths=" ".join(paths), failed=has_failed(event),
        session=event.session, project=event.project, agent=event.agent, tool=event.tool, kind=event.kind,
    )  # fmt: skip


def _strip_colours(text: str) -> str:
    """Remove terminal escape sequences, which would become part of the next word."""
    return strip_controls(text) if "\x1b" in text else text


def text_parts(event: Event) -> Iterator[tuple[str, str]]:
    """Yield (field, text) for everything a person or agent said, ran or saw."""
    for field in TEXT_FIELDS:
        for text in _nested_strings(event.get(field)):
            yield field, text


def files_of(event: Event) -> list[str]:
    paths = event.get("paths")
    named = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    single = event.get("path")
    return [*named, single] if isinstance(single, str) and single and single not in named else named


def has_failed(event: Event) -> bool:
    if event.kind in FAILURES or event.get("verdict") == "failed":
        return True
    return event.kind in TOOL_ENDS and (event.get("ok") is False or bool(event.get("exit_code")))


def _nested_strings(value: Any) -> Iterator[str]:
    # Most fields of an event are empty.
    if not value:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _nested_strings(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _nested_strings(one)


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Scripts written without spaces: each character is a word, so any part of a sentence is found as a phrase.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_NOT_ASCII = lazy_pattern(r"[^\x00-\x7f]+")
_WORD = lazy_pattern(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_])+")
# Lowercase, with spaces for everything but letters and digits.
_ASCII_WORDS = bytes(
    ord(chr(byte).lower()) if chr(byte).isascii() and chr(byte).isalnum() else 32 for byte in range(256)
)


def split_words(text: str) -> list[str]:
    """Split into lowercase words without accents; `parse_url` is two words, found as a phrase."""
    folded = text if text.isascii() else _fold_case(text)
    if folded.isascii():
        # A table is faster than a regular expression; imports index megabytes at a time.
        words = folded.encode().translate(_ASCII_WORDS).decode().split()
    else:
        words = _WORD.findall(folded)
    longest = max(map(len, words), default=0)
    return words if longest <= LONGEST_WORD else [word[:LONGEST_WORD] for word in words]


def _fold_case(text: str) -> str:
    """Fold case; only non-ASCII characters are processed one by one."""
    return _NOT_ASCII.sub(lambda run: _strip_accents(run[0]), text.casefold())


def _strip_accents(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text)
    # Compose again: decomposition also split Hangul syllables.
    plain = "".join(char for char in parts if not unicodedata.combining(char))
    # Again: some signs decompose into capital letters.
    return unicodedata.normalize("NFC", plain.casefold())


def split_phrases(query: str, most: int) -> tuple[str, ...]:
    """Split a query into words, each as its parts; text in double quotes is one phrase. The number is bounded."""
    unique_phrases: dict[str, None] = {}
    for quoted, plain in re.findall(r'"([^"]{1,2000})"|(\S+)', query[:100_000]):
        for words in [split_words(quoted or plain)] if quoted else _word_chunks(split_words(plain)):
            if words:
                unique_phrases.setdefault(" ".join(words))
            if len(unique_phrases) == most:
                return tuple(unique_phrases)
    return tuple(unique_phrases)


def _word_chunks(words: list[str]) -> Iterable[list[str]]:
    # At most sixteen words per phrase; a long path becomes several.
    return (words[at : at + 16] for at in range(0, len(words), 16))
