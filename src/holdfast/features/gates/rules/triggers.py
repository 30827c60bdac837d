"""A compiled requirement: what triggers it, what resolves it, where it refuses."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from holdfast.analysis.shell.command_effects import CommandActs, read_acts
from holdfast.core.event import Event
from holdfast.core.globs import any_matches
from holdfast.core.kinds import HookPayload, ToolPayload
from holdfast.core.lazy import lazy_pattern
from holdfast.features.gates.events import ACTING, action_of
from holdfast.features.gates.rules.tool_commands import action_of_tool, command_of, named_acts

if TYPE_CHECKING:
    from holdfast.features.gates.kinds.base import RequirementKind
    from holdfast.features.gates.settings import Requirement, Trigger

CLAUDE = "claude-code"
# Agents and MCP servers bring tools of any name; the table is emptied when it holds so many.
MOST_TOOLS = 500
Test = Callable[[Event], bool]


@cache
def actions() -> frozenset[str]:
    return frozenset(action_of_tool().values()) | {"mcp", "todo", "ask", "other"}


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """One trigger: by the tool and, optionally, by what it is about to do."""

    named: Test
    more: Test | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    name: str
    spec: "Requirement"
    kind: "RequirementKind"
    ways: tuple[Way, ...]
    skills: frozenset[str]
    at_tool: bool
    at_stop: bool
    patterns: tuple[re.Pattern[str], ...] = ()
    foreign: bool = False
    """Its text comes from an untrusted project."""

    @property
    def scope(self) -> str:
        return self.spec.scope

    @property
    def type(self) -> str:
        return self.spec.type

    def asked_at_stop(self, scopes: Sequence[str]) -> bool:
        return self.at_stop and (self.kind.always_at_stop or self.scope in scopes)

    def is_about(self, reading: str) -> bool:
        """Whether a reading (`command_effects`) matches its command patterns."""
        return any(_matches_reading(pattern, reading) for pattern in self.patterns)

    def resolved_by(self, skill: str) -> bool:
        return skill in self.skills or skill.rpartition(":")[2] in self.skills


def compile_rule(name: str, spec: "Requirement", kind: "RequirementKind", foreign: bool = False) -> Rule:
    ways = tuple(_trigger_way(one, spec, kind.protected_branches(spec)) for one in spec.trigger_tools)
    at_tool, at_stop = kind.checked_at(spec)
    if spec.check:
        # The settings override the kind's default.
        at_tool, at_stop = spec.check in ("tool", "both"), spec.check in ("stop", "both")
    skills = _resolving_skills(spec)
    return Rule(name, spec, kind, ways, skills, at_tool, at_stop, _command_patterns(spec), foreign)


def _command_patterns(spec: "Requirement") -> tuple[re.Pattern[str], ...]:
    named = [spec.command_pattern, *(t.command_pattern for t in spec.trigger_tools if not isinstance(t, str))]
    return tuple(re.compile(text) for text in dict.fromkeys(named) if text)


def _resolving_skills(spec: "Requirement") -> frozenset[str]:
    """`plugin:skill` is also known by its last word, as people call it."""
    named = [skill.lstrip("/") for skill in (*spec.auto_resolve_skill, *spec.satisfied_by_skill)]
    return frozenset(named) | {skill.rpartition(":")[2] for skill in named}


def _trigger_way(trigger: "str | Trigger", spec: "Requirement", protected: Sequence[str]) -> Way:
    tool, pattern, paths = trigger, spec.command_pattern, spec.paths
    if not isinstance(tool, str):
        pattern, paths, tool = tool.command_pattern or pattern, tool.paths or paths, tool.tool
    action = _tool_action(tool)
    # An unknown tool may run commands too.
    if pattern and action in ("shell", ""):
        return Way(_names_command_tool(tool), _command_test(re.compile(pattern)))
    if paths or spec.except_paths:
        return Way(_names_tool(tool), _path_test(paths, spec.except_paths))
    if action != "edit":
        return Way(_names_tool(tool))
    return Way(_names_tool(tool), _branch_test(protected) if protected else _edits_something)


_UNSEEN_EDITS = lazy_pattern(
    r"git (?:apply|am|stash (?:pop|apply))\b(?!.* --(?:check|stat|numstat|summary|cached|abort|show))"
)
"""They change files of the worktree that the command does not name."""


_SWITCHES = lazy_pattern(
    # Flags, then a flag that makes a branch, then one name and nothing else.
    r"^git (?:checkout|switch)(?: -[qftm]+| --(?:quiet|force|track|merge))*(?: (-[bBcC]|--create|--orphan))? ([^-\s][^\s]*)$"
)


def switched_branch(event: Event) -> str:
    """The branch that a shell command switches to last; empty without one."""
    data = event.data
    if not isinstance(data, ToolPayload) or not ("checkout" in data.command or "switch" in data.command):
        return ""
    switches = [match[2] for one in acts_of(event).readings if (match := _SWITCHES.match(one))]
    return switches[-1] if switches and not _names_file(event, switches[-1]) else ""


def _branch_test(protected: Sequence[str]) -> Test:
    """After `git checkout -b topic && …` edits belong to the new branch."""

    def test(event: Event) -> bool:
        branch = switched_branch(event)
        leaves = bool(branch) and not any(fnmatchcase(branch, glob) for glob in protected)
        return not leaves and _edits_worktree(event)

    return test


def _names_file(event: Event, name: str) -> bool:
    """`git checkout src/app.py` switches nothing: what it names is written."""
    # Branch names rarely have a suffix; file names do.
    return any(path.endswith(f"/{name}") for path in written_paths(event)) or "." in name.rpartition("/")[2]


def _edits_worktree(event: Event) -> bool:
    """Only files of the worktree count for a branch."""
    if any(_UNSEEN_EDITS.match(reading) for reading in acts_of(event).readings):
        return True
    if isinstance(event.data, ToolPayload) and event.data.lands_on:
        return True
    paths = changed_paths(event)
    root = (event.data.worktree if isinstance(event.data, HookPayload) else "") or event.project
    return any(path.startswith(f"{root}/") for path in paths) if paths else action_of(event) == "edit"


def _edits_something(event: Event) -> bool:
    return action_of(event) == "edit" or bool(changed_paths(event))


def _tool_action(tool: str) -> str:
    return tool if tool in actions() else action_of_tool().get(tool, "")


def _names_tool(tool: str) -> Test:
    action = _tool_action(tool)
    if action == "edit":
        # A rule for `Edit` holds for that tool and for tools that Claude Code does not have;
        # a rule for the action `edit` holds for everything that may write.
        return lambda event: (
            event.tool == tool
            or (action_of(event) in ACTING and (tool in actions() or event.tool not in action_of_tool()))
        )
    if tool in actions():
        return lambda event: action_of(event) == action
    if not action:
        return lambda event: event.tool == tool
    # Claude Code names its tools exactly; for other agents it counts what the tool does.
    return lambda event: event.tool == tool or (event.agent != CLAUDE and action_of(event) == action)


def _names_command_tool(tool: str) -> Test:
    """Also tools of MCP servers: those that run commands, and those named after one (`git_commit`)."""
    named = _names_tool(tool)
    return lambda event: named(event) or action_of(event) in ("mcp", "other")


def acts_of(event: Event) -> CommandActs:
    """What a tool call may start: a shell command, or the command of an MCP tool."""
    data = event.data
    if not isinstance(data, ToolPayload) or data.action not in ("shell", "mcp", "other"):
        return NO_ACTS
    command = command_of(event)
    acts = read_acts(command, data.cwd or event.project or ".", data.meanings) if command else NO_ACTS
    if data.action == "shell":
        return acts
    return msgspec.structs.replace(acts, readings=(*named_acts(event), *acts.readings))


NO_ACTS = CommandActs()
# A pattern with shell syntax is matched against the typed line.
_SHELL_SYNTAX = lazy_pattern(r"\\\||\\>|>|<|&&|;|\\\$\\\(|\$\(|`|\[\|\]")
# Programs whose arguments are text to search for or show.
_LISTENERS = frozenset(
    "grep rg ag ack egrep fgrep cat less more man help head tail ls which type whatis apropos holdfast sed awk find jq wc diff".split()
)


def _unquoted(command: str) -> str:
    """A line that could not be parsed, without quotes and with the words of `{git,commit}` apart."""
    return re.sub(r"[{},]", " ", re.sub(r"['\"\\\\]", "", command))


def matches_command(pattern: re.Pattern[str], acts: CommandActs, command: str) -> bool:
    # A line that cannot be parsed is searched as text.
    if acts.problem or _SHELL_SYNTAX.search(pattern.pattern):
        return any(
            pattern.search(" ".join(text.split())) for text in (command, _unquoted(command) if acts.problem else "")
        )
    return any(_matches_reading(pattern, reading) for reading in acts.readings)


_ONLY_LOOKS = lazy_pattern(r"git (?:commit-graph|merge-base|merge-tree)(?: |$)")
"""Verbs that begin like one that acts."""


def _matches_reading(pattern: re.Pattern[str], reading: str) -> bool:
    """From the program's name on. Later words of the line are a command only if it is one word or an option:
    `grep make deploy` starts no `make`."""
    name = reading.partition(" ")[0]
    if name == "git" and _ONLY_LOOKS.match(reading):
        return False
    for match in pattern.finditer(reading):
        # At the name itself, or right behind it.
        if match.start() <= len(name):
            return True
        if (" " not in match[0].strip() or match[0].lstrip().startswith("-")) and name not in _LISTENERS:
            return True
    return False


def _command_test(pattern: re.Pattern[str]) -> Test:
    def test(event: Event) -> bool:
        data = event.data
        return isinstance(data, ToolPayload) and matches_command(pattern, acts_of(event), command_of(event))

    return test


def _made_folders(event: Event) -> tuple[str, ...]:
    """Folders that the call only creates; git does not see them."""
    readings = acts_of(event).readings if action_of(event) == "shell" else ()
    # From the readings, because `written` names folders and files alike.
    made = (word for one in readings if one.startswith("mkdir ") for word in one.split(" ")[1:] if word[:1] != "-")
    return tuple(f"/{name.strip('./')}" for name in made)


def changed_paths(event: Event) -> list[str]:
    """The files that a call writes; folders that it only makes are none."""
    paths = written_paths(event)
    made = _made_folders(event) if paths else ()
    return [path for path in paths if not path.endswith(made)] if made else paths


def written_paths(event: Event) -> list[str]:
    """The files that a call writes: as it names them and where they really are; of commands and MCP tools only those
    inside of the project, because others are nobody's edit here."""
    data = event.data
    if not isinstance(data, ToolPayload):
        return []
    if data.action == "edit":
        return list(dict.fromkeys((*data.written, *data.paths)))
    # `settings_at` shows that the event was looked at: then an empty list means that nothing is written.
    looked = data.written or data.settings_at or data.action != "shell"
    paths = data.written if looked else _unresolved_writes(event)
    return [path for path in paths if path.startswith((f"{event.project}/", f"{data.worktree or event.project}/"))]


