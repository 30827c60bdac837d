"""What has to be known of a check tool, and what its output reports."""

import re
from collections.abc import Callable, Iterable

import msgspec

from holdfast.core.checks import CheckKind, Verdict


class Report(msgspec.Struct, kw_only=True):
    """The counts that a runner's own summary gives."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    runner: str = ""
    position: int = 0
    nothing: str = ""
    """Why no test was run, where the summary says so."""
    broken: bool = False
    """The tests could not be loaded or built."""
    stream: str = "stdout"
    partial: bool = False
    """Signs of failure without a summary."""

    @property
    def verdict(self) -> Verdict:
        if self.failed:
            return Verdict.FAILED
        # Skipped tests alone prove nothing.
        if self.nothing or not self.passed:
            return Verdict.DID_NOT_RUN
        return Verdict.PASSED


Reader = Callable[[str], list[Report]]


class Runner(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: CheckKind = CheckKind.TEST
    programs: tuple[str, ...] = ()
    """Names of the program, with the words that must follow: `go test`."""
    modules: tuple[str, ...] = ()
    """Names for `python -m`."""
    runs_nothing: frozenset[str] = frozenset()
    """Flags with which nothing is checked."""
    nothing_operands: frozenset[str] = frozenset()
    """First operands with which nothing is checked."""
    takes_value: frozenset[str] = frozenset()
    hollow: frozenset[str] = frozenset()
    """Flags with which neither exit status 0 nor the summary shows that tests ran: another program runs them."""
    hollow_with: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    """Flags of which one of each kind together does the same: `go test -bench . -run xxx`."""
    selects: frozenset[str] = frozenset()
    """Flags that choose a part."""
    # Folders by the names that most projects use, or everything below the current one.
    whole_operands: re.Pattern[str] = re.compile(r"^(?:\.|\./|\./\.\.\.|tests?/?|spec/?|src/?)$")
    """Operands that mean everything."""
    codes: dict[int, Verdict]
    empty_succeeds: bool = False
    """Exit status 0 is possible although no test was run."""
    lenient: frozenset[str] = frozenset()
    """Flags with which exit status 0 proves nothing by itself."""
    bends: frozenset[str] = frozenset()
    """Flags that load plugins, other settings or other code."""
    failures: re.Pattern[str] | None = None
    """Lines that name a failed test."""
    options_variable: str = ""
    """The environment variable that adds flags."""
    read: Reader
    stream: str = "stdout"
    """Where it prints its summary."""
    sums: bool = False
    """One run prints several summaries that belong together; all of them must show."""
    quiet: frozenset[str] = frozenset()
    """Flags with which no summary is printed."""
    requires: frozenset[str] = frozenset()
    """It is this check only with one of these flags."""
    requires_pattern: re.Pattern[str] | None = None
    """Or with an operand like this, and unlike `not_required`."""
    not_required: re.Pattern[str] | None = None


def first_reason(*reasons: tuple[object, str]) -> str:
    """The first of the reasons that holds; empty where none does."""
    return next((why for holds, why in reasons if holds), "")


def flag_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def group_number(match: re.Match[str] | None, group: int | str = 1) -> int:
    return int(match[group]) if match and match[group] else 0


def sum_counts(text: str, names: Iterable[str]) -> int:
    """The sum of the numbers before any of the names: `2 failed, 1 error`."""
    return sum(int(match[1]) for name in names for match in re.finditer(rf"(\d+) {name}\b", text))
