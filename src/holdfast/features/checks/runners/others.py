"""Test runners whose summary is one line with its counts: of Elixir, Swift, Dart, Scala and others."""

import re

import msgspec

from holdfast.features.checks.runners.spec import Reader, Report, Runner, flag_set

_COUNTS = ("total", "passed", "failed", "errors", "skipped")


def make_reader(pattern: str) -> Reader:
    """For a line with counts: its groups are named `total`, `passed`, `failed`, `errors`, `skipped`, as far as it has them."""
    compiled = re.compile(pattern, re.MULTILINE)

    def read(text: str) -> list[Report]:
        return [_read_counts(match) for match in compiled.finditer(text)]

    return read


def _read_counts(match: re.Match[str]) -> Report:
    found = {name: int(value) for name, value in match.groupdict().items() if name in _COUNTS and value}
    failed, skipped = found.get("failed", 0) + found.get("errors", 0), found.get("skipped", 0)
    passed = found.get("passed", max(0, found.get("total", 0) - failed - skipped))
    nothing = "" if passed or failed else "no test was run"
    return Report(passed=passed, failed=failed, skipped=skipped, nothing=nothing, position=match.start())


def _runner(
    name: str, programs: str, summary: str, *, nothing: str = "", selects: str = "", stream: str = "stdout"
) -> Runner:
    """`programs` are parted by commas. Exit status 0 alone tells nothing: the summary has to be seen."""
    return Runner(
        name=name,
        programs=tuple(program.strip() for program in programs.split(",")),
        runs_nothing=flag_set(f"--help -h --version {nothing}"),
        selects=flag_set(selects),
        empty_succeeds=True,
        read=make_reader(summary),
        stream=stream,
    )  # fmt: skip


TESTS = (
    # Umbrella projects print one line for each application.
    msgspec.structs.replace(
        _runner("mix", "mix test", r"^(?:\d+ doctests?, )?(?:\d+ properties, )?(?P<total>\d+) tests?, (?P<failed>\d+) failures?(?:, \d+ excluded)?(?:, (?P<skipped>\d+) skipped)?",
                selects="--only --exclude --failed --stale"), sums=True),
    # The outermost suite comes last; swift-testing prints a line of its own.
    _runner("swift", "swift test", r"^\s*Executed (?P<total>\d+) tests?, with (?:(?P<skipped>\d+) tests? skipped and )?(?P<failed>\d+) failures?|Test run with (?P<passed>\d+) tests? passed",
            nothing="--list-tests -l", selects="--filter --skip"),
    # `00:01 +3 -1: Some tests failed.`
    _runner("dart", "dart test, flutter test", r"^\S+ \+(?P<passed>\d+)(?: ~(?P<skipped>\d+))?(?: -(?P<failed>\d+))?: (?:All tests passed!|Some tests failed\.)",
            selects="-n --name -N --plain-name -t --tags"),
    _runner("sbt", "sbt", r"^\[(?:info|error)\] (?:Passed|Failed): Total (?P<total>\d+), Failed (?P<failed>\d+), Errors (?P<errors>\d+), Passed (?P<passed>\d+)"),
    _runner("zig", "zig build test, zig test", r"\b(?P<passed>\d+)/\d+ tests passed(?:; (?P<failed>\d+) failed)?|^All (?P<total>\d+) tests passed\.", stream="stderr"),
    _runner("clojure.test", "lein test, clojure, clj", r"^Ran (?P<total>\d+) tests containing \d+ assertions\.\n(?P<failed>\d+) failures, (?P<errors>\d+) errors\."),
    _runner("hspec", "stack test, cabal test", r"^(?P<total>\d+) examples?, (?P<failed>\d+) failures?", stream="stderr"),
    _runner("forge", "forge test", r"^Ran \d+ test suites? in .*: (?P<passed>\d+) tests passed, (?P<failed>\d+) failed, (?P<skipped>\d+) skipped",
            nothing="--list -l", selects="--match-test --mt --match-contract --mc --match-path --mp"),
    _runner("karma", "ng test, karma start", r"^TOTAL: (?:(?P<failed>\d+) FAILED, )?(?P<passed>\d+) SUCCESS$"),
    _runner("behave", "behave", r"^(?P<passed>\d+) scenarios? passed, (?P<failed>\d+) failed, (?P<skipped>\d+) skipped", nothing="--dry-run -d --steps-catalog",
            selects="-t --tags -n --name -i --include"),
    _runner("robot", "robot, pabot", r"^(?P<total>\d+) tests?, (?P<passed>\d+) passed, (?P<failed>\d+) failed", nothing="--dryrun", selects="-t --test -s --suite -i --include"),
    _runner("busted", "busted", r"^(?P<passed>\d+) success(?:es)? / (?P<failed>\d+) failures? / (?P<errors>\d+) errors?", nothing="-l --list"),
    _runner("crystal", "crystal spec", r"^(?P<total>\d+) examples, (?P<failed>\d+) failures, (?P<errors>\d+) errors, (?P<skipped>\d+) pending"),
    _runner("ginkgo", "ginkgo", r"^(?:SUCCESS|FAIL)! -- (?P<passed>\d+) Passed \| (?P<failed>\d+) Failed \| \d+ Pending \| (?P<skipped>\d+) Skipped",
            nothing="--dry-run -dryRun outline version help", selects="--focus --skip --label-filter"),
    _runner("trial", "trial", r"^(?:PASSED|FAILED) \((?=[^)]*=)(?:skips=(?P<skipped>\d+), )?(?:failures=(?P<failed>\d+)(?:, )?)?(?:errors=(?P<errors>\d+)(?:, )?)?(?:successes=(?P<passed>\d+))?\)"),
    _runner("bazel", "bazel test, bazelisk test", r"^Executed \d+ out of (?P<total>\d+) tests?: (?:(?P<passed>\d+) tests? pass(?:es)?)?(?:(?:, | and )?(?P<failed>\d+) fails? locally)?",
            selects="--test_filter --test_tag_filters"),
)  # fmt: skip
