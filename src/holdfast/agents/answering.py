"""The reply Claude Code introduced and others took over; each adapter says which parts of it its agent honours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from holdfast.core.decision import Context, Decision
from holdfast.core.event import Event
from holdfast.core.text import sanitise, sanitise_around_fences, wrap_context

NO_REASON = "Refused by Holdfast."
NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Event names by what a reply to them may say."""

    context: frozenset[str]
    block: frozenset[str]
    permission: frozenset[str] = NOBODY
    before_tool: str = "PreToolUse"
    verdicts: frozenset[str] = frozenset({"deny", "ask", "allow"})
    """What may be answered before a tool. An agent that does not know a verdict may drop the whole reply."""

    def answered(self, native: Any) -> bool:
        return native in self.context or native in self.block or native in self.permission or native == self.before_tool


def write_reply(
    answers: Answers, event: Event, decision: Decision, *, stop_reason: Callable[[Decision], str] | None = None
) -> bytes:
    """`stop_reason` words the refusal of a stop where that has to differ."""
    native = event.get("native")
    if not answers.answered(native) or event.get("compaction"):
        return b""
    worded = stop_reason if stop_reason and native == "Stop" else reason_of
    reply = _block_fields(answers, native, decision, worded)
    if specific := _hook_specific_fields(answers, native, decision):
        reply["hookSpecificOutput"] = {"hookEventName": native, **specific}
    if decision.notices:
        reply["systemMessage"] = notice_of(decision)
    return encode_reply(reply)


def encode_reply(reply: dict[str, Any]) -> bytes:
    return msgspec.json.encode(reply) if reply else b""


def _block_fields(
    answers: Answers, native: str, decision: Decision, worded: Callable[[Decision], str]
) -> dict[str, Any]:
    blocks = decision.verdict == "deny" and native in answers.block
    return {"decision": "block", "reason": worded(decision)} if blocks else {}


def _hook_specific_fields(answers: Answers, native: str, decision: Decision) -> dict[str, Any]:
    specific: dict[str, Any] = {}
    if native == answers.before_tool and decision.verdict in answers.verdicts:
        specific["permissionDecision"] = decision.verdict
        if decision.reasons or decision.verdict != "allow":
            specific["permissionDecisionReason"] = reason_of(decision)
    if native in answers.permission and decision.verdict in ("deny", "allow"):
        message = {"message": reason_of(decision)} if decision.verdict == "deny" else {}
        specific["decision"] = {"behavior": decision.verdict, **message}
    if native in answers.context and decision.contexts:
        specific["additionalContext"] = context_of(decision.contexts)
    return specific


def reason_of(decision: Decision) -> str:
    return sanitise_around_fences("\n".join(decision.reasons)) or NO_REASON


def notice_of(decision: Decision) -> str:
    return sanitise("\n".join(decision.notices))


def context_of(contexts: Sequence[Context]) -> str:
    return "\n\n".join(wrap_context(context) for context in contexts)
