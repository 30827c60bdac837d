"""Linters, type checkers, formatters and builds: their exit status tells, and some say it in a line as well."""

import re

from holdfast.core.checks import CheckKind, Verdict
from holdfast.features.checks.runners.spec import Reader, Report, Runner, flag_set

_HELP = "--version -V --help -h"
# Tools whose exit status is a sum of flags, or that use several numbers.
_EVERY_CODE = {0: Verdict.PASSED, **dict.fromkeys(range(1, 64), Verdict.FAILED)}
# 2 means wrong usage or a crash of the tool.
_ONE_FAILS = {0: Verdict.PASSED, 1: Verdict.FAILED, 2: Verdict.DID_NOT_RUN}


def line_reader(good: str, bad: str) -> Reader:
    """A reader for tools that end with one line of praise or blame."""
    clean, dirty = re.compile(good, re.MULTILINE), re.compile(bad, re.MULTILINE)

    def read(text: str) -> list[Report]:
        # Blame goes first: a tool that checks several things may praise one of them.
        if match := dirty.search(text):
            return [Report(failed=1, position=match.start())]
        praise = clean.search(text)
        return [Report(passed=1, position=praise.start())] if praise else []

    return read


def _lint_runner(name: str, programs: str, *, read: Reader | None = None, codes: dict[int, Verdict] | None = None, nothing: str = "",
          modules: str = "", kind: CheckKind = CheckKind.LINT, requires: str = "", values: str = "", lenient: str = "") -> Runner:  # fmt: skip
    return Runner(
        name=name,
        kind=kind,
        programs=tuple(programs.split(",")),
        modules=tuple(modules.split()),
        runs_nothing=flag_set(f"{_HELP} {nothing}"),
        codes=codes or _ONE_FAILS,
        # `(?!)` never matches: such tools say nothing that could be read.
        read=read or line_reader(r"(?!)", r"(?!)"),
        lenient=flag_set(f"--exit-zero --exit-zero-even-if-changed {lenient}"),
        requires=flag_set(requires),
        takes_value=flag_set(values),
        whole_operands=re.compile(r"^(?:\.|src|lib|tests?|app|\./\.\.\.|\*\*/.*)/?$"),
    )


_RUFF = line_reader(r"^All checks passed!", r"^Found \d+ errors?|^\d+ files? would be reformatted")
_MYPY = line_reader(r"^Success: no issues found", r"^Found \d+ errors? in ")
_PYRIGHT = line_reader(r"^0 errors, ", r"^[1-9]\d* errors?, ")
_ESLINT = line_reader(r"(?!)", r"^✖ \d+ problems? ")
_TSC = line_reader(r"(?!)", r"error TS\d+:|^Found \d+ errors? in ")
_PRETTIER = line_reader(
    r"^All matched files use Prettier code style!", r"Code style issues (?:found )?in |^\[warn\] \S+"
)
_BLACK = line_reader(
    r"^\d+ files? would be left unchanged\.$|^All done! ", r"^\d+ files? would be reformatted|^would reformat "
)

LINTERS = (
    _lint_runner(
        "ruff",
        "ruff check",
        read=_RUFF,
        modules="ruff",
        nothing="--show-files --show-settings",
        values="--select --ignore --config --output-format",
        lenient="-e",
    ),
    _lint_runner("ruff", "ruff format", read=_RUFF, requires="--check --diff"),
    _lint_runner(
        "flake8", "flake8", modules="flake8", values="--max-line-length --select --ignore --config --extend-ignore"
    ),
    _lint_runner("pylint", "pylint", codes=_EVERY_CODE, modules="pylint", nothing="--list-msgs --generate-rcfile"),
    _lint_runner("black", "black", read=_BLACK, modules="black", requires="--check --diff"),
    _lint_runner("isort", "isort", modules="isort", requires="--check --check-only -c --diff"),
    _lint_runner("pre-commit", "pre-commit run,prek run", modules="pre_commit"),
    _lint_runner(
        "mypy",
        "mypy,dmypy run",
        read=_MYPY,
        modules="mypy",
        kind=CheckKind.TYPES,
        values="-p -m --config-file --python-version",
    ),
    _lint_runner("pyright", "pyright,basedpyright", read=_PYRIGHT, modules="pyright", kind=CheckKind.TYPES),
    _lint_runner("ty", "ty check,pyrefly check,pyre check", kind=CheckKind.TYPES),
    _lint_runner(
        "tsc",
        "tsc,vue-tsc",
        read=_TSC,
        kind=CheckKind.TYPES,
        nothing="-v --init --showConfig --listFilesOnly --all",
        # tsc ends with 1 where it wrote no files and with 2 where it did; both mean errors.
        codes={0: Verdict.PASSED, 1: Verdict.FAILED, 2: Verdict.FAILED},
    ),
    _lint_runner("eslint", "eslint", read=_ESLINT, nothing="-v --print-config --init --env-info"),
    _lint_runner(
        "biome",
        "biome check,biome lint,biome ci",
        read=line_reader(r"^Checked \d+ files? in .*No fixes", r"^Found \d+ errors?"),
    ),
    _lint_runner("prettier", "prettier", read=_PRETTIER, requires="--check -c -l --list-different"),
    _lint_runner("stylelint", "stylelint"),
    _lint_runner("oxlint", "oxlint"),
    _lint_runner("standard", "standard"),
    _lint_runner("shellcheck", "shellcheck"),
    _lint_runner("shfmt", "shfmt", requires="-d --diff -l"),
    _lint_runner("hadolint", "hadolint"),
    _lint_runner("yamllint", "yamllint"),
    _lint_runner("actionlint", "actionlint"),
    _lint_runner("markdownlint", "markdownlint,markdownlint-cli2"),
    _lint_runner("rubocop", "rubocop", read=line_reader(r"no offenses detected", r"\d+ offenses? detected")),
    _lint_runner("phpstan", "phpstan analyse,phpstan analyze"),
    _lint_runner("golangci-lint", "golangci-lint run"),
    _lint_runner("go vet", "go vet"),
    _lint_runner("gofmt", "gofmt", requires="-l -d"),
    _lint_runner("clippy", "cargo clippy", codes={0: Verdict.PASSED, 101: Verdict.FAILED}),
    _lint_runner("rustfmt", "cargo fmt", requires="--check"),
    _lint_runner("ktlint", "ktlint"),
    _lint_runner("swiftlint", "swiftlint lint"),
    _lint_runner("deno lint", "deno lint,deno fmt --check"),
)

# 101 is how Cargo ends.
_BUILD_CODES = {0: Verdict.PASSED, 1: Verdict.FAILED, 2: Verdict.FAILED, 101: Verdict.FAILED}
BUILDS = tuple(
    _lint_runner(name, programs, kind=CheckKind.BUILD, codes=_BUILD_CODES)
    for name, programs in (
        ("cargo", "cargo build,cargo b,cargo check,cargo c"),
        ("go build", "go build"),
        ("dotnet build", "dotnet build"),
        ("cmake", "cmake --build"),
        ("vite", "vite build"),
        ("next", "next build"),
        ("webpack", "webpack"),
        ("docker build", "docker build,docker buildx build"),
    )
)
CHECKS = LINTERS + BUILDS
