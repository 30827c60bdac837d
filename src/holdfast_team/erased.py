"""Makes the team's server forget what was erased on this machine, by number, never by text."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from holdfast.core.event import Event
from holdfast.core.ports import EventQuery, Reader
from holdfast.paths import private_folder
from holdfast_team.membership import TeamConnection, TeamFiles
from holdfast_team.protocol import ForgetReceipt, ForgetRequest, Level, SharedEvent
from holdfast_team.sent import SentLog, digest_of, drop_words, list_words
from holdfast_team.sharing import level_named

Reading = Callable[[], AbstractContextManager[Reader]]
ShareAt = Callable[[Event, Level], SharedEvent | None]


def forget_erased(
    files: TeamFiles, connection: TeamConnection, sent_log: SentLog, reading: Reading, share_at: ShareAt
) -> ForgetReceipt | None:
    """Compare what was sent with the log as it is now, and the words of commands with their digests."""
    numbers, sessions, gone = [], set(), set()
    with reading() as reader:
        for one in sent_log.events():
            event = reader.event(one.seq)
            level = level_named(one.level)
            again = share_at(event, level) if event and level else None
            if event is not None and event.kind != "event.erased" and again and digest_of(again) == one.digest:
                continue
            gone.add((one.stream, one.seq))
            numbers.append(one.seq)
            # The event itself is gone: perhaps its whole session was erased.
            if event is None or event.kind == "event.erased":
                sessions.add(one.session)
    words = sorted({one.id or str(one.body.get("id") or "") for one in list_words(files) if one.was_changed()} - {""})
    if not gone and not words:
        return None
    whole = tuple(sorted(session for session in sessions if session and not _has_events_left(reading, session)))
    request = ForgetRequest(sessions=whole, numbers=tuple(numbers), words=tuple(words))
    receipt = connection.request("POST", "/v1/forget", ForgetReceipt, request)
    sent_log.drop_events(frozenset(gone))
    # An older server forgets no words: they are named again at the next erasure.
    if receipt.words is not None:
        drop_words(files, frozenset(words))
    note_receipt(files, receipt)
    return receipt


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
