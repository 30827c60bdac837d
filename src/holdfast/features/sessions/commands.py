"""What a person may do to a session. Force-close is a command, not an SQL update."""

from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.ids import delivery_key
from holdfast.core.ports import Doc, Reader, Ref
from holdfast.features.sessions import lookup, recovery
from holdfast.features.sessions.model import COMPLETED, SESSION


def close(call: Call) -> CommandResult:
    doc = lookup.find(call.reader, _given(call))
    if doc["status"] == COMPLETED:
        return CommandResult(answer={"id": doc["id"], "changed": False, "reason": doc["reason"]})
    return _changed(call, doc, "session.closed")


def reopen(call: Call) -> CommandResult:
    doc = lookup.find(call.reader, _given(call))
    if doc["status"] != COMPLETED:
        return CommandResult(answer={"id": doc["id"], "changed": False, "reason": ""})
    return _changed(call, doc, "session.reopened")


def recover(call: Call) -> CommandResult:
    """The recovery jobs by hand: one of them, or all. Safe to run twice: what was told is told once."""
    kind = str(call.args.get("kind") or "")
    if kind and kind not in recovery.FINDERS:
        raise CommandRefused(f"there is no recovery {kind!r}", fix=f"There are: {', '.join(recovery.FINDERS)}.")
    wanted = [kind] if kind else list(recovery.FINDERS)
    found = {name: recovery.found(name, call.reader, call.settings, call.now) for name in wanted}
    return CommandResult(
        tuple(event for events in found.values() for event in events),
        answer={name: sorted({event.session for event in events}) for name, events in found.items()},
    )


def _given(call: Call) -> str:
    given = str(call.args.get("id") or "").strip()
    if not given:
        raise CommandRefused("say which session", fix="See: holdfast sessions list")
    return given


def _changed(call: Call, doc: Doc, kind: str) -> CommandResult:
    event = Event(key=delivery_key(call.now), kind=kind, at=call.now, session=doc["id"], project=doc["project"])

    def answer(reader: Reader) -> dict[str, Any]:
        after = reader.state(Ref(SESSION, doc["id"])) or {}
        return {"id": doc["id"], "changed": True, "status": after.get("status"), "reason": after.get("reason")}

    return CommandResult((event,), answer=answer)