def _unresolved_writes(event: Event) -> list[str]:
    """For events recorded before links were resolved."""
    return [path for path in acts_of(event).writes if path.startswith("/")]


def _path_test(paths: tuple[str, ...], never: tuple[str, ...]) -> Test:
    def test(event: Event) -> bool:
        return any(
            (not paths or _covers_path(paths, path, event.project)) and not any_matches(never, path, event.project)
            for path in written_paths(event)
        )

    return test


def _covers_path(globs: tuple[str, ...], path: str, project: str) -> bool:
    """A folder as a whole (`infra/**`) is covered where a file in it would be."""
    if path.endswith("/**"):
        # `x` is any file in that folder.
        return any_matches(globs, f"{path[:-2]}x", project) or any(
            glob.startswith(f"{path[len(project) + 1 : -2]}") for glob in globs
        )
    return any_matches(globs, path, project)


Candidate = tuple[Rule, tuple[Test | None, ...]]


class Index:
    """The rules that each tool can trigger, computed once per tool."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._known: dict[tuple[str, str, bool], tuple[Candidate, ...]] = {}
        self.last: tuple[object, list[Rule]] = (None, [])
        """The last payload that was asked about, and the answer (`requirements.triggered_rules`)."""
        self.names_commits = any(rule.is_about("git commit") for rule in rules)

    def triggered_by(self, event: Event) -> list[Rule]:
        rules = []
        for rule, tests in self.of(event):
            for more in tests:
                # One way is enough.
                if more is None or more(event):
                    rules.append(rule)
                    break
        return rules

    def of(self, event: Event) -> tuple[Candidate, ...]:
        # Tool names are matched differently only for Claude Code.
        key = (event.tool, action_of(event), event.agent == CLAUDE)
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
