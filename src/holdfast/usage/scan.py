"""All records of one file, read in chunks."""

from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.usage.model import UsageRecord
from holdfast.usage.reader import Position, UsageReader


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
