"""Token use of every agent that writes it down, call by call, as `model.answered` events: what costs are made of.

A record's key is the same wherever it is read, so reading a file again adds nothing. How far a file was read is only
remembered by the daemon; after a restart it is read once more from its beginning.
"""

from collections import OrderedDict
from collections.abc import Iterator

import msgspec

from holdfast.core.event import Event
from holdfast.core.ports import Reader
from holdfast.features.sessions.state.documents import Session
from holdfast.usage.events import usage_event
from holdfast.usage.reader import Position
from holdfast.usage.readers import reader_for

MAX_READS = 8
"""Portions of one file at a time; the rest comes with the next turn."""
MAX_POSITIONS = 500


class _Progress(msgspec.Struct):
    before: Position
    after: Position
    last_key: str
    """Of the last record between the two: once it is in the log, `after` holds."""


class UsagePositions:
    """How far each file was read. A position counts only when what was read up to it is in the log."""

    def __init__(self) -> None:
        self._progress: OrderedDict[str, _Progress] = OrderedDict()

    def start(self, path: str, reader: Reader) -> Position:
        known = self._progress.get(path)
        if known is None:
            return Position(path=path)
        return known.after if not known.last_key or reader.known([known.last_key]) else known.before

    def advance(self, path: str, before: Position, after: Position, last_key: str) -> None:
        self._progress[path] = _Progress(before, after, last_key)
        self._progress.move_to_end(path)
        if len(self._progress) > MAX_POSITIONS:
            self._progress.popitem(last=False)


_POSITIONS = UsagePositions()


def usage_events(session: Session, reader: Reader, positions: UsagePositions = _POSITIONS) -> Iterator[Event]:
    path = session.transcript
    source = reader_for(session.agent, path) if path else None
    if source is None:
        return
    before = position = positions.start(path, reader)
    last_key = ""
    for _ in range(MAX_READS):
        reading = source.read(position)
        position = reading.position
        for record in reading.records:
            last_key = record.key
            yield usage_event(msgspec.structs.replace(record, session=session.id, project=session.project))
        if not reading.more:
            break
    positions.advance(path, before, position, last_key)
