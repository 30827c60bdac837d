"""Which commands of a session worked and which still fail; a check counts by its verdict, not its exit status."""

import itertools
import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

# Commands that only look, or move git's state: their failure is no open work.
_DULL = re.compile(
    r"^\s*(?:cd|ls|cat|grep|rg|find|echo|pwd|which|head|tail|sed|awk|less|git (?:status|diff|log|show|branch|"
    r"checkout|add|stash|restore|reset|rev-parse))\b"
)
_REVERT = re.compile(r"^\s*git (?:checkout|restore|reset|stash|revert)\b(?P<rest>.*)$")
# Names of failed tests, as pytest and others print them.
_NAMES = re.compile(r"\b(?:FAILED|FAIL|ERROR)\s+(\S+)")
# Results in numbers: "3 failed", "p95 120 ms", "4.2 s".
_COUNTS = re.compile(
    r"\b\d+ (?:failed|passed|skipped|errors?|violations?|warnings?)\b|\bp\d\d \d+ ?ms|\b\d+(?:\.\d+)? ?(?:ms|s)\b",
    re.IGNORECASE,
)
LONGEST_OUTPUT = 160


class RunEvent(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def command(self) -> str: ...
    @property
    def exit(self) -> int | None: ...
    @property
    def output(self) -> str: ...
    @property
    def of(self) -> int: ...


class CommandRun(msgspec.Struct, frozen=True):
    at: int
    command: str
    ok: bool
    output: str
    judged: bool = False
    """Judged by the feature `checks`."""

    @property
    def only_skipped(self) -> bool:
        # A run that skipped everything proves nothing.
        return "skipped" in self.output and "passed" not in self.output

    def result(self) -> str:
        """The command with the telling part of its output."""
        names = ", ".join(dict.fromkeys(_NAMES.findall(self.output)))
        counts = ", ".join(dict.fromkeys(_COUNTS.findall(self.output)))
        outcome = ", ".join(part for part in (counts, names) if part) or " ".join(self.output.split())[:LONGEST_OUTPUT]
        return f"`{self.command}`: {outcome}" if outcome else f"`{self.command}`"


def command_runs(events: Sequence[RunEvent]) -> list[CommandRun]:
    """In order; a command with unknown exit is left out. Several checks of one call are one run."""
    runs: dict[tuple[str, int], CommandRun] = {}
    for number, event in enumerate(events):
        if event.kind not in ("command", "check") or not event.command or event.exit is None:
            continue
        key = ("check", event.of) if event.of and event.kind == "check" else ("", number)
        # Removed and added again, so that the order follows the last event.
        before = runs.pop(key, None)
        # One failed check of a call fails the call.
        ok = event.exit == 0 and (before is None or before.ok)
        output = f"{before.output}\n{event.output}" if before and not before.ok else event.output
        runs[key] = CommandRun(number, event.command, ok, output, event.kind == "check")
    return list(runs.values())


def failing_runs(runs: Sequence[CommandRun]) -> list[CommandRun]:
    """The last run of each failed command that no later run of the same kind repaired."""
    last = {run.command: run for run in runs}
    return [
        run
        for run in last.values()
        if not run.ok and not _DULL.match(run.command) and not any(_makes_good(later, run) for later in runs)
    ]


def _makes_good(later: CommandRun, failed: CommandRun) -> bool:
    if later.at < failed.at or not later.ok or later.only_skipped:
        return False
    # The same command with more or fewer words, or another test run that names every path of the failed one.
    one, other = set(_command_words(later.command)), set(_command_words(failed.command))
    return (
        one >= other
        or other >= one
        or (_is_test(later.command) and _is_test(failed.command) and not (other - one) & _target_paths(failed.command))
    )


def _is_test(command: str) -> bool:
    return bool(re.search(r"\b(?:test|pytest|e2e|jest|vitest|playwright|cypress|spec)\b", command))


def _command_words(command: str) -> list[str]:
    # Variables set before a command do not make another command.
    return [word for word in command.split() if "=" not in word or word.startswith("-")]


def _target_paths(command: str) -> set[str]:
    return {word for word in command.split() if "/" in word or "." in word}


def working_runs(runs: Sequence[CommandRun]) -> list[CommandRun]:
    """Commands whose last run worked, worth repeating."""
    last: dict[str, CommandRun] = {}
    for run in runs:
        last.pop(run.command, None)
        last[run.command] = run
    return [run for run in last.values() if run.ok and not run.only_skipped and not _DULL.match(run.command)]


def is_same_act(one: str, other: str) -> bool:
    first, second = _named_act(one), _named_act(other)
    shorter = min(len(first), len(second))
    return shorter > 0 and first[:shorter] == second[:shorter]


def _named_act(command: str) -> list[str]:
    """What a command does, without its options: `git commit`, `npm run deploy`."""
    return list(itertools.takewhile(lambda word: not word.startswith("-"), _command_words(command)))[:3]


def reverted_paths(runs: Sequence[CommandRun]) -> list[str]:
    paths: list[str] = []
    for run in runs:
        if run.ok and (match := _REVERT.match(run.command)):
            paths += [part for part in match["rest"].split() if not part.startswith("-")]
    return paths
