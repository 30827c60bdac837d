"""What of an event can be searched: its texts and its files, cut into words. Pure, and the same for every store."""

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
"""Under this name the store keeps how far the log is indexed."""
# In characters; what stands behind is not indexed.
LONGEST_TEXT = 20_000
LONGEST_WORD = 64

TEXT_FIELDS = (
    "prompt", "command", "args", "message", "text", "error", "output", "summary", "title", "subject", "description",
    "instructions", "reason", "reasons", "notices", "why", "problem", "skill", "verb", "commits", "input",
)  # fmt: skip
"""In this order: what somebody would look for first comes first."""
UNSEARCHED = frozenset(
    ("message.displayed", "model.answered", "tool.batch", "check.finished", "daemon.started", "daemon.stopped")
)
"""What another event has whole (the command of a check is its tool call's), and figures."""
FAILURES = frozenset(("tool.failed", "turn.failed", "permission.denied", "job.failed"))


class HistoryMark(msgspec.Struct, frozen=True):
    """Every event up to `seq` is indexed. `erasures` counts how often stored text was taken out: an entry that was
    made before it must not be written after it."""

    seq: int = 0
    erasures: int = 0

    @classmethod
    def parse(cls, text: str) -> "HistoryMark":
        seq, _, erasures = text.partition(".")
        return cls(int(seq), int(erasures or 0)) if seq.isdecimal() else cls()

    def __str__(self) -> str:
        return f"{self.seq}.{self.erasures}"


class HistoryPage(msgspec.Struct, frozen=True):
    """The next events to index, made from what was stored when the mark was `before`."""

    before: HistoryMark
    after: HistoryMark
    entries: list[HistoryEntry]


def next_page(reader: Reader, limit: int) -> HistoryPage | None:
    """None when the log is indexed to its head. The mark is read first: what changes after it is noticed by it."""
    before = HistoryMark.parse(reader.meta(MARK))
    events = reader.events(EventQuery(after=before.seq, limit=limit))
    if not events:
        return None
    after = HistoryMark(events[-1].seq, before.erasures)
    return HistoryPage(before, after, [entry for event in events if (entry := history_entry(event))])


def history_entry(event: Event) -> HistoryEntry | None:
    """None for an event that has nothing to look for."""
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
    """Escape sequences of a terminal would become part of the word after them."""
    return strip_controls(text) if "\x1b" in text else text


def text_parts(event: Event) -> Iterator[tuple[str, str]]:
    """(field, text): everything a person or an agent said, ran or was shown."""
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

# Scripts that are written without spaces: each letter is a word, so that any part of a sentence is found as a phrase.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_NOT_ASCII = lazy_pattern(r"[^\x00-\x7f]+")
_WORD = lazy_pattern(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_])+")
# Small letters for large ones, and a space for everything that is neither a letter nor a digit.
_ASCII_WORDS = bytes(
    ord(chr(byte).lower()) if chr(byte).isascii() and chr(byte).isalnum() else 32 for byte in range(256)
)


def split_words(text: str) -> list[str]:
    """Letters and digits, in small letters and without accents; `parse_url` is two words, found as a phrase."""
    folded = text if text.isascii() else _fold_case(text)
    if folded.isascii():
        # A table instead of a regular expression: imports index megabytes at a time.
        words = folded.encode().translate(_ASCII_WORDS).decode().split()
    else:
        words = _WORD.findall(folded)
    longest = max(map(len, words), default=0)
    return words if longest <= LONGEST_WORD else [word[:LONGEST_WORD] for word in words]


def _fold_case(text: str) -> str:
    """Only what is not ASCII is looked at letter by letter: of most texts that is a mark or two."""
    return _NOT_ASCII.sub(lambda run: _strip_accents(run[0]), text.casefold())


def _strip_accents(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text)
    # Composed again: Hangul syllables were taken apart as well.
    plain = "".join(char for char in parts if not unicodedata.combining(char))
    # Once more: some signs are taken apart into large letters.
    return unicodedata.normalize("NFC", plain.casefold())


def split_phrases(query: str, most: int) -> tuple[str, ...]:
    """Each word of a query as the words it consists of; text in double quotes is one phrase. At most so many."""
    unique_phrases: dict[str, None] = {}
    for quoted, plain in re.findall(r'"([^"]{1,2000})"|(\S+)', query[:100_000]):
        for words in [split_words(quoted or plain)] if quoted else _word_chunks(split_words(plain)):
            if words:
                unique_phrases.setdefault(" ".join(words))
            if len(unique_phrases) == most:
                return tuple(unique_phrases)
    return tuple(unique_phrases)


def _word_chunks(words: list[str]) -> Iterable[list[str]]:
    # At most sixteen words in a phrase; a long path becomes several.
    return (words[at : at + 16] for at in range(0, len(words), 16))
