"""Processes closed turns (S4-14): their facts become documents, their token use is read."""

# Needs no model. Token use becomes `model.answered` events, one for each call of a model, which is what tokens and
# costs are made of. A record's key is the same wherever it is read, so reading a file again adds nothing. How far a
# file was read is only remembered by the daemon; after a restart it is read once more from its beginning, and what the
# log has is left out.

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from holdfast.analysis.usage.events import usage_event
from holdfast.analysis.usage.model import UsageRecord
from holdfast.analysis.usage.reader import LiveSession, Position, UsageReader
from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ids import native_session_id
from holdfast.core.ports import Reader
from holdfast.core.times import BELIEVED_AHEAD
from holdfast.features.sessions.jobs.agent_files import transcripts_of
from holdfast.features.sessions.jobs.read_words import unreported_events
from holdfast.features.sessions.settings import DEFAULTS
from holdfast.features.sessions.state.documents import SESSION, TURN, Session, Turn, session_event, turn_key
from holdfast.features.sessions.state.reducer import Turns, local_day, turns_from_log
from holdfast.features.sessions.turn_sums import turn_processed

MAX_READS, MAX_RECORDS = 128, 20_000
"""Reads and records of one file at one look. Half of a file would be shown as all of it until the next turn."""
MAX_POSITIONS = 500
KEYS_AT_ONCE = 500
WRITTEN_BEFORE_MS = 60_000
"""An agent may write something down a little before its first hook."""


class _Progress(msgspec.Struct):
    before: Position
    after: Position
    last_key: str
    """Of the last record between the two: once it is in the log, `after` holds."""


class UsagePositions:
    """How far each file was read for a session. A position counts only when what was read up to it is in the log."""

    def __init__(self) -> None:
        self._progress: OrderedDict[tuple[str, str], _Progress] = OrderedDict()

    def start(self, session: str, path: str, reader: Reader, stamp: int) -> Position:
        progress = self._progress.get((session, path))
        if progress is None:
            return Position(path=path, stamp=stamp)
        return progress.after if not progress.last_key or reader.seqs_of_keys([progress.last_key]) else progress.before

    def advance(self, session: str, before: Position, after: Position, last_key: str) -> None:
        name = session, before.path
        self._progress[name] = _Progress(before, after, last_key)
        self._progress.move_to_end(name)
        if len(self._progress) > MAX_POSITIONS:
            self._progress.popitem(last=False)


_POSITIONS = UsagePositions()


def usage_events(
    session: Session, reader: Reader, positions: UsagePositions = _POSITIONS, home: Path | None = None
) -> Iterator[Event]:
    """Token use in the files of the session and its subagents that the log does not have."""
    lanes = tuple(lane.transcript for lane in session.lanes.values() if lane.transcript)
    native = native_session_id(session.id, session.agent)
    live = LiveSession(native, home or Path.home(), session.transcript, lanes, session.started_at)
    turns = TurnNumbers(session, reader)
    for source, path in transcripts_of(session.agent).files_of(live):
        for record in _new_records(source, str(path), live, reader, positions):
            if not _is_copied(session, record):
                yield _session_usage_event(session, record, turns)


def _new_records(
    source: UsageReader, path: str, live: LiveSession, reader: Reader, positions: UsagePositions
) -> Iterator[UsageRecord]:
    # A shared database is read from when the session began, a file of its own from the start.
    stamp = max(0, live.began - WRITTEN_BEFORE_MS) if source.shared else 0
    before = position = positions.start(live.id, path, reader, stamp)
    last_key, told = "", 0
    for _ in range(MAX_READS):
        reading = source.read(position)
        position = reading.position
        # A shared database has records of other sessions.
        own_records = [one for one in reading.records if not source.shared or one.session == live.id]
        for record in _unknown_records(own_records, reader):
            last_key = record.key
            yield record
        told += len(own_records)
        if not reading.more or told >= MAX_RECORDS:
            break
    positions.advance(live.id, before, position, last_key)


def _unknown_records(records: list[UsageRecord], reader: Reader) -> Iterator[UsageRecord]:
    """Asked in portions: a database bounds the length of a question."""
    for start in range(0, len(records), KEYS_AT_ONCE):
        part = records[start : start + KEYS_AT_ONCE]
        known_keys = reader.seqs_of_keys([record.key for record in part])
        yield from (record for record in part if record.key not in known_keys)


