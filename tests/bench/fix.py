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

PAGE, LEAST_LETTERS = 500, 3


def main() -> None:
    heading("fix: the earlier occurrence of an error that a later session had again")
    if not real_sessions.needs_data():
        return
    asked: list[bool] = []
    took: list[float] = []
    for name, sessions in real_sessions.repositories().items():
        with tempfile.TemporaryDirectory() as folder:
            house = MemoryHarness(Path(folder))
            seen: dict[str, set[str]] = defaultdict(set)
            for session in sessions:
                ends = [one for one in session.events if one.kind in TOOL_ENDS and not one.data.lane]
                failures = {_signature(one): one for one in reversed(ends) if has_failed(one)}
                for sign, failure in failures.items():
                    if sign and seen[sign]:
                        asked.append(_is_found(house, failure, seen[sign], took))
                _store(house, ends)
                for sign, failure in failures.items():
                    seen[sign].add(failure.session)
            house.close()
            fact(name, f"{len(seen)} errors")
    figure("earlier occurrence found", sum(asked) / max(1, len(asked)), 0.95, unit="", more_is_better=True,
           note=f"{sum(asked)} of {len(asked)}")  # fmt: skip
    if took:
        fact("one answer, p50 and p99", f"{p50(took):.0f} and {p99(took):.0f} ms")


def _signature(event: Event) -> str:
    """Empty where nothing printed is an error: `^C`, a closing bracket."""
    sign = signature(first_error(event.data.error or event.data.output))
    return sign if sum(map(str.isalpha, sign)) > LEAST_LETTERS else ""


def _is_found(house: MemoryHarness, failure: Event, earlier: set[str], took: list[float]) -> bool:
    """An earlier session knew the error; its text is all that is given."""
    began = time.perf_counter_ns()
    answer = house.view("fix", text=failure.data.error or failure.data.output)
    took.append((time.perf_counter_ns() - began) / 1e6)
    return bool({row["session"] for row in answer["found"]} & earlier)


def _store(house: MemoryHarness, ends: list[Event]) -> None:
    """Straight into the store and its index; what is derived from them is no matter here."""
    if not ends:
        return
    head = house.reader.head()
    stored = [msgspec.structs.replace(one, seq=n, key=f"k{n}", project=PROJECT) for n, one in enumerate(ends, head + 1)]
    with house.store.transaction():
        house.store.append(stored)
    while page := next_page(house.reader, PAGE):
        with house.store.transaction():
            house.store.index_history(page.entries, str(page.before), str(page.after))
