"""What the index holds, and how it keeps in step with the log: nothing of it lies on a disk, so forgetting is whole."""

import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.memory.find.likeness import alike
from holdfast.features.memory.find.ranking import Ranking
from holdfast.features.memory.model import mapping, strings

CHANGED = "state.rebuilt"
"""Words may have been taken out of the log behind the last number read."""
KINDS = ("prompt.submitted", "turn.ended", "memory.observed", CHANGED)
PAGE = 2_000
LONGEST = 2_000
QUIET_MS = 30 * 60_000
"""What a person adds outside any session belongs together if no longer pause lies between."""


class Entry(msgspec.Struct, frozen=True):
    """`id` of an observation, empty for a moment of the conversation."""

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


class Catalogue:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._seq = 0
        self._entries: list[Entry] = []
        self._moments: set[int] = set()
        self._known: set[str] = set()
        self._attached: dict[int, list[str]] = {}
        self._last_added: dict[str, tuple[int, int]] = {}
        self._ranking = Ranking(alike())

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, reader: Reader, question: str, *, project: str, since: int, limit: int) -> list[Hit]:
        with self._lock:
            self._catch_up(reader)
            scores = self._ranking.scores(question)
            found: list[Hit] = []
            for number in self._ranking.best(scores):
                entry, score = self._entries[number], float(scores[number])
                if score <= 0 or len(found) == limit:
                    break
                if (not project or entry.project == project) and entry.at >= since:
                    found.append(Hit(entry, score, tuple(self._attached.get(entry.seq, ()))))
            return found

    def _catch_up(self, reader: Reader) -> None:
        if reader.head() < self._seq:
            self._begin()
        anew = self._seq == 0
        while page := reader.events(EventQuery(after=self._seq, kinds=KINDS, limit=PAGE)):
            if not anew and any(event.kind == CHANGED for event in page):
                self._begin()
                anew = True
                continue
            for event in page:
                self._take(event)
                self._seq = event.seq

    def _take(self, event: Event) -> None:
        if event.kind == "memory.observed":
            self._observed(event)
        elif event.kind == "prompt.submitted" and not event.get("synthetic"):
            self._moment(event, "prompt", event.get("prompt"))
        elif event.kind == "turn.ended" and not event.get("lane"):
            self._moment(event, "answer", event.get("message"))

    def _moment(self, event: Event, kind: str, text: Any) -> None:
        words = str(text or "")[:LONGEST]
        if words.strip():
            self._moments.add(event.seq)
            self._add(Entry(kind, event.seq, "", event.session, event.project, event.at), words)

    def _observed(self, event: Event) -> None:
        """What somebody said is found by the moment he said it; only what was done has words of its own."""
        identity = str(event.get("id") or "")
        said = [n for n in event.get("evidence") or () if n in self._moments]
        for seq in said[:1]:
            self._attached.setdefault(seq, []).append(identity)
        if said or identity in self._known:
            return
        self._known.add(identity)
        words = " ".join((str(event.get("text") or ""), str(event.get("detail") or ""), *strings(event.get("files"))))
        self._add(Entry("observation", event.seq, identity, event.session, event.project, event.at), words)

    def _add(self, entry: Entry, words: str) -> None:
        self._entries.append(entry)
        self._ranking.add(f"{entry.project}\n{entry.session or self._occasion(entry)}", words)

    def _occasion(self, entry: Entry) -> str:
        at, number = self._last_added.get(entry.project, (entry.at, 0))
        number += entry.at - at > QUIET_MS
        self._last_added[entry.project] = (entry.at, number)
        return f"#{number}"


@lru_cache(maxsize=4)
def catalogue(_state_dir: Path) -> Catalogue:
    """One for each state directory, for as long as the daemon runs."""
    return Catalogue()


def text_of(event: Event) -> str:
    data = mapping(event.data)
    return str(data.get("prompt") or data.get("message") or data.get("text") or "")
