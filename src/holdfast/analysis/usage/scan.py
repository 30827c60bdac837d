"""Reads all records of one agent file."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.analysis.usage.model import UsageRecord
from holdfast.analysis.usage.reader import Position, UsageReader


def records_of(reader: UsageReader, path: Path) -> Iterator[UsageRecord]:
    """Never holds more than one chunk of the file in memory."""
    position, more = Position(str(path)), True
    while more:
        reading = reader.read(position)
        position, more = reading.position, reading.more
        yield from reading.records
