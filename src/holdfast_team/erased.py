"""Makes the team's server forget what was erased on this machine, by number, never by text."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from holdfast.core.event import Event
from holdfast.core.ports import EventQuery, Reader
from holdfast.paths import private_folder
from holdfast_team.membership import TeamConnection, TeamFiles
from holdfast_team.protocol import ForgetReceipt, ForgetRequest, Level, SharedEvent
from holdfast_team.sent import SentEvent, SentLog, digest_of, drop_words, list_words
from holdfast_team.sharing import level_named

Reading = Callable[[], AbstractContextManager[Reader]]
ShareAt = Callable[[Event, Level], SharedEvent | None]


def forget_erased(
    files: TeamFiles, connection: TeamConnection, sent_log: SentLog, reading: Reading, share_at: ShareAt
) -> ForgetReceipt | None:
    """Compare what was sent with the log as it is now, and the words of commands with their digests."""
    erased = _erased_events(sent_log, reading, share_at)
    words = _changed_words(files)
    if not erased and not words:
        return None
    sessions = {one.session for one, event in erased if event is None} - {""}
    whole = tuple(sorted(session for session in sessions if not _has_events_left(reading, session)))
    request = ForgetRequest(sessions=whole, numbers=tuple(one.seq for one, _ in erased), words=tuple(words))
    receipt = connection.request("POST", "/v1/forget", ForgetReceipt, request)
    sent_log.drop_events(frozenset((one.stream, one.seq) for one, _ in erased))
    # An older server forgets no words: they are named again at the next erasure.
    if receipt.words is not None:
        drop_words(files, frozenset(words))
    note_receipt(files, receipt)
    return receipt


def _changed_words(files: TeamFiles) -> list[str]:
    return sorted({one.number for one in list_words(files) if one.was_changed()} - {""})


def _erased_events(sent_log: SentLog, reading: Reading, share_at: ShareAt) -> list[tuple[SentEvent, Event | None]]:
    """Sent events that are no longer as they were, each with what is left; None if the event itself is gone."""
    with reading() as reader:
        now = [(one, _event_left(reader, one.seq)) for one in sent_log.events()]
        return [(one, event) for one, event in now if not _is_as_sent(one, event, share_at)]


def _event_left(reader: Reader, seq: int) -> Event | None:
    event = reader.event(seq)
    return event if event and event.kind != "event.erased" else None


def _is_as_sent(one: SentEvent, event: Event | None, share_at: ShareAt) -> bool:
    level = level_named(one.level)
    again = share_at(event, level) if event and level else None
    return again is not None and digest_of(again) == one.digest


def forget_everything(connection: TeamConnection) -> ForgetReceipt:
    """Forget everything this machine sent. The caller shows the receipt: nothing is kept here."""
    return connection.request("POST", "/v1/forget", ForgetReceipt, ForgetRequest(everything=True))


def _has_events_left(reading: Reading, session: str) -> bool:
    """Whether anything of the session is still in the log: then only single events were erased."""
    with reading() as reader:
        return bool(reader.events(EventQuery(session=session, limit=1)))


def note_receipt(files: TeamFiles, receipt: ForgetReceipt) -> None:
    with (private_folder(files.folder) / "receipts.jsonl").open("ab") as out:
        out.write(msgspec.json.encode(receipt) + b"\n")
