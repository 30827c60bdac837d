"""Test runners of Go, Rust, the JVM, .NET and C++."""

import re

import msgspec

from holdfast.core.checks import Verdict
from holdfast.features.checks.runners.spec import Report, Runner, flag_set, group_number

# `ok  pkg  0.3s` or `(cached)`, with a remark behind it such as `[no tests to run]`.
_GO_OK = re.compile(r"^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(.*)$", re.MULTILINE)
_GO_PASS = re.compile(r"^\s*--- PASS: ", re.MULTILINE)
_GO_FAIL = re.compile(r"^(?:FAIL(?:\t\S+.*)?|--- FAIL: .*)[ \t]*$", re.MULTILINE)
_GO_FAILED_TEST = re.compile(r"^\s*--- FAIL: ", re.MULTILINE)
_GO_BROKEN = re.compile(r"^FAIL\s+\S+ \[(?:build|setup) failed\]", re.MULTILINE)
# `go test -json`: events of single tests, not of packages.
_GO_JSON = re.compile(r'"Action":"(pass|fail)","Package":"[^"]*","Test":')
_CARGO = re.compile(r"^test result: (ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;", re.MULTILINE)
_CARGO_ERROR = re.compile(r"^error: (?:test failed, to rerun|\d+ targets? failed)", re.MULTILINE)
_NEXTEST = re.compile(r"^\s*Summary \[ *[\d.]+s\] +(\d+)(?:/\d+)? tests? run: (\d+) passed([^\n]*)$", re.MULTILINE)
# The totals at the end have no time behind them; the lines of single classes do.
_MAVEN = re.compile(
    r"^\[?(?:INFO|ERROR|WARNING)?\]? ?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)\s*$",
    re.MULTILINE,
)
_GRADLE_COUNT = re.compile(r"^(\d+) tests? completed(?:, (\d+) failed)?(?:, (\d+) skipped)?", re.MULTILINE)
_GRADLE_TASK = re.compile(
    r"^> Task :\S*[tT]est(?P<state> (?:UP-TO-DATE|NO-SOURCE|FROM-CACHE|SKIPPED|FAILED))?\s*$", re.MULTILINE
)
_GRADLE_OK = re.compile(r"^BUILD SUCCESSFUL in ", re.MULTILINE)
# The words are translated by .NET: only their order is fixed (failed, passed, skipped, total).
_DOTNET = re.compile(
    r"^\s*[^\W\d]+! +[-–:] *[^\W\d]+: *(\d+), *[^\W\d]+: *(\d+), *[^\W\d]+: *(\d+), *[^\W\d]+: *(\d+)", re.MULTILINE
)
_MESON = re.compile(r"^(Ok|Fail|Timeout|Skipped|Unexpected Pass):[ \t]+(\d+)[ \t]*$", re.MULTILINE)
_GOTESTSUM = re.compile(
    r"^DONE (?:\d+ runs?, )?(\d+) tests?(?:, (\d+) skipped)?(?:, (\d+) failures?)?(?:, (\d+) errors?)? in ",
    re.MULTILINE,
)
_CTEST = re.compile(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)", re.MULTILINE)


def read_go(text: str) -> list[Report]:
    ok = [match for match in _GO_OK.finditer(text) if "no tests to run" not in match[1]]
    failure = _GO_FAIL.search(text)
    # Here the plain lines stand inside of JSON, so only the events count.
    if '"Action":' in text and (actions := _GO_JSON.findall(text)):
        return [Report(passed=actions.count("pass"), failed=actions.count("fail"))]
    if failure:
        failed = len(_GO_FAILED_TEST.findall(text))
        broken = len(_GO_BROKEN.findall(text))
        # No test ran in any package.
        if broken and not failed and not ok:
            return [Report(nothing="the packages do not build", broken=True, position=failure.start())]
        # Without `-v` single tests are not listed; then packages are counted.
        return [Report(passed=len(_GO_PASS.findall(text)) or len(ok), failed=max(1, failed), position=failure.start())]
    # One for each package, so that several runs can be told apart; those of one run are summed up.
    if ok:
        begins = [0, *(match.end() for match in ok[:-1])]
        return [
            Report(passed=len(_GO_PASS.findall(text, begin, match.end())) or 1, position=match.start())
            for begin, match in zip(begins, ok, strict=True)
        ]
    if _GO_OK.search(text) or "[no test files]" in text:
        return [Report(nothing="no tests to run")]
    return []


def read_cargo(text: str) -> list[Report]:
    reports = [
        Report(
            passed=int(m[2]),
            # `FAILED` counts as one failure even where the number says 0.
            failed=max(int(m[3]), m[1] == "FAILED"),
            skipped=int(m[4]),
            nothing="0 passed" if m[1] == "ok" and m[2] == "0" else "",
            position=m.start(),
        )
        for m in _CARGO.finditer(text)
    ]
    # One of several binaries failed, and its own summary was cut off.
    if (error := _CARGO_ERROR.search(text)) and not any(report.failed for report in reports):
        reports.append(Report(failed=1, position=error.start(), partial=True))
    return reports


