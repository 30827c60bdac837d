"""What Holdfast itself found out about a session: by looking at processes and transcripts, or from its user."""

from collections.abc import Mapping

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.sessions import calls, lanes, lineage
from holdfast.features.sessions.ends import end_session, reactivate
from holdfast.features.sessions.model import ACTIVE, COMPLETED, LATE_MS, TOKENS, Handler
from holdfast.features.sessions.turns import close_turn, processed, reopen_turn


def _decided(doc: Doc, event: Event) -> None:
    data = event.data
    doc["told"] += sum(c.get("tokens", 0) for c in data.get("contexts", ()))
    if data.get("verdict") != "deny":
        return
    if data.get("of_kind") == "tool.started":
        doc["denied"] += 1
        calls.through(doc, [data.get("call", "") or f"#{data.get('of')}"])
    elif data.get("of_kind") == "turn.ended" and doc["status"] == ACTIVE:
        reopen_turn(doc)  # A refused stop means: go on working.


def _process_found(doc: Doc, event: Event) -> None:
    doc["process"] = {name: event.get(name) for name in ("pid", "start", "boot", "host", "name")}


def _exit_read(doc: Doc, event: Event) -> None:
    """The hook had said no more than that the command ran."""
    if event.get("ok") is False:
        doc["failed"] += 1
        turn = doc["turn"]
        doc["turn"] = turn and {**turn, "failed": turn["failed"] + 1}


def _lost(doc: Doc, event: Event) -> None:
    process = doc["process"]
    if process and (process["pid"], process["start"]) == (event.get("pid"), event.get("start")):
        end_session(doc, event, "process-gone")


def _stale(doc: Doc, event: Event) -> None:
    if not doc["process"] and doc["at"] <= event.get("last", 0):
        end_session(doc, event, "stale")


def _left(doc: Doc, event: Event) -> None:
    end_session(doc, event, "clear")


def _closed(doc: Doc, event: Event) -> None:
    end_session(doc, event, "closed-by-user")


def _reopened(doc: Doc, _event: Event) -> None:
    if doc["status"] == COMPLETED:
        reactivate(doc)
        doc["process"] = None  # It may be dead; if the session lives, its next event names it again.


def _granted(doc: Doc, event: Event) -> None:
    doc["asks"] = [ask for ask in doc["asks"] if ask["at"] != event.get("asked")]


def _turn_recovered(doc: Doc, event: Event) -> None:
    turn = doc["turn"]
    if turn and turn["n"] == event.get("n") and doc["at"] <= event.get("last", 0):
        calls.nothing_runs(doc)
        lanes.all_ended(doc, event)
        close_turn(doc, event, "recovered")


def _turn_escaped(doc: Doc, event: Event) -> None:
    turn = doc["turn"]
    if turn and turn["n"] == event.get("n") and doc["at"] <= event.get("when", 0) + LATE_MS:
        calls.nothing_runs(doc, lane="")
        close_turn(doc, event, "interrupted")


def _turn_adopted(doc: Doc, event: Event) -> None:
    turn = doc["turn"]
    if turn and turn["n"] == event.get("n"):
        doc["turn"] = {**turn, "adopted": True}


def _turn_processed(doc: Doc, event: Event) -> None:
    processed(doc, event.get("n", 0), event.get("upto", 0))


def _tokens_read(doc: Doc, event: Event) -> None:
    doc["tokens"] = added(doc["tokens"], event.get("total", {}))
    if event.get("lane"):
        lanes.tokens_read(doc, event.get("lane"))
    else:
        doc["read"] = {name: event.get(name) for name in ("path", "offset", "last", "ids")}


def _summarised(doc: Doc, event: Event) -> None:
    doc["summarised"] = event.get("of", 0)


def added(tokens: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: tokens.get(name, 0) + more.get(name, 0) for name in TOKENS}


FOUND: dict[str, Handler] = {
    "decision.made": _decided,
    "session.process": _process_found,
    "session.lost": _lost,
    "session.stale": _stale,
    "session.left": _left,
    "session.closed": _closed,
    "session.reopened": _reopened,
    "session.linked": lineage.linked,
    "session.branched": lineage.branched,
    "session.summarised": _summarised,
    "permission.granted": _granted,
    "turn.recovered": _turn_recovered,
    "turn.escaped": _turn_escaped,
    "turn.adopted": _turn_adopted,
    "turn.processed": _turn_processed,
    "tokens.read": _tokens_read,
    "tool.exit_read": _exit_read,
}
