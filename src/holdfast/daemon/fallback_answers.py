"""Writes the answers that hook clients give when the daemon is unreachable (`when_unsure: deny`)."""

# The file `when-unsure` in the state folder has one record per agent, hook and folder, each of eight NUL-terminated
# strings: agent, event, folder ("" is everywhere), until (ms, 0 is always), sense, key, values, answer. The client
# (native/hook.c, hook.py) takes the first matching record; with a key, the first such key in the body must (`only`) or
# must not (`except`) have one of the values. An empty answer lets the call through. See docs/protocol.md.

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from holdfast.core.agent import Agent, Hook
from holdfast.core.decision import Delivery, deny_decision
from holdfast.core.engine import Committed
from holdfast.core.event import Event
from holdfast.core.ports import Reader
from holdfast.daemon.ingest.log import Log
from holdfast.features.gates.events import PAUSE, RULES
from holdfast.features.gates.rules.in_force import StandIn, list_stand_ins
from holdfast.features.gates.rules.triggers import Rule
from holdfast.paths import write_atomically

NAME = "when-unsure"
# The keys under which agents name a tool; the first one that the agent's adapter reads is used.
TOOL_KEYS = ("tool_name", "toolName", "tool")
STOP_KEY = "stop_hook_active"
# No agent has it: shows how the rules treat unknown tools.
UNKNOWN_TOOL = "a_tool_that_nobody_knows"


class FallbackRecord(msgspec.Struct, frozen=True):
    agent: str
    event: str
    folder: str
    until: int = 0
    sense: str = "except"
    key: str = ""
    values: tuple[str, ...] = ()
    answer: bytes = b""

    def encode(self) -> bytes:
        quoted = "".join(f"{value}\n" for value in self.values)
        texts = (self.agent, self.event, self.folder, str(self.until), self.sense, self.key, quoted)
        fields = [os.fsencode(text) for text in texts]
        # A NUL byte inside a field would end it early.
        return b"".join(field.replace(b"\0", b"") + b"\0" for field in (*fields, self.answer))


class FallbackAnswers:
    """Keeps the file up to date as rules and pauses change; without such a requirement there is no file."""

    def __init__(self, state: Path, agents: Mapping[str, Agent], reader: Callable[[], Reader], log: Log) -> None:
        self._file, self._agents, self._reader, self._log = state / NAME, agents, reader, log

    def watch(self, committed: Committed) -> None:
        if any(ref.kind in (RULES, PAUSE) for _, ref, _ in committed.documents):
            self.write()

    def write(self) -> None:
        reader = self._reader()
        try:
            records = [record for one in list_stand_ins(reader) for record in self._records(one)]
        finally:
            reader.close()
        try:
            if records:
                write_atomically(self._file, b"".join(record.encode() for record in records))
            else:
                self._file.unlink(missing_ok=True)
        except OSError as error:
            self._log.error("when-unsure.not-written", error)

    def _records(self, stand_in: StandIn) -> Iterator[FallbackRecord]:
        for agent in self._agents.values():
            for hook in agent.hooks:
                # Only a hook that waits for an answer can be refused.
                if hook.mode == "ask" and hook.kind in ("tool.started", "turn.ended"):
                    record = _fallback_record(agent, hook, stand_in)
                    if record is not None:
                        yield record


def _fallback_record(agent: Agent, hook: Hook, stand_in: StandIn) -> FallbackRecord | None:
    if not stand_in.rules:
        return FallbackRecord(agent.name, hook.event, stand_in.folder, stand_in.until)
    return _tool_record(agent, hook, stand_in) if hook.kind == "tool.started" else _stop_record(agent, hook, stand_in)


def _tool_record(agent: Agent, hook: Hook, stand_in: StandIn) -> FallbackRecord | None:
    rules = [rule for rule in stand_in.rules if rule.at_tool]
    key = next((key for key in TOOL_KEYS if _read_event(agent, hook, {key: UNKNOWN_TOOL}).tool), "")
    unknown = _concerned_rules(rules, _read_event(agent, hook, {key: UNKNOWN_TOOL} if key else {}))
    tools = [
        tool
        for tool in agent.tools
        if bool(_concerned_rules(rules, _read_event(agent, hook, {key: tool}))) != bool(unknown)
    ]
    # The rules concern neither unknown tools nor any tool of this agent.
    if not unknown and not (key and tools):
        return None
    named = unknown or [
        rule for tool in tools for rule in _concerned_rules(rules, _read_event(agent, hook, {key: tool}))
    ]
    # Quoted, as in the raw JSON body that the client searches.
    values = tuple(f'"{tool}"' for tool in tools)
    answer = _refusal_answer(agent, hook, named)
    sense = "except" if unknown else "only"
    return FallbackRecord(
        agent.name, hook.event, stand_in.folder, stand_in.until, sense, f'"{key}"' if values else "", values, answer
    )


def _stop_record(agent: Agent, hook: Hook, stand_in: StandIn) -> FallbackRecord | None:
    """Refuse once, and only if the agent reports earlier refusals: nobody counts while the daemon is away."""
    rules = [rule for rule in stand_in.rules if rule.at_stop]
    if not rules or not _read_event(agent, hook, {STOP_KEY: True}).get("again"):
        return None
    answer = _refusal_answer(agent, hook, rules)
    return FallbackRecord(
        agent.name, hook.event, stand_in.folder, stand_in.until, "except", f'"{STOP_KEY}"', ("true",), answer
    )


def _read_event(agent: Agent, hook: Hook, payload: Mapping[str, object]) -> Event:
    delivery = Delivery(key="", agent=agent.name, event=hook.event, mode="ask")
    return agent.read(delivery, {"hook_event_name": hook.event, **payload})


def _concerned_rules(rules: Sequence[Rule], event: Event) -> list[Rule]:
    return [rule for rule in rules if any(way.named(event) for way in rule.ways)]


def _refusal_answer(agent: Agent, hook: Hook, rules: Sequence[Rule]) -> bytes:
    names = ", ".join(dict.fromkeys(rule.name for rule in rules))
    text = (
        f"Refused: Holdfast's daemon could not be reached, and {names} says `when_unsure: deny`. Try again in a moment. "
        "A person can look with `holdfast doctor`, start it with `holdfast daemon start`, or go on without it by setting "
        "HOLDFAST_PAUSE=1 for the agent."
    )
    return agent.write(_read_event(agent, hook, {}), deny_decision(text))
