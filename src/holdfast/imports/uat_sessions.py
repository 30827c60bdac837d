"""The UAT system's session files: a run with its steps and tool calls, over and done."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.core.event import Event
from holdfast.imports.source import Found, Importer, Place, Skipped, key_of, parse_milliseconds, session_name

NAME = "uat"
FORMAT = "claude-uat-session-state"
FOLDERS = ("uat/sessions", ".claude/uat/sessions", "sessions", "uat")
MOST_CALLS = 5_000


def find_uat_sessions(location: Place) -> Iterable[Path]:
    candidates = [file for name in FOLDERS for file in sorted((location.project / name).glob("claude-session-*.json"))]
    return list(dict.fromkeys(candidates))


def read_uat_session(path: Path, location: Place) -> Iterator[Found]:
    try:
        state = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        yield Skipped(str(path), f"not JSON: {error}")
        return
    meta, run = _mapping_in(state, "meta"), _mapping_in(state, "session")
    uat, session = run.get("uatSessionId"), session_name(run.get("claudeSessionId"))
    if meta.get("format") != FORMAT or not isinstance(uat, str) or not uat or not session:
        yield Skipped(str(path), f"not a {FORMAT} with both its ids")
        return
    yield from _Run(path, location, session, uat, state).events()


class _Run:
    def __init__(self, path: Path, location: Place, session: str, uat: str, state: Mapping[str, Any]) -> None:
        self.path, self.place, self.session, self.uat, self.state = path, location, session, uat, state
        self.begun = parse_milliseconds(_mapping_in(state, "session").get("startTime"))

    def events(self) -> Iterator[Found]:
        scenario = _mapping_in(self.state, "scenario")
        plan = {
            "name": str(scenario.get("name", "")),
            "steps": [_planned_step(step) for step in _list_in(scenario, "steps")],
        }
        mode = str(_mapping_in(self.state, "session").get("mode", ""))
        yield self._event("uat.started", "", self.begun, plan=plan, mode=mode)
        for n, call in enumerate(_list_in(_mapping_in(self.state, "execution"), "toolCalls")[:MOST_CALLS], 1):
            yield from self._call(n, call)
        for step in _list_in(scenario, "steps"):
            yield from self._step(step)
        last = parse_milliseconds(_mapping_in(self.state, "session").get("lastActivity")) or self.begun
        yield self._event("uat.ended", "", last, reason="import")

    def _call(self, n: int, call: Any) -> Iterator[Found]:
        if not isinstance(call, Mapping) or not call.get("toolName"):
            yield Skipped(f"{self.path}: tool call {n}", "it names no tool")
            return
        at, name = parse_milliseconds(call.get("timestamp")) or self.begun, str(call.get("id") or n)
        shared = {"n": n, "call": name, "step": call.get("stepNumber") or 0, "tool": str(call["toolName"])}
        yield self._event("uat.call_started", name, at, parameters=call.get("parameters"), **shared)
        ended = {"parameters": call.get("parameters"), "result": call.get("result"), "ms": call.get("executionTime")}
        yield self._event("uat.call_ended", name, at, ok=call.get("success") is not False, **ended, **shared)

    def _step(self, step: Any) -> Iterator[Found]:
        fields = step if isinstance(step, Mapping) else {}
        number, status = fields.get("stepNumber"), fields.get("status")
        if not isinstance(number, int) or not isinstance(status, str):
            yield Skipped(f"{self.path}: a step", "it has no number or no status")
            return
        at = parse_milliseconds(fields.get("endTime")) or parse_milliseconds(fields.get("startTime")) or self.begun
        yield self._event("uat.step", str(number), at, step=number, status=status)

    def _event(self, kind: str, which: str, at: int, **data: Any) -> Event:
        return Event(
            key=key_of(NAME, self.uat, kind, which),
            kind=kind,
            at=at,
            session=self.session,
            project=str(self.place.project),
            data={"uat": self.uat, **data, "imported": NAME},
        )


def _planned_step(step: Any) -> dict[str, Any]:
    fields = step if isinstance(step, Mapping) else {}
    return {"action": str(fields.get("action", "")), "description": str(fields.get("description", ""))}


def _mapping_in(value: Any, name: str) -> Mapping[str, Any]:
    inner = value.get(name) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _list_in(value: Mapping[str, Any], name: str) -> list[Any]:
    inner = value.get(name)
    return inner if isinstance(inner, list) else []


IMPORTER = Importer(NAME, "the UAT system's sessions", find_uat_sessions, read_uat_session)