def read_nextest(text: str) -> list[Report]:
    reports = []
    for match in _NEXTEST.finditer(text):
        bad = sum(int(n) for n in re.findall(r"(\d+) (?:failed|timed out|exec failed)", match[3]))
        reports.append(
            Report(
                passed=int(match[2]),
                failed=bad,
                skipped=group_number(re.search(r"(\d+) skipped", match[3])),
                position=match.start(),
            )
        )
    return reports


def read_maven(text: str) -> list[Report]:
    reports = []
    for match in _MAVEN.finditer(text):
        ran, failed, errors, skipped = (int(match[n]) for n in range(1, 5))
        bad = failed + errors
        reports.append(
            Report(
                passed=ran - bad - skipped,
                failed=bad,
                skipped=skipped,
                nothing="" if ran else "no test was run",
                position=match.start(),
            )
        )
    return reports


def read_gradle(text: str) -> list[Report]:
    if match := _GRADLE_COUNT.search(text):
        total, failed, skipped = int(match[1]), group_number(match, 2), group_number(match, 3)
        return [Report(passed=total - failed - skipped, failed=failed, skipped=skipped, position=match.start())]
    tasks = list(_GRADLE_TASK.finditer(text))
    if not tasks:
        return []
    if any(task["state"] == " FAILED" for task in tasks):
        return [Report(failed=1, position=tasks[0].start())]
    # A task without a state was run; the others were taken from an earlier build.
    ran = [task for task in tasks if not task["state"]]
    if ran and _GRADLE_OK.search(text):
        return [Report(passed=len(ran), position=ran[-1].start())]
    return [Report(nothing="the tests were up to date or skipped", position=tasks[0].start())]


def read_dotnet(text: str) -> list[Report]:
    return [
        Report(
            passed=int(m[2]),
            failed=int(m[1]),
            skipped=int(m[3]),
            nothing="" if int(m[4]) else "no test was run",
            position=m.start(),
        )
        for m in _DOTNET.finditer(text)
    ]


def read_ctest(text: str) -> list[Report]:
    if "No tests were found!!!" in text:
        return [Report(nothing="no tests were found")]
    return [Report(passed=int(m[2]) - int(m[1]), failed=int(m[1]), position=m.start()) for m in _CTEST.finditer(text)]


def read_meson(text: str) -> list[Report]:
    """`Ok: 2`, `Fail: 0`, … one to a line; the counts of zero may be left out."""
    found = {name: int(number) for name, number in _MESON.findall(text)}
    # Every summary of meson has this line.
    if "Ok" not in found:
        return []
    bad = sum(found.get(name, 0) for name in ("Fail", "Timeout", "Unexpected Pass"))
    position = max(match.start() for match in _MESON.finditer(text))
    return [Report(passed=found["Ok"], failed=bad, skipped=found.get("Skipped", 0), position=position)]


def read_gotestsum(text: str) -> list[Report]:
    found = []
    for match in _GOTESTSUM.finditer(text):
        # Errors, such as packages that do not build, count as failures.
        total, skipped, failed = int(match[1]), group_number(match, 2), group_number(match, 3) + group_number(match, 4)
        nothing = "" if total else "no tests to run"
        found.append(
            Report(
                passed=max(0, total - skipped - failed),
                failed=failed,
                skipped=skipped,
                nothing=nothing,
                position=match.start(),
            )
        )
    return found


