"""A requirement made ready for the hook: what triggers it, what resolves it, where it refuses."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.core.event import Event
from holdfast.features.gates.globs import any_matches
from holdfast.features.gates.shell import single_blanks

if TYPE_CHECKING:
    from holdfast.features.gates.model import Requirement

CLAUDE = "claude-code"
ACTION_OF = {
    **dict.fromkeys(("Edit", "Write", "MultiEdit", "NotebookEdit"), "edit"),
    **dict.fromkeys(("Bash", "PowerShell"), "shell"),
    **dict.fromkeys(("Agent", "Task"), "agent"),
    **dict.fromkeys(("Skill", "SlashCommand"), "skill"),
    **dict.fromkeys(("EnterPlanMode", "ExitPlanMode"), "plan"),
    **dict.fromkeys(("WebFetch", "WebSearch"), "web"),
    **dict.fromkeys(("Glob", "Grep"), "search"),
    "Read": "read",
}
"""Rules are written in Claude Code's names and hold in every agent: there they go by what the tool does."""
ACTIONS = frozenset(ACTION_OF.values()) | {"mcp", "todo", "ask", "other"}
Test = Callable[[Event], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    name: str
    spec: "Requirement"
    tests: tuple[Test, ...]
    skills: frozenset[str]
    at_tool: bool
    at_stop: bool

    @property
    def scope(self) -> str:
        return self.spec.scope

    @property
    def type(self) -> str:
        return self.spec.type

    def triggered_by(self, event: Event) -> bool:
        """Of a tool's event; exemptions are looked at before."""
        for test in self.tests:
            if test(event):
                return True
        return False

    def resolved_by(self, skill: str) -> bool:
        return skill in self.skills or skill.rpartition(":")[2] in self.skills


def compiled(name: str, spec: "Requirement") -> Rule:
    tests = tuple(_test(one, spec) for one in _triggers(spec))
    at_tool, at_stop = _where(spec)
    return Rule(name, spec, tests, _skills(spec), at_tool, at_stop)


def _triggers(spec: "Requirement") -> tuple[Any, ...]:
    """A command pattern alone is about the shell."""
    return ("shell",) if spec.command_pattern and "trigger_tools" not in spec.model_fields_set else spec.trigger_tools


def _skills(spec: "Requirement") -> frozenset[str]:
    """`plugin:skill` is also known by its last word, as people call it."""
    named = [skill.lstrip("/") for skill in (*spec.auto_resolve_skill, *spec.satisfied_by_skill)]
    return frozenset(named) | {skill.rpartition(":")[2] for skill in named}


def _where(spec: "Requirement") -> tuple[bool, bool]:
    if spec.check:
        return spec.check in ("tool", "both"), spec.check in ("stop", "both")
    if spec.type == "stop_only":
        return False, True
    if spec.type in ("dynamic", "guard"):
        return True, False
    if spec.type == "evidence":
        # Proof about an edit cannot be there before the edit: it is asked for when the turn ends. A command can wait.
        commands = spec.command_pattern or any(not isinstance(t, str) and t.command_pattern for t in spec.trigger_tools)
        return bool(commands), not commands
    return True, True


def _test(trigger: Any, spec: "Requirement") -> Test:
    tool = trigger if isinstance(trigger, str) else trigger.tool
    pattern = spec.command_pattern if isinstance(trigger, str) else trigger.command_pattern or spec.command_pattern
    paths = spec.paths if isinstance(trigger, str) else trigger.paths or spec.paths
    named = _names(tool)
    if pattern and _action(tool) in ("shell", ""):
        return _command_test(named, re.compile(pattern))
    if paths or spec.except_paths:
        return _path_test(named, paths, spec.except_paths)
    return named


def _action(tool: str) -> str:
    return tool if tool in ACTIONS else ACTION_OF.get(tool, "")


def _names(tool: str) -> Test:
    action = _action(tool)
    if tool in ACTIONS:
        return lambda event: event.data.get("action") == action
    if not action:
        return lambda event: event.tool == tool
    return lambda event: event.tool == tool or (event.agent != CLAUDE and event.data.get("action") == action)


def _command_test(named: Test, pattern: re.Pattern[str]) -> Test:
    def test(event: Event) -> bool:
        return named(event) and bool(pattern.search(single_blanks(event.data.get("command") or "")))

    return test


def _path_test(named: Test, paths: tuple[str, ...], never: tuple[str, ...]) -> Test:
    def test(event: Event) -> bool:
        return named(event) and any(
            (not paths or any_matches(paths, path, event.project)) and not any_matches(never, path, event.project)
            for path in event.data.get("paths") or ()
        )

    return test
