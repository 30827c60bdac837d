"""The memory index, kept in the daemon's memory and in step with the log."""

# A copy in a file saves reading the whole log after a start; it is built from the log alone and removed when something
# is forgotten (decision 0006).

import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import PromptSubmitted, TurnEnded
from holdfast.core.kinds.memory_events import MemoryKept, RememberedPayload
from holdfast.core.kinds.session_events import TurnAnswerRead
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.memory.index.index_file import (
    TEXTS,
    index_path,
    indexed_until,
    pack_index,
    read_index,
    remove_index,
)
from holdfast.features.memory.index.ranking import Ranking
from holdfast.features.memory.index.similar_words import similar_words
from holdfast.features.memory.state.documents import place_of

CHANGED = "state.rebuilt"
"""Text may have been erased from the log before the last number read."""
KINDS = (*TEXTS, CHANGED)
PAGE = 500
SPEND_S, BEHIND, NEWEST = 0.3, 4_000, 3_000
"""A search spends this much processor time on catching up, unless few events are left. If more are left, it searches
the newest texts and the current index; the job completes the index."""
LONGEST = 2_000
QUIET_MS = 30 * 60_000
"""Additions outside any session belong together if no longer pause separates them."""
PROMPT, ANSWER, OBSERVATION = range(3)
NAMES = ("prompt", "answer", "observation")
OCCASION = "\n#"
COLUMNS = {"seqs": "q", "ats": "q", "kinds": "b", "places": "i"}


class Entry(msgspec.Struct, frozen=True):
    """`id` of an observation; empty for a moment of the conversation."""

    kind: str
    seq: int
    id: str
    session: str
    project: str
    at: int


class Hit(msgspec.Struct, frozen=True):
    entry: Entry
    score: float
    observations: tuple[str, ...]


class SearchResult(msgspec.Struct, frozen=True):
    hits: list[Hit]
    left: int = 0
    """Events not indexed yet; 0 if the answer is complete."""


