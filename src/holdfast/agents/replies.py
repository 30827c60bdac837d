"""Replies to an agent's hooks, from the rules of its `agent.toml`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from holdfast.agents.definition import ReplyRow
from holdfast.core.decision import Context, Decision
from holdfast.core.event import Event
from holdfast.core.text import VOICE, sanitise, sanitise_around_fences, wrap_context

NO_REASON = "Refused by Holdfast."


def encode_reply(reply: dict[str, Any]) -> bytes:
    return msgspec.json.encode(reply) if reply else b""


def reason_of(decision: Decision) -> str:
    return sanitise_around_fences("\n".join(decision.reasons)) or NO_REASON


def notice_of(decision: Decision) -> str:
    return sanitise("\n".join(decision.notices)) if decision.notices else ""


def context_of(contexts: Sequence[Context]) -> str:
    return "\n\n".join(map(wrap_context, contexts))


def voiced_reason(decision: Decision) -> str:
    """A reason that the agent hands back as a prompt: our voice marks it."""
    return VOICE + reason_of(decision)


_REPLY_VALUES: dict[str, Callable[[Decision], str]] = {
    "$verdict": lambda decision: decision.verdict,
    "$reason": reason_of,
    "$voiced_reason": voiced_reason,
    "$given_reason": lambda decision: reason_of(decision) if decision.reasons else "",
    "$refusal": lambda decision: reason_of(decision) if decision.verdict == "deny" else "",
    "$context": lambda decision: context_of(decision.contexts),
    "$notice": notice_of,
}


class ReplyRules:
    """An agent's reply rows. Which of them apply is looked up once per event, kind and verdict."""

    def __init__(self, rows: Sequence[ReplyRow]) -> None:
        self._rows = rows
        self._applying: dict[tuple[str, str, str], list[ReplyRow]] = {}

    def applying(self, native: str, kind: str, verdict: str) -> list[ReplyRow]:
        key = (native, kind, verdict)
        rows = self._applying.get(key)
        if rows is None:
            rows = self._applying[key] = [row for row in self._rows if _applies(row, {native, kind}, verdict)]
        return rows

    def carried(self, event: Event, decision: Decision) -> Decision:
        """The part of a decision that some row has a place for."""
        rows = self.applying(event.data.get("native") or "", event.kind, decision.verdict)
        places = {place for row in rows if not (row.unless and event.data.get(row.unless)) for place in _places_of(row)}
        left_out: dict[str, Any] = {}
        if decision.contexts and "$context" not in places:
            left_out["contexts"] = ()
        if decision.notices and "$notice" not in places:
            left_out["notices"] = ()
        if decision.verdict in ("deny", "ask") and places.isdisjoint(_REASONS):
            left_out |= {"verdict": "none", "reasons": ()}
        return msgspec.structs.replace(decision, **left_out) if left_out else decision


_REASONS = frozenset(("$reason", "$voiced_reason", "$refusal", "$given_reason"))


def _places_of(row: ReplyRow) -> Iterator[str]:
    """The names beginning with `$` that it fills in."""
    templates: list[Any] = [row.body, row.specific]
    for template in templates:
        if isinstance(template, dict):
            templates += template.values()
        elif isinstance(template, str):
            yield template


def _applies(row: ReplyRow, names: set[str], verdict: str) -> bool:
    return (not row.on or not names.isdisjoint(row.on.split())) and (
        not row.verdicts or verdict in row.verdicts.split()
    )


def write_reply(rules: ReplyRules, event: Event, decision: Decision) -> bytes:
    """The first row that fills a field wins."""
    if decision.verdict == "none" and not decision.contexts and not decision.notices:
        return b""
    reply: dict[str, Any] = {}
    native = event.data.get("native")
    for row in rules.applying(native or "", event.kind, decision.verdict):
        if row.unless and event.data.get(row.unless):
            continue
        for name, value in _fill(row.body, decision).items():
            reply.setdefault(name, value)
        if specific := _fill(row.specific, decision):
            reply.setdefault("hookSpecificOutput", {"hookEventName": native}).update(specific)
    return encode_reply(reply)


def _fill(template: dict[str, Any], decision: Decision) -> dict[str, Any]:
    """Replace the names that begin with `$`, at any depth; empty values are left out."""
    filled = {}
    for name, value in template.items():
        filled_value = _fill(value, decision) if isinstance(value, dict) else _value(value, decision)
        if filled_value != "":
            filled[name] = filled_value
    return filled


def _value(template: Any, decision: Decision) -> Any:
    value_of = _REPLY_VALUES.get(template) if isinstance(template, str) else None
    return value_of(decision) if value_of else template
