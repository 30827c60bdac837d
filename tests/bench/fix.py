"""`holdfast fix`: is the earlier occurrence of a repeated error found (real sessions, imported into a store)?"""

import tempfile
import time
from collections import defaultdict
from pathlib import Path

import msgspec

from holdfast.analysis.error_text import first_error, signature
from holdfast.core.event import Event
from holdfast.core.history import next_page
from holdfast.features.memory.state.quirk_book import TOOL_ENDS, has_failed
from tests.bench import real_sessions
from tests.bench.figures import fact, figure, heading, p50, p99
from tests.features.memory.harness import MemoryHarness
from tests.harness import PROJECT

PAGE, BATCH = 500, 1_000


def main() -> None:
    heading("fix: the earlier occurrence of an error that a later session had again")
    if not real_sessions.needs_data():
        return
    asked = found = 0
    took: list[float] = []
    for name, sessions in real_sessions.repositories().items():
        with tempfile.TemporaryDirectory() as folder:
            house = MemoryHarness(Path(folder))
            failures = _stored(house, sorted((one for s in sessions for one in s.events), key=lambda one: one.at))
            for text, earlier in _repeated(failures):
                began = time.perf_counter_ns()
                answer = house.view("fix", text=text)
                took.append((time.perf_counter_ns() - began) / 1e6)
                asked += 1
                found += bool({row["session"] for row in answer["found"]} & earlier)
            house.close()
            fact(name, f"{len(failures)} failures")
    figure(
        "earlier occurrence found",
        found / max(1, asked),
        0.95,
        unit="",
        more_is_better=True,
        note=f"{found} of {asked}",
    )
    if took:
        fact("one answer, p50 and p99", f"{p50(took):.0f} and {p99(took):.0f} ms")


def _stored(house: MemoryHarness, events: list[Event]) -> list[Event]:
    """Straight into the store and its index; what is derived from them is no matter here."""
    ends = [one for one in events if one.kind in TOOL_ENDS and not one.data.lane]
    stored = [msgspec.structs.replace(one, seq=n, key=f"k{n}", project=PROJECT) for n, one in enumerate(ends, 1)]
    for start in range(0, len(stored), BATCH):
        with house.store.transaction():
            house.store.append(stored[start : start + BATCH])
    while page := next_page(house.reader, PAGE):
        with house.store.transaction():
            house.store.index_history(page.entries, str(page.before), str(page.after))
    return [one for one in stored if has_failed(one)]


def _repeated(failures: list[Event]) -> list[tuple[str, set[str]]]:
    """Error texts of later sessions, with the earlier sessions that had the same signature."""
    seen: dict[str, set[str]] = defaultdict(set)
    repeated = []
    for event in failures:
        text = event.data.error or event.data.output
        sign = signature(first_error(text))
        earlier = seen[sign] - {event.session}
        if sign and earlier and event.session not in seen[sign]:
            repeated.append((text, earlier))
        seen[sign].add(event.session)
    return repeated
