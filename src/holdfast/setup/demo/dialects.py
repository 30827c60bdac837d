"""Turns a step of the day into the payloads that Claude Code, Codex and Gemini CLI send, as dialects.yaml has them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.setup.demo.moments import Cast, Moment, Step
from holdfast.setup.demo.repositories import as_text

Payload = dict[str, Any]
Said = tuple[str, Payload]
"""(the agent's event name, its payload)"""
Values = Mapping[str, Any]
_NAME = re.compile(r"\$\{?([a-z_]+(?:\.[a-z_]+)?)\}?")


@dataclass(frozen=True)
class Stage:
    """Where a session takes place."""

    cast: Cast
    root: Path
    home: Path


class Dialect:
    def __init__(self, described: Mapping[str, Any]) -> None:
        self.program: str = described["program"]
        self._described = described

    def env(self, stage: Stage) -> dict[str, str]:
        value: dict[str, str] = _fill(self._described["env"], _place_values(stage))
        return value

    def transcript(self, stage: Stage) -> Path:
        return Path(_fill(self._described["transcript"], _place_values(stage)))

    def hook_payloads(self, stage: Stage, moment: Moment, done: Payload) -> Iterator[Said]:
        step, hooks = moment.step, self._described["hooks"]
        values = {
            **_place_values(stage), **_step_values(stage, step, done), "transcript": str(self.transcript(stage)),
            "turn_id": f"{stage.cast.id[:24]}{moment.turn:012d}" if moment.turn else "", "call": moment.call,
            "lane": moment.lane, "lane_type": moment.lane_type, "ms": moment.ms, "time": iso_time(moment.at),
        }  # fmt: skip
        values["tool"] = self._of_kind("tools", step, values)
        values["response"] = self._of_kind("responses", step, values) if moment.what == "after" else ""
        what = "failed" if moment.what == "after" and step.get("fails") and "failed" in hooks else moment.what
        for event, fields in hooks.get(what, ()):
            yield event, {**_fill(self._described["common"], values), "hook_event_name": event, **_fill(fields, values)}

    def _of_kind(self, part: str, step: Step, values: Values) -> Any:
        kinds = self._described[part]
        return _fill(kinds[next((kind for kind in kinds if kind in step), "other")], values)


def _fill(template: Any, values: Values) -> Any:
    if isinstance(template, list):
        return [_fill(one, values) for one in template]
    if isinstance(template, dict):
        fields = {name: _fill(value, values) for name, value in template.items()}
        return {name.removesuffix("?"): value for name, value in fields.items() if value or not name.endswith("?")}
    if not isinstance(template, str):
        return template
    whole = _NAME.fullmatch(template)
    return _look_up(whole[1], values) if whole else _NAME.sub(lambda name: str(_look_up(name[1], values)), template)


def _look_up(name: str, values: Values) -> Any:
    holder, _, field = name.partition(".")
    return values[holder].get(field, "") if field else values[holder]


def _place_values(stage: Stage) -> Payload:
    begins = datetime.fromtimestamp(stage.cast.begins / 1000, UTC)
    return {
        "id": stage.cast.id, "id_begins": stage.cast.id[:8], "source": stage.cast.source, "model": stage.cast.model,
        "root": str(stage.root), "root_name": stage.root.name, "home": str(stage.home),
        "root_dashed": str(stage.root).replace("/", "-").replace(".", "-"),
        "day": f"{begins:%Y/%m/%d}", "day_time": f"{begins:%Y-%m-%dT%H-%M-%S}",
    }  # fmt: skip


def _step_values(stage: Stage, step: Step, done: Payload) -> Payload:
    path = str(step.get("edit") or step.get("write") or step.get("read") or "")
    fails = step.get("fails")
    return {
        "step": step, "done": done, "path": path, "file": str(stage.root / path), "command": _command_of(step),
        "changed_lines": _changed_lines(step),
        "diff": as_text(path, done) if "hunks" in done else "", "again": bool(step.get("again")),
        "output": done.get("text") or done.get("out") or step.get("out", ""),
        "line_count": str(done.get("text", "")).count("\n"),
        "exit_line": f"\nExit Code: {fails}" if fails else "",
        "options": [{"label": option, "description": ""} for option in step.get("options", ())],
        "answers": {step.get("ask"): step.get("chosen")}, "given": dict(step.get("given", {})),
        "task_prompt": step.get("prompt", step.get("task")), "search_quoted": repr(step.get("search")),
        "web_question": step.get("for", "What does it say?"),
    }  # fmt: skip


def _changed_lines(step: Step) -> str:
    removed, added = str(step.get("old", "")), str(step.get("new", step.get("text", "")))
    return "\n".join([*(f"-{line}" for line in removed.splitlines()), *(f"+{line}" for line in added.splitlines())])


def _command_of(step: Step) -> str:
    named = next((str(step[name]) for name in ("permission", "running", "shell") if name in step), "")
    return named or f"git {step.get('git')}"


def iso_time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read_dialects() -> dict[str, Dialect]:
    from ruamel.yaml import YAML

    described = YAML(typ="safe", pure=True).load(Path(__file__).with_suffix(".yaml"))
    return {agent: Dialect(one) for agent, one in described.items()}


DIALECTS = _read_dialects()
