"""A person's own line in the log."""

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.ids import delivery_key

LONGEST_NOTE = 10_000


def add_note(call: Call) -> CommandResult:
    text = str(call.args.get("text") or "").strip()
    if not text:
        raise CommandRefused("a note needs a text")
    key = delivery_key(call.now)
    data = {"text": text[:LONGEST_NOTE]}
    note = Event(key=key, kind="note.added", at=call.now, session=call.session, project=call.project, data=data)
    return CommandResult((note,), answer=lambda reader: {"seq": reader.seqs_of_keys([key])[key]})
