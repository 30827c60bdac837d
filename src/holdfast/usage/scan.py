"""Everything that the agents below a home folder wrote down, each statement once."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from holdfast.usage.model import UsageRecord
from holdfast.usage.reader import Position, UsageReader
from holdfast.usage.readers import READERS


class Ledger:
    """Keys that are counted: a resumed, forked or copied session repeats what another file told already."""

    def __init__(self, counted: Iterable[str] = ()) -> None:
        self._counted = set(counted)

    def is_new(self, record: UsageRecord) -> bool:
        key = record.key
        if key in self._counted:
            return False
        self._counted.add(key)
        return True


def scan_usage(home: Path, agents: Iterable[str] = READERS, ledger: Ledger | None = None) -> Iterator[UsageRecord]:
    """Older files first, so that a message belongs to the session that paid for it and not to a fork's copy."""
    ledger = ledger or Ledger()
    for agent in agents:
        for reader in READERS[agent]:
            for path in sorted(reader.find(home), key=_modified_time):
                yield from filter(ledger.is_new, records_of(reader, path))


def records_of(
    reader: UsageReader, path: Path, keep: Callable[[Position], None] | None = None
) -> Iterator[UsageRecord]:
    """All records of one file, never more than one chunk of it in memory. `keep` is told how far it was read."""
    position, more = Position(str(path)), True
    while more:
        reading = reader.read(position)
        position, more = reading.position, reading.more
        yield from reading.records
        if keep:
            keep(position)


def _modified_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
