"""History search over a long log: the time a question takes, by CPU, over 1,000,000 indexed events.

Only the full-text index and the narrow rows of events are made at that size, from made-up commands, outputs and prompts whose words are as
unevenly common as real ones. `HOLDFAST_HISTORY_EVENTS` sets another number of events.
"""

import itertools
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from holdfast.core.history import HistoryMark
from holdfast.core.ports import HistoryEntry, HistoryQuery
from holdfast.stores.sqlite import SqliteStore
from tests.bench.figures import fact, figure, heading, p50, percentile

EVENTS = int(os.environ.get("HOLDFAST_HISTORY_EVENTS") or 1_000_000)
VOCABULARY, PORTION, REPEATS = 60_000, 5_000, 15
COMMANDS = ("npm test", "pytest -q tests", "git status", "make build", "cargo check", "go test", "rg todo src")
TOOLS = ("Bash", "Read", "Edit", "Grep", "Write")
AGENTS = ("claude", "codex", "gemini", "copilot")
QUESTIONS = {
    "a rare word": HistoryQuery(phrases=("w51234",), limit=40),
    "a common word": HistoryQuery(phrases=("test",), limit=40),
    "a command": HistoryQuery(phrases=("npm", "test"), limit=40),
    "a phrase": HistoryQuery(phrases=("cargo check",), limit=40),
    "a common and a rare word": HistoryQuery(phrases=("test", "w40321"), limit=40),
    "two rare words that never meet": HistoryQuery(phrases=("w50001", "w50002"), limit=40),
    "the beginning of a word": HistoryQuery(phrases=("w4032",), prefix=True, limit=40),
    "failed calls of a tool": HistoryQuery(phrases=("test",), tool="Bash", failed=True, limit=40),
    "one session": HistoryQuery(phrases=("test",), session="session-77", limit=40),
    "one file": HistoryQuery(file="src/m77/part3.py", limit=40),
    "one project, one agent": HistoryQuery(phrases=("build",), project="/home/ada/project-3", agent="codex", limit=40),
    "a word that is nowhere": HistoryQuery(phrases=("zzzz",), limit=40),
}


def made_entries(count: int) -> Iterator[HistoryEntry]:
    """Words by Zipf's law: a few are in most events, most are in a few."""
    chance = random.Random(7)
    words = [f"w{number}" for number in range(VOCABULARY)]
    weights = list(itertools.accumulate(1 / (number + 10) for number in range(VOCABULARY)))
    for seq in range(1, count + 1):
        path = f"src m{chance.randrange(400)} part{chance.randrange(9)} py"
        said = " ".join([chance.choice(COMMANDS), *chance.choices(words, cum_weights=weights, k=24), path])
        yield HistoryEntry(
            seq=seq, words=said, paths=path, failed=chance.random() < 0.08, session=f"session-{seq // 400}",
            project=f"/home/ada/project-{seq // 400 % 20}", agent=chance.choice(AGENTS), tool=chance.choice(TOOLS),
            kind="tool.finished",
        )  # fmt: skip


def fill(store: SqliteStore, count: int) -> float:
    """Seconds of CPU; the mark moves on as in the daemon."""
    began = time.process_time()
    before = HistoryMark()
    made = made_entries(count)
    while entries := list(itertools.islice(made, PORTION)):
        after = HistoryMark(entries[-1].seq)
        with store.transaction(durable=False):
            assert store.index_history(entries, str(before), str(after))
            rows = [(e.seq, e.seq) for e in entries]
            store._db.executemany("insert into events values (?, 1, 1, ?, 1, 1, 1, 1)", rows)
        before = after
    return time.process_time() - began


def main() -> None:
    heading(f"history: a question over {EVENTS:,} events, by CPU time")
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "holdfast.db")
        fact("indexing", f"{fill(store, EVENTS) / EVENTS * 1e6:.0f} µs an event, making it included")
        reader, medians, slowest = store.reader(), [], 0.0
        for name, query in QUESTIONS.items():
            times = []
            for number in range(REPEATS):
                began = time.process_time()
                found = reader.history(msgspec.structs.replace(query, before=EVENTS - number))
                times.append(1e3 * (time.process_time() - began))
            medians.append(p50(times))
            slowest = max(slowest, percentile(times, 0.9))
            fact(name, f"{p50(times):.2f} ms, {len(found)} found")
        reader.close()
        store.close()
    figure("p50 over the questions", p50(medians), 30, unit="ms")
    figure("p90 of the slowest question", slowest, 100, unit="ms")


if __name__ == "__main__":
    main()
