"""Agents we do not know: a `holdfast-agent-NAME` program reads their payloads for us and puts our answers into their
words (docs/agents.md). What comes from it is read here.
"""

from typing import Any

from holdfast.agents import normal, reading
from holdfast.agents.answering import context_of, encoded, notice_of, reason_of
from holdfast.agents.normal import one_path
from holdfast.core.agent import Agent, Payload
from holdfast.core.decision import Decision, Delivery
from holdfast.core.event import Event
from holdfast.core.ids import bounded
from holdfast.core.kinds import HOOK_KINDS

NAME_OF_AGENT = "plain"
SIGN = "holdfast"
"""The field, with the version of this form in it, by which a payload says that it is plain."""

TEXTS = {
    "prompt": normal.PROMPT, "message": normal.MESSAGE, "command": normal.COMMAND, "error": normal.ERROR,
    "output": normal.OUTPUT, "cwd": normal.PATH, "transcript": normal.PATH,
}  # fmt: skip
NAMES = (
    "call", "turn", "lane", "lane_type", "action", "skill", "source", "reason", "model", "mode", "trigger", "topic",
)  # fmt: skip
FLAGS, NUMBERS = ("ok", "again", "interrupted", "synthetic"), ("exit_code", "ms")


def read(delivery: Delivery, payload: Payload) -> Event:
    fields = normal.mapping(payload)
    raw_data = normal.mapping(fields.get("data"))
    kind, agent, session = fields.get("kind"), fields.get("agent"), fields.get("session")
    raw_data = {"cwd": one_path(delivery.cwd) or "", **raw_data}
    data = {**_data(raw_data), **reading.parent_process(delivery), "native": bounded(delivery.event)}
    return Event(
        key=delivery.key,
        kind=kind if isinstance(kind, str) and kind in HOOK_KINDS else "unknown",
        at=delivery.at,
        session=bounded(session) if isinstance(session, str) else "",
        project=one_path(fields.get("project")) or data.get("cwd", ""),
        agent=bounded(agent) if isinstance(agent, str) and agent else bounded(delivery.agent),
        tool=bounded(tool) if isinstance(tool := fields.get("tool"), str) else "",
        data=data,
    )


def _data(raw_data: Payload) -> dict[str, Any]:
    """Only fields that events have, each within its limit."""
    data: dict[str, Any] = {}
    for name, limit in TEXTS.items():
        if isinstance(text := raw_data.get(name), str) and text:
            data[name] = normal.capped(text, limit)
    data |= {name: bounded(value) for name in NAMES if isinstance(value := raw_data.get(name), str) and value}
    data |= {name: value for name in FLAGS if isinstance(value := raw_data.get(name), bool)}
    data |= {name: value for name in NUMBERS if (value := normal.number(raw_data.get(name))) is not None}
    if paths := normal.paths_in({"paths": raw_data.get("paths")}, data.get("cwd", "")):
        data["paths"] = paths
    if tool_input := normal.mapping(raw_data.get("input")):
        data["input"] = normal.trimmed(tool_input)
    return data


def write(event: Event, decision: Decision) -> bytes:
    """What the program is to put into its agent's words."""
    reply: dict[str, Any] = {}
    if decision.verdict != "none":
        reply = {"verdict": decision.verdict}
        if decision.verdict != "allow":
            reply["reason"] = reason_of(decision)
    if decision.contexts:
        reply["context"] = context_of(decision.contexts)
    if decision.notices:
        reply["notice"] = notice_of(decision)
    return encoded({SIGN: 1, "kind": event.kind, **reply}) if reply else b""


def recognise(_delivery: Delivery, payload: Payload) -> bool:
    return normal.mapping(payload).get(SIGN) == 1


PLAIN = Agent(
    name=NAME_OF_AGENT,
    title="any other agent",
    hooks=(),
    read=read,
    write=write,
    recognise=recognise,
    mark=reading.by_numbered_ids,
)