GO = Runner(
    name="go test",
    programs=("go test",),
    runs_nothing=flag_set("-list -c -n -h -help --help -vet-only"),
    takes_value=flag_set("-run -count -timeout -coverprofile -covermode -coverpkg -tags -p -parallel -bench -cpu -ldflags -o -list -skip -exec -mod -shuffle"),
    selects=flag_set("-run -skip -short -bench"),
    hollow=flag_set("-exec -toolexec"),
    hollow_with=(flag_set("-bench -fuzz"), flag_set("-run -skip")),
    whole_operands=re.compile(r"^(?:\./\.\.\.|\.\.\.|\.|all)$"),
    codes={0: Verdict.PASSED, 1: Verdict.FAILED, 2: Verdict.DID_NOT_RUN},
    empty_succeeds=True,
    read=read_go,
    sums=True,
)  # fmt: skip
CARGO = Runner(
    name="cargo test",
    programs=("cargo test", "cargo t", "cargo llvm-cov test", "cargo llvm-cov", "cargo tarpaulin", "cargo careful test", "cargo hack test",
              "cross test", "cross t"),
    runs_nothing=flag_set("--no-run --help -h --list --version"),
    takes_value=flag_set("-p --package --test --bin --example --bench --features -F --target --manifest-path --profile -j --jobs --exclude --test-threads --skip --target-dir --color"),
    selects=flag_set("-p --package --test --bin --lib --doc --bins --example --exclude --skip --ignored --exact --bench"),
    codes={0: Verdict.PASSED, 101: Verdict.FAILED, 1: Verdict.DID_NOT_RUN},
    empty_succeeds=True,
    read=read_cargo,
    sums=True,
)  # fmt: skip
NEXTEST = Runner(
    name="nextest",
    programs=("cargo nextest run", "cargo nextest r", "cargo-nextest nextest run", "cargo llvm-cov nextest"),
    runs_nothing=flag_set("--no-run --help -h --version"),
    selects=flag_set("-p --package --test -E --filterset --lib --bin --partition"),
    takes_value=flag_set("-p --package --test -E --filterset --partition --profile -P --features --retries -j"),
    codes={0: Verdict.PASSED, 100: Verdict.FAILED, 4: Verdict.DID_NOT_RUN, 101: Verdict.DID_NOT_RUN},
    read=read_nextest,
    stream="stderr",
)
MAVEN = Runner(
    name="maven",
    programs=("mvn", "mvnw", "mvnd"),
    runs_nothing=flag_set(
        "--version -v --help -h -DskipTests -Dmaven.test.skip=true -DskipTests=true -Dmaven.test.skip"
    ),
    takes_value=flag_set("-pl --projects -P -f --file -s --settings -T -rf"),
    selects=flag_set("-pl --projects -Dtest -rf"),
    whole_operands=re.compile(r"^(?:clean|test|verify|install|package|integration-test|surefire:test|site|deploy)$"),
    requires=flag_set("test verify install package integration-test surefire:test deploy"),
    empty_succeeds=True,
    read=read_maven,
)
GRADLE = Runner(
    name="gradle",
    programs=("gradle", "gradlew"),
    runs_nothing=flag_set("--version -v --help -h --dry-run -m --test-dry-run tasks help projects"),
    takes_value=flag_set("--tests -p --project-dir -x --exclude-task -b --build-file"),
    selects=flag_set("--tests"),
    whole_operands=re.compile(r"^(?::?clean|:?cleanTest|:?test|:?check|:?build)$"),
    requires_pattern=re.compile(r"^:?(?:[\w.-]+:)*(?:test|check|build|[a-z]\w*Tests?|test[A-Z]\w*)$"),
    not_required=re.compile(r"(?:^|:)(?:compile|process|clean|assemble|lint)\w*$|Classes$|(?:^|:)testFixtures"),
    empty_succeeds=True,
    read=read_gradle,
)
DOTNET = Runner(
    name="dotnet",
    programs=("dotnet test", "dotnet vstest"),
    runs_nothing=flag_set("--list-tests -t --help -h -?"),
    takes_value=flag_set("--filter -c --configuration -f --framework --logger -l -s --settings -r --results-directory -v --verbosity"),
    selects=flag_set("--filter"),
    whole_operands=re.compile(r"^.*\.(?:sln|slnx)$|^\.$"),
    empty_succeeds=True,
    read=read_dotnet,
    sums=True,
)  # fmt: skip
CTEST = Runner(
    name="ctest",
    programs=("ctest",),
    runs_nothing=flag_set("-N --show-only --print-labels --help --version -H"),
    takes_value=flag_set(
        "-j --parallel -R -E -L -LE --test-dir -C --build-config -I --timeout --output-junit --preset"
    ),
    selects=flag_set("-R -E -L -LE -I --rerun-failed --tests-regex --label-regex --exclude-regex"),
    codes={0: Verdict.PASSED, 8: Verdict.FAILED},
    empty_succeeds=True,
    read=read_ctest,
)
BUILT_TESTS = Runner(
    name="ctest",
    programs=("cmake --build",),
    requires=flag_set("test check"),
    takes_value=flag_set("-j --parallel --build --config --preset"),
    runs_nothing=flag_set("--version --help"),
    empty_succeeds=True,
    read=read_ctest,
)
"""The target `test` of a build that CMake made: it runs ctest."""
NINJA_TESTS = msgspec.structs.replace(
    # For ninja `-t` starts a tool and `-n` is a dry run; for cmake `-t` names the target.
    BUILT_TESTS, programs=("ninja",), takes_value=flag_set("-C -j -f -l -k"), runs_nothing=flag_set("-n -t --version --help"),
)  # fmt: skip
MESON = Runner(
    name="meson",
    programs=("meson test",),
    runs_nothing=flag_set("--list --help -h"),
    takes_value=flag_set("-C --suite --no-suite -t --timeout-multiplier --num-processes -j --repeat --logbase --setup"),
    selects=flag_set("--suite --no-suite"),
    empty_succeeds=True,
    read=read_meson,
)
GOTESTSUM = Runner(
    name="gotestsum",
    programs=("gotestsum",),
    runs_nothing=flag_set("--help -h --version"),
    takes_value=flag_set("--format -f --junitfile --jsonfile --packages --rerun-fails-max-failures --post-run-command"),
    selects=flag_set("-run -short"),
    whole_operands=re.compile(r"^(?:--|\./\.\.\.)$"),
    empty_succeeds=True,
    read=read_gotestsum,
)
TESTS = (GO, NEXTEST, CARGO, MAVEN, GRADLE, DOTNET, CTEST, BUILT_TESTS, NINJA_TESTS, MESON, GOTESTSUM)
