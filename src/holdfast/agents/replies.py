"""Replies to an agent's hooks, from the rules of its `agent.toml`."""

from collections.abc import Callable, Sequence
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
    return sanitise("\n".join(decision.notices))


def context_of(contexts: Sequence[Context]) -> str:
    return "\n\n".join(wrap_context(context) for context in contexts)


def voiced_reason(decision: Decision) -> str:
    """A reason that the agent hands back as a prompt: our voice marks it."""
    return VOICE + reason_of(decision)


class Rule(msgspec.Struct, frozen=True):
    on: frozenset[str]
    verdicts: frozenset[str]
    row: ReplyRow

    def applies(self, event: Event, decision: Decision) -> bool:
        if self.on and event.get("native") not in self.on and event.kind not in self.on:
            return False
        if self.verdicts and decision.verdict not in self.verdicts:
            return False
        return not (self.row.unless and event.get(self.row.unless))


def as_rule(row: ReplyRow) -> Rule:
    return Rule(frozenset(row.on.split()), frozenset(row.verdicts.split()), row)


_REPLY_VALUES: dict[str, Callable[[Decision], str]] = {
    "$verdict": lambda decision: decision.verdict,
    "$reason": reason_of,
    "$voiced_reason": voiced_reason,
    "$given_reason": lambda decision: reason_of(decision) if decision.reasons else "",
    "$refusal": lambda decision: reason_of(decision) if decision.verdict == "deny" else "",
    "$context": lambda decision: context_of(decision.contexts),
    "$notice": notice_of,
}


def write_reply(rules: Sequence[Rule], event: Event, decision: Decision) -> bytes:
    """The first rule that fills a field wins."""
    if decision.verdict == "none" and not decision.contexts and not decision.notices:
        return b""
    reply: dict[str, Any] = {}
    for rule in rules:
        if not rule.applies(event, decision):
            continue
        for name, value in _fill(rule.row.body, decision).items():
            reply.setdefault(name, value)
        if specific := _fill(rule.row.specific, decision):
            reply.setdefault("hookSpecificOutput", {"hookEventName": event.get("native")}).update(specific)
    return encode_reply(reply)


def _fill(template: Any, decision: Decision) -> Any:
    if isinstance(template, dict):
        filled = {name: _fill(value, decision) for name, value in template.items()}
        return {name: value for name, value in filled.items() if value != ""}
    value_of = _REPLY_VALUES.get(template) if isinstance(template, str) else None
    return value_of(decision) if value_of else template
