"""A requirement made ready for the hook: what triggers it, what resolves it, where it refuses."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.core.event import Event
from holdfast.features.gates.globs import any_matches
from holdfast.features.gates.shell import readings

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
MOST_TOOLS = 500
Test = Callable[[Event], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """One way to trigger a rule: by the tool, and then, where asked for, by what it is about to do."""

    named: Test
    more: Test | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    name: str
    spec: "Requirement"
    ways: tuple[Way, ...]
    skills: frozenset[str]
    at_tool: bool
    at_stop: bool

    @property
    def scope(self) -> str:
        return self.spec.scope

    @property
    def type(self) -> str:
        return self.spec.type

    def asked_at_stop(self, scopes: Sequence[str]) -> bool:
        return self.at_stop and (self.type in ("stop_only", "evidence") or self.scope in scopes)

    def resolved_by(self, skill: str) -> bool:
        return skill in self.skills or skill.rpartition(":")[2] in self.skills


def compiled(name: str, spec: "Requirement") -> Rule:
    ways = tuple(_way(one, spec) for one in spec.trigger_tools)
    at_tool, at_stop = _where(spec)
    return Rule(name, spec, ways, _skills(spec), at_tool, at_stop)


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


def _way(trigger: Any, spec: "Requirement") -> Way:
    tool = trigger if isinstance(trigger, str) else trigger.tool
    pattern = spec.command_pattern if isinstance(trigger, str) else trigger.command_pattern or spec.command_pattern
    paths = spec.paths if isinstance(trigger, str) else trigger.paths or spec.paths
    if pattern and _action(tool) in ("shell", ""):
        return Way(_names(tool), _command_test(re.compile(pattern)))
    if paths or spec.except_paths:
        return Way(_names(tool), _path_test(paths, spec.except_paths))
    return Way(_names(tool))


def _action(tool: str) -> str:
    return tool if tool in ACTIONS else ACTION_OF.get(tool, "")


def _names(tool: str) -> Test:
    action = _action(tool)
    if tool in ACTIONS:
        return lambda event: event.data.get("action") == action
    if not action:
        return lambda event: event.tool == tool
    return lambda event: event.tool == tool or (event.agent != CLAUDE and event.data.get("action") == action)


def _command_test(pattern: re.Pattern[str]) -> Test:
    return lambda event: any(pattern.search(text) for text in readings(event.data.get("command") or ""))


def _path_test(paths: tuple[str, ...], never: tuple[str, ...]) -> Test:
    def test(event: Event) -> bool:
        return any(
            (not paths or any_matches(paths, path, event.project)) and not any_matches(never, path, event.project)
            for path in event.data.get("paths") or ()
        )

    return test


Candidate = tuple[Rule, tuple[Test | None, ...]]


class Index:
    """Which rules a tool can trigger at all: found once per tool, so that most calls cost one lookup."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._known: dict[tuple[str, str, bool], tuple[Candidate, ...]] = {}
        self.last: tuple[Event | None, list[Rule]] = (None, [])
        """The last question and its answer (triggers.py)."""

    def triggered_by(self, event: Event) -> list[Rule]:
        found = []
        for rule, tests in self.of(event):
            for more in tests:
                if more is None or more(event):
                    found.append(rule)
                    break
        return found

    def of(self, event: Event) -> tuple[Candidate, ...]:
        key = (event.tool, str(event.data.get("action")), event.agent == CLAUDE)
        candidates = self._known.get(key)
        if candidates is None:
            if len(self._known) >= MOST_TOOLS:
                self._known.clear()
            candidates = self._known[key] = tuple(self._find(event))
        return candidates

    def _find(self, event: Event) -> Iterator[Candidate]:
        for rule in self._rules:
            if tests := tuple(way.more for way in rule.ways if way.named(event)):
                yield rule, tests
