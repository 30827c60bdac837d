"""Agents without an adapter: a `holdfast-agent-NAME` program translates their payloads and our answers (docs/agents.md)."""

from typing import Any

from holdfast.agents import normalise, payload_reader
from holdfast.agents.fields import Fields
from holdfast.agents.normalise import one_path
from holdfast.agents.replies import context_of, encode_reply, notice_of, reason_of
from holdfast.core.agent import Agent, Payload
from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.core.kinds import HOOK_KINDS

NAME_OF_AGENT = "plain"
SIGN = "holdfast"
"""The field that marks a payload of such a program; it holds the version of the format."""

_LIMITS = {
    "prompt": normalise.PROMPT, "message": normalise.MESSAGE, "command": normalise.COMMAND, "error": normalise.ERROR,
    "output": normalise.OUTPUT, "cwd": normalise.PATH, "transcript": normalise.PATH,
}  # fmt: skip
_NAMES = "call turn lane lane_type action skill source reason model mode trigger topic".split()


def _plain_name(value: Any) -> str | None:
    return bounded_name(value) if isinstance(value, str) and value else None


def _plain_flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


FIELDS: Fields = (
    *((name, name, normalise.text_cleaner(limit)) for name, limit in _LIMITS.items()),
    *((name, name, _plain_name) for name in _NAMES),
    *((name, name, _plain_flag) for name in ("ok", "again", "interrupted", "synthetic")),
    *((name, name, normalise.number_or_none) for name in ("exit_code", "ms")),
)


def read_event(delivery: Delivery, payload: Payload) -> Event:
    fields = normalise.mapping_or_empty(payload)
    raw_data = normalise.mapping_or_empty(fields.get("data"))
    kind, agent, session = fields.get("kind"), fields.get("agent"), fields.get("session")
    raw_data = {"cwd": one_path(delivery.cwd) or "", **raw_data}
    data = {**_event_data(raw_data), **payload_reader.parent_process(delivery), "native": bounded_name(delivery.event)}
    return Event(
        key=delivery.key,
        # Such a program cannot make events of Holdfast's own kinds.
        kind=kind if isinstance(kind, str) and kind in HOOK_KINDS else "unknown",
        at=delivery.at,
        session=bounded_name(session) if isinstance(session, str) else "",
        project=one_path(fields.get("project")) or data.get("cwd", ""),
        agent=bounded_name(agent) if isinstance(agent, str) and agent else bounded_name(delivery.agent),
        tool=bounded_name(tool) if isinstance(tool := fields.get("tool"), str) else "",
        data=data,
    )


def _event_data(raw_data: Payload) -> dict[str, Any]:
    """Only fields that events have, each within its limit."""
    data = normalise.pick_fields(raw_data, FIELDS)
    if paths := normalise.paths_in({"paths": raw_data.get("paths")}, data.get("cwd", "")):
        data["paths"] = paths
    if tool_input := normalise.mapping_or_empty(raw_data.get("input")):
        data["input"] = normalise.trim_input(tool_input)
    return data


def write_reply(event: Event, decision: Decision) -> bytes:
    """The answer that the program translates for its agent."""
    reply: dict[str, Any] = {}
    if decision.verdict != "none":
        reply = {"verdict": decision.verdict}
        if decision.verdict != "allow":
            reply["reason"] = reason_of(decision)
    if decision.contexts:
        reply["context"] = context_of(decision.contexts)
    if decision.notices:
        reply["notice"] = notice_of(decision)
    return encode_reply({SIGN: 1, "kind": event.kind, **reply}) if reply else b""


def recognise_payload(_delivery: Delivery, payload: Payload) -> bool:
    return normalise.mapping_or_empty(payload).get(SIGN) == 1


AGENT = Agent(
    name=NAME_OF_AGENT,
    title="any other agent",
    hooks=(),
    read=read_event,
    write=write_reply,
    recognise=recognise_payload,
    mark=payload_reader.by_numbered_ids,
)
