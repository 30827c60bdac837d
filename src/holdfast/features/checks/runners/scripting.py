"""Test runners of Ruby, PHP, Perl and the shell, and of Elixir, Swift, Dart, Scala and others whose summary is one line."""

import re

import msgspec

from holdfast.core.checks import Verdict
from holdfast.features.checks.runners.spec import Reader, Report, Runner, flag_set, group_number

_RSPEC = re.compile(
    r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside of examples)?\s*$",
    re.MULTILINE,
)
# minitest says `runs`, test-unit `tests` and `pendings`.
_MINITEST = re.compile(
    r"^(\d+) (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors,(?: (\d+) (?:skips|pendings))?", re.MULTILINE
)
_PHPUNIT_OK = re.compile(r"^OK \((\d+) tests?, \d+ assertions?\)", re.MULTILINE)
_PHPUNIT = re.compile(r"^Tests: (\d+), Assertions: \d+(.*)$", re.MULTILINE)
_PEST = re.compile(r"^\s*Tests: {4}((?:\d+ \w+(?:, )?)+) \(\d+ assertions?\)", re.MULTILINE)
_PROVE = re.compile(r"^Files=\d+, Tests=(\d+),[^\n]*\nResult: (PASS|FAIL|NOTESTS)", re.MULTILINE)
_BATS = re.compile(r"^(\d+) tests?, (\d+) failures?(?:, (\d+) skipped)?", re.MULTILINE)
# TAP: `1..N` is the plan, then `ok n` or `not ok n`.
_TAP_PLAN = re.compile(r"^1\.\.(\d+)\s*$", re.MULTILINE)
_TAP_OK = re.compile(r"^ok \d+(?! .*# [sS][kK][iI][pP])", re.MULTILINE)
# A failure that is marked as TODO is expected.
_TAP_BAD = re.compile(r"^not ok \d+(?! .*# TODO)", re.MULTILINE)


def read_rspec(text: str) -> list[Report]:
    reports = []
    for match in _RSPEC.finditer(text):
        total, failed, pending, outside = int(match[1]), int(match[2]), group_number(match, 3), group_number(match, 4)
        nothing = "no example was run" if total - pending == 0 and not failed else ""
        reports.append(
            Report(
                passed=total - failed - pending,
                # Without any example, errors outside of them mean that nothing could be loaded.
                failed=failed + (outside if total else 0),
                skipped=pending,
                nothing=nothing,
                position=match.start(),
            )
        )
    return reports


def read_minitest(text: str) -> list[Report]:
    return [
        Report(
            passed=max(0, int(m[1]) - int(m[2]) - int(m[3]) - group_number(m, 4)),
            failed=int(m[2]) + int(m[3]),
            skipped=group_number(m, 4),
            position=m.start(),
        )
        for m in _MINITEST.finditer(text)
    ]


def read_phpunit(text: str) -> list[Report]:
    reports = [Report(passed=int(m[1]), position=m.start()) for m in _PHPUNIT_OK.finditer(text)]
    for match in _PHPUNIT.finditer(text):
        bad = sum(int(n) for n in re.findall(r"(?:Failures|Errors): (\d+)", match[2]))
        skipped = sum(int(n) for n in re.findall(r"(?:Skipped|Incomplete): (\d+)", match[2]))
        reports.append(
            Report(passed=max(0, int(match[1]) - bad - skipped), failed=bad, skipped=skipped, position=match.start())
        )
    for match in _PEST.finditer(text):
        failed, passed = (group_number(re.search(rf"(\d+) {name}", match[1])) for name in ("failed", "passed"))
        reports.append(Report(passed=passed, failed=failed, position=match.start()))
    if not reports and "No tests executed!" in text:
        return [Report(nothing="no tests executed")]
    return reports


def read_prove(text: str) -> list[Report]:
    return [
        Report(passed=int(m[1]) if m[2] == "PASS" else 0, failed=1 if m[2] == "FAIL" else 0, position=m.start())
        for m in _PROVE.finditer(text)
    ]


def read_bats(text: str) -> list[Report]:
    if match := _BATS.search(text):
        total, failed, skipped = int(match[1]), int(match[2]), group_number(match, 3)
        return [Report(passed=total - failed - skipped, failed=failed, skipped=skipped, position=match.start())]
    plan = _TAP_PLAN.search(text)
    bad, good = len(_TAP_BAD.findall(text)), len(_TAP_OK.findall(text))
    if plan and int(plan[1]) == 0:
        return [Report(nothing="no test was run", position=plan.start())]
    if bad:
        # Without a plan it is not known whether the output is whole.
        return [Report(passed=good, failed=bad, position=plan.start() if plan else 0, partial=plan is None)]
    skipped = int(plan[1]) - good if plan else 0
    # A summary counts only where all tests of the plan are listed.
    listed = len(re.findall(r"^ok \d+", text, re.MULTILINE))
    return [Report(passed=good, skipped=skipped, position=plan.start())] if plan and listed == int(plan[1]) else []


RSPEC = Runner(
    name="rspec",
    programs=("rspec", "rake spec"),
    runs_nothing=flag_set("--version -v --help -h --dry-run --init"),
    takes_value=flag_set("-e --example -t --tag -f --format -o --out -r --require -I --order --seed -P --pattern"),
    selects=flag_set("-e --example -t --tag -P --pattern --only-failures --next-failure"),
    empty_succeeds=True,
    read=read_rspec,
)
MINITEST = Runner(
    name="minitest",
    programs=("rake test",),
    # For rake `-n` is a dry run, for rails the name of a test.
    runs_nothing=flag_set("--help -h --version -n --dry-run -T --tasks -P"),
    whole_operands=re.compile(r"^(?:test|test:all|spec)$"),
    empty_succeeds=True,
    read=read_minitest,
)
RAILS = msgspec.structs.replace(
    MINITEST, programs=("rails test",), runs_nothing=flag_set("--help -h --version"), takes_value=flag_set("-n --name -s --seed"),
    selects=flag_set("-n --name"),
)  # fmt: skip
PHPUNIT = Runner(
    name="phpunit",
    programs=("phpunit", "pest", "artisan test"),
    runs_nothing=flag_set(
        "--version --help -h --list-tests --list-suites --list-groups --list-tests-xml --check-version"
    ),
    takes_value=flag_set("--filter -c --configuration --testsuite --group --exclude-group --bootstrap --log-junit"),
    selects=flag_set("--filter --testsuite --group --exclude-group"),
    # PHPUnit ends with 2 for errors in tests and for its own exceptions alike.
    codes={0: Verdict.PASSED, 1: Verdict.FAILED, 2: Verdict.UNKNOWN},
    empty_succeeds=True,
    read=read_phpunit,
)
BATS = Runner(
    name="bats",
    programs=("bats",),
    runs_nothing=flag_set("--version -v --help -h --count -c"),
    takes_value=flag_set("-f --filter -j --jobs -o --output -F --formatter --filter-tags"),
    selects=flag_set("-f --filter --filter-tags --filter-status"),
    read=read_bats,
)
PROVE = Runner(
    name="prove", programs=("prove",), runs_nothing=flag_set("--dry -D --version --help -h"), read=read_prove
)
TESTS = (RSPEC, MINITEST, RAILS, PHPUNIT, BATS, PROVE)


# Test runners whose summary is one line with its counts: of Elixir, Swift, Dart, Scala and others.

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


ONE_LINE_TESTS = (
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