class Catalogue:
    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._file = path
        self._offered = 0
        """The mark of the last file that was loaded: a damaged one is not tried again."""
        self._begin()

    def _begin(self) -> None:
        self._seq, self._key = 0, ""
        self._fresh, self._looked = 0, False
        """Until which event nothing was erased since it was read; whether the file was looked for."""
        # Columns instead of objects, which would take many times the memory.
        self._seqs, self._ats, self._kinds, self._places = array("q"), array("q"), array("b"), array("i")
        self._where: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._known: set[str] = set()
        self._attached: dict[int, list[str]] = {}
        self._last_added: dict[str, tuple[int, int]] = {}
        self._ranking = Ranking(similar_words)

    def __len__(self) -> int:
        return len(self._seqs)

    # ── finding ────────────────────────────────────────────────────────────────────────────────────────────────────

    def find(self, reader: Reader, question: str, *, places: Collection[str], since: int, limit: int) -> SearchResult:
        """Only in these places; everywhere if none is named."""
        with self._lock:
            left = self._catch_up_for(reader, SPEND_S)
            hits = self._best_hits(question, places, since, limit)
            if left:
                newest = _newest_texts(reader)._best_hits(question, places, since, limit)
                # If both have a text, the whole index knows more of its context.
                every = {hit.entry.seq: hit for hit in (*newest, *hits)}
                hits = sorted(every.values(), key=lambda hit: (-hit.score, hit.entry.seq))[:limit]
            return SearchResult(hits, left)

    def _best_hits(self, question: str, places: Collection[str], since: int, limit: int) -> list[Hit]:
        scores = self._allowed(self._ranking.scores(question), places, since)
        hits: list[Hit] = []
        for number in self._ranking.best(scores):
            score = float(scores[number])
            if score <= 0 or len(hits) == limit:
                break
            entry = self._entry(number)
            hits.append(Hit(entry, score, tuple(self._attached.get(entry.seq, ()))))
        return hits

    def _allowed(self, scores: Any, locations: Collection[str], since: int) -> Any:
        import numpy as np

        if locations:
            here = np.array(self._places)
            # A text is in one place, so the sum is 0 or 1.
            scores = scores * sum(here == self._where.get(location, -1) for location in locations)
        return scores * (np.array(self._ats) >= since) if since else scores

    def _entry(self, number: int) -> Entry:
        project, _, session = self._ranking.session_of(number).partition("\n")
        return Entry(
            NAMES[self._kinds[number]], self._seqs[number], self._ids.get(number, ""),
            "" if session.startswith(OCCASION) else session, project, self._ats[number],
        )  # fmt: skip

    # ── keeping in step ────────────────────────────────────────────────────────────────────────────────────────────

    def catch_up(self, reader: Reader, pause: Callable[[], bool]) -> bool:
        """Index page by page, pausing in between; `pause` returns whether to go on. Returns whether the end was
        reached."""
        while True:
            with self._lock:
                if not self._catch_up_a_page(reader):
                    return True
            if not pause():
                return False

    def _catch_up_for(self, reader: Reader, seconds: float) -> int:
        """Return how many events are left."""
        began = time.thread_time()
        self._take_up_file(reader.head())
        while self._catch_up_a_page(reader):
            left = reader.head() - self._seq
            if left > BEHIND and time.thread_time() - began > seconds:
                return left
        return 0

    def _take_up_file(self, head: int) -> None:
        """The job may have written a file since this index fell behind."""
        if not self._file or not self._looked or head - self._seq <= BEHIND:
            return
        reached = indexed_until(self._file)
        if reached > max(self._seq, self._offered):
            self._offered = reached
            self._begin()

    def _catch_up_a_page(self, reader: Reader) -> bool:
        """Return whether there may be more."""
        head = reader.head()
        # The log is shorter than what was read: it was replaced.
        if head < self._seq:
            self._begin()
        if not self._looked:
            self._looked = True
            self._fresh = max(self._fresh, head) if not self._read_file(reader) else self._fresh
        page = reader.events(EventQuery(after=self._seq, kinds=KINDS, limit=PAGE))
        # Something was erased after it was read, so it must leave the index too.
        if any(event.kind == CHANGED and event.seq > self._fresh for event in page):
            self._start_over(head)
            return True
        for event in page:
            self._index_event(event)
            # The key shows later whether the file still belongs to this log.
            self._seq, self._key = event.seq, event.key
        return len(page) == PAGE

    def _start_over(self, head: int) -> None:
        """The file may contain forgotten words, so it is removed first."""
        if self._file:
            remove_index(self._file)
        self._begin()
        self._fresh, self._looked = head, True

    def _index_event(self, event: Event) -> None:
        data = event.data
        if isinstance(data, RememberedPayload):
            self._observed(event, data)
        elif isinstance(data, PromptSubmitted) and not data.synthetic:
            self._moment(event, PROMPT, data.prompt)
        elif isinstance(data, TurnEnded | TurnAnswerRead) and not data.lane:
            self._moment(event, ANSWER, data.message)

    def _moment(self, event: Event, kind: int, text: str) -> None:
        words = text[:LONGEST]
        if words.strip():
            self._add(event, kind, words)

    def _observed(self, event: Event, data: RememberedPayload) -> None:
        """Statements are found by the moment they were said; deeds and summaries have words of their own."""
        # Words of a model, or words a person chose instead, are not those of the moment they rest on.
        other_words = isinstance(data, MemoryKept) and data.was != data.id
        moments = [] if other_words else [n for n in data.evidence if self._is_moment(n)]
        for seq in moments[:1]:
            attached = self._attached.setdefault(seq, [])
            if data.id not in attached:
                attached.append(data.id)
        if moments or data.id in self._known:
            return
        self._known.add(data.id)
        self._ids[len(self)] = data.id
        self._add(event, OBSERVATION, " ".join((data.text, data.detail, *data.files)))

    def _is_moment(self, seq: int) -> bool:
        # Events come in order, so their numbers are sorted.
        at = bisect_left(self._seqs, seq)
        return at < len(self) and self._seqs[at] == seq and self._kinds[at] != OBSERVATION

    def _add(self, event: Event, kind: int, words: str) -> None:
        location = place_of(event)
        self._seqs.append(event.seq)
        self._ats.append(event.at)
        self._kinds.append(kind)
        self._places.append(self._where.setdefault(location, len(self._where)))
        self._ranking.add(f"{location}\n{event.session or self._occasion(event, location)}", words)

    def _occasion(self, event: Event, location: str) -> str:
        at, number = self._last_added.get(location, (event.at, 0))
        number += event.at - at > QUIET_MS
        self._last_added[location] = (event.at, number)
        return f"{OCCASION}{number}"

    # ── the file ───────────────────────────────────────────────────────────────────────────────────────────────────

    def dump(self) -> tuple[int, bytes]:
        """Return (the last event included, the file)."""
        import numpy as np

        with self._lock:
            arrays, words = self._ranking.dump()
            columns = {name: np.array(getattr(self, f"_{name}")) for name in COLUMNS}
            columns["with_id"] = np.array(list(self._ids), np.int32)
            about = {
                **words, "seq": self._seq, "key": self._key, "fresh": self._fresh, "where": list(self._where),
                "ids": "\n".join(self._ids.values()), "attached": list(self._attached.items()),
                "last_added": self._last_added,
            }  # fmt: skip
            return self._seq, pack_index({**arrays, **columns}, about)

    def _read_file(self, reader: Reader) -> bool:
        """Accept the file only if it was built from this log, up to its head at the time."""
        content = read_index(self._file) if self._file else None
        if content is None:
            return False
        arrays, about = content
        try:
            last = reader.event(int(about["seq"]))
            # The same number with another key: the file was built from another log.
            if last is None or last.key != about["key"]:
                return False
            self._load(arrays, about)
        except (KeyError, ValueError, TypeError, AttributeError):
            self._begin()
            self._looked = True
            return False
        return True

    def _load(self, arrays: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        self._ranking.load(arrays, about)
        for name, kind in COLUMNS.items():
            setattr(self, f"_{name}", array(kind, arrays[name].tobytes()))
        self._where = {location: number for number, location in enumerate(about["where"])}
        ids = about["ids"].split("\n") if about["ids"] else []
        self._ids = dict(zip(arrays["with_id"].tolist(), ids, strict=True))
        self._known = set(self._ids.values())
        self._attached = dict(about["attached"])
        self._last_added = {location: (at, number) for location, (at, number) in about["last_added"].items()}
        if {len(getattr(self, f"_{name}")) for name in COLUMNS} != {len(self._ranking)}:
            raise ValueError("the columns do not fit one another")
        self._seq, self._key, self._fresh = about["seq"], about["key"], about["fresh"]


def _newest_texts(reader: Reader) -> Catalogue:
    """Search the newest texts only."""
    catalogue = Catalogue()
    for event in reader.events(EventQuery(kinds=TEXTS, limit=NEWEST, newest=True)):
        catalogue._index_event(event)
    return catalogue


@lru_cache(maxsize=4)
def open_catalogue(state_dir: Path) -> Catalogue:
    """One per state directory, for the life of the daemon."""
    return Catalogue(index_path(state_dir))