def _is_copied(session: Session, record: UsageRecord) -> bool:
    """A fork's transcript begins with what its parent spent."""
    return session.origin == "fork" and 0 < record.at < session.started_at


def _session_usage_event(session: Session, record: UsageRecord, turns: "TurnNumbers") -> Event:
    native = native_session_id(session.id, session.agent)
    # `lane`: some agents name the session itself as the lane.
    own = msgspec.structs.replace(
        record, session=session.id, project=session.project, branch=record.branch or session.branch,
        lane="" if record.lane == native else record.lane, at=_time_of(session, record), turn_n=turns.of(record),
    )  # fmt: skip
    return usage_event(own, day=local_day(own.at))


def _time_of(session: Session, record: UsageRecord) -> int:
    """By the agent's clock; where that is absent or far ahead of ours, the time of the session's last event."""
    return record.at if 0 < record.at <= session.at + BELIEVED_AHEAD else session.at


class TurnNumbers:
    """Which turn a call belongs to: by the agent's own id of it, else by its time. Lines are written late."""

    def __init__(self, session: Session, reader: Reader) -> None:
        self._turns = Turns(session, reader)
        turns = [turn for turn in (session.previous, session.turn) if turn]
        self._by_id = {turn.id: turn.n for turn in turns if turn.id}
        self._recent = session.recent

    def of(self, record: UsageRecord) -> int:
        # Only the last two turns have their id at hand; older ones go by time.
        named = self._by_id.get(record.turn) if record.turn else None
        if named or not self._recent:
            return named or 0
        if record.at >= self._recent[0][1]:
            return self._recent[bisect_right(self._recent, record.at, key=lambda turn: turn[1]) - 1][0]
        return self._older(record.at)

    def _older(self, at: int) -> int:
        """Turns that the session's document does not hold any more; 0 before the first."""
        numbers = range(1, self._recent[0][0])
        # Reads about log n turns instead of all of them.
        return bisect_right(numbers, at, key=lambda n: turn.at if (turn := self._turns.get(n)) else 0)


def process_turns(call: JobCall) -> list[Event]:
    session = SESSION.load(call.reader, str(call.job.payload["session"]))
    if not session:
        return []
    settings = call.settings(session.project) or DEFAULTS
    unreported = unreported_events(session, call.reader) if settings.transcripts else []
    session = _with_interruptions(session, unreported)
    return [*unreported, *turn_events(session, call.reader, call.now, transcripts=settings.transcripts)]


def _with_interruptions(session: Session, unreported: list[Event]) -> Session:
    """No hook ends an interrupted turn: the next prompt did."""
    turns = {event.data.turn for event in unreported if event.kind == "turn.interrupted"}
    previous = session.previous
    if previous is None or previous.id not in turns:
        return session
    return msgspec.structs.replace(session, previous=msgspec.structs.replace(previous, how="interrupted"))


def read_usage(call: JobCall) -> list[Event]:
    session = SESSION.load(call.reader, str(call.job.payload["session"]))
    settings = (call.settings(session.project) or DEFAULTS) if session else DEFAULTS
    return list(usage_events(session, call.reader)) if session and settings.transcripts else []


def turn_events(session: Session, reader: Reader, now: int, *, transcripts: bool = True) -> Iterator[Event]:
    for turn in _unprocessed_turns(session, reader):
        # A turn that grew after it was gone through is gone through again.
        stored = TURN.load(reader, turn_key(session.id, turn.n))
        yield session_event(session, turn_processed(session, turn, stored), now, f"{turn.n}.{turn.seq}")
    if transcripts:
        yield from usage_events(session, reader)


def _unprocessed_turns(session: Session, reader: Reader) -> list[Turn]:
    """After a day in the spool there may be more of them than a document holds: the log knows them all."""
    held = session.unprocessed_turns()
    if not session.missed:
        return held
    until = held[0].n if held else session.turn.n if session.turn else 0
    in_log = turns_from_log(session, reader)
    return [*(in_log[n] for n in range(session.missed, until) if n in in_log), *held]
