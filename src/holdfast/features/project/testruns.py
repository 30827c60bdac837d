"""Test runs as the log saw them: which commands run tests, and what their output says. Pure."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.features.project.model import phrases
from holdfast.features.project.words import Part, parts

MOST_FAILURES = 50
NOTHING_COLLECTED = 5
"""Pytest's exit code when no test was found: that is no run."""


class Counts(msgspec.Struct, frozen=True):
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.skipped


Parser = Callable[[str], Counts | None]


def seen_run(event: Event) -> dict[str, Any] | None:
    """What this tool call says about the tests; None when it ran none, or left it open how they went."""
    data = event.data
    if data.get("action") != "shell" or data.get("interrupted") or data.get("detached"):
        return None
    part = next((p for p in parts(str(data.get("command") or "")) if runner(p)), None)
    if part is None or data.get("exit_code") == NOTHING_COLLECTED:
        return None
    text = str(data.get("output") or data.get("error") or "")
    counts = counted(runner(part), text)
    ok = _ok(part, data.get("exit_code"), counts)
    return None if ok is None else _facts(part, ok, counts or Counts(), event)


def _facts(part: Part, ok: bool, counts: Counts, event: Event) -> dict[str, Any]:
    took = event.data.get("ms")
    return {
        "runner": runner(part),
        "scope": scope(part),
        "ok": ok,
        "total": counts.total,
        "passed": counts.passed,
        "failed": counts.failed,
        "skipped": counts.skipped,
        "failures": list(counts.failures)[:MOST_FAILURES],
        "command": str(event.data.get("command"))[:500],
        "since": event.at - int(took if isinstance(took, int | float) else 0),
    }


def _ok(part: Part, exit_code: Any, counts: Counts | None) -> bool | None:
    """Counts are believed before an exit code that may be another program's (`pytest | tail`)."""
    if counts and counts.failed:
        return False
    if isinstance(exit_code, int) and part.exits:
        return exit_code == 0
    return True if counts and counts.total else None


# ── which commands run tests ─────────────────────────────────────────────────────────────────────────────────────────

_ALWAYS = phrases(
    "pytest, py.test, unittest, vitest, jest, mocha, ava, rspec, phpunit, ctest, bats, tox, nox, gotestsum, ward, "
    "behave, karma, nose2"
)
_WITH_WORD = phrases(
    "npm test, npm run test, npm t, pnpm test, pnpm run test, yarn test, yarn run test, bun test, go test, cargo "
    "test, cargo nextest, mvn test, mvn verify, mvnw test, mvnw verify, gradle test, gradle check, gradlew test, "
    "gradlew check, dotnet test, mix test, make test, make check, just test, task test, deno test, swift test, rake "
    "test, rake spec, rails test, bazel test, zig build test, composer test, nx test, turbo test, invoke test"
)


def runner(part: Part) -> str:
    """The name under which its runs belong together; empty when it runs no tests."""
    name = part.name
    program = name.split(" ")[0]
    if program in _ALWAYS:
        return program
    if program in ("pnpm", "yarn", "bun", "hatch") and name.partition(" ")[2] in _ALWAYS:
        return name.partition(" ")[2]
    if name in _WITH_WORD or re.match(r"^(npm|pnpm|yarn|bun) run test[:\w-]*$", name):
        return name
    if program == "node" and "--test" in part:
        return "node --test"
    return ""


_FILTERS = frozenset(("-k", "-m", "-t", "--testNamePattern", "-run", "--filter", "--grep", "-g", "-Dtest", "--tests"))


def scope(part: Part) -> list[str]:
    """What it was limited to; empty = everything. Options that choose tests count, others do not."""
    used = len(part.name.split(" ")) if part.name else 1
    found, chosen = [], False
    for word in part[used:]:
        if chosen or not word.startswith("-") or (word.partition("=")[0] in _FILTERS and "=" in word):
            found.append(word)
        chosen = word in _FILTERS
    whole = ("./...", ".", "run", "--", "discover", "tests", "tests/", "test", "test/", "spec")
    return [word[:200] for word in found if word not in whole][:20]


# ── what their output says ───────────────────────────────────────────────────────────────────────────────────────────


def counted(name: str, text: str) -> Counts | None:
    """By the runner's own parser; `npm test` and `make test` may run anything, so there all are tried."""
    own = _OWN.get(name.split(" ")[0] if name.split(" ")[0] in _OWN else name)
    return own(text) if own else next(filter(None, (parser(text) for parser in _PARSERS)), None)


def _named(text: str, pattern: str) -> dict[str, int]:
    return {word.lower(): int(n) for n, word in re.findall(pattern, text)}


def _failures(text: str, pattern: str) -> tuple[str, ...]:
    found = (line.strip()[:300] for line in re.findall(pattern, text, re.MULTILINE))
    return tuple(dict.fromkeys(name for name in found if name))[:MOST_FAILURES]


def _last(text: str, pattern: str) -> re.Match[str] | None:
    last = None
    for match in re.finditer(pattern, text, re.MULTILINE):
        last = match
    return last


def _pytest(text: str) -> Counts | None:
    line = _last(text, r"^[^\n]*\b\d+ (?:passed|failed|skipped|errors?|xfailed|xpassed)\b[^\n]* in \d[\d.:]*s?[^\n]*$")
    if not line:
        return None
    got = _named(line[0], r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)")
    return Counts(
        passed=got.get("passed", 0) + got.get("xpassed", 0),
        failed=got.get("failed", 0) + got.get("error", 0) + got.get("errors", 0),
        skipped=got.get("skipped", 0) + got.get("xfailed", 0),
        failures=_failures(text, r"^(?:FAILED|ERROR) (\S+(?:::[^\n]+?)?)(?: - .*)?$"),
    )


def _unittest(text: str) -> Counts | None:
    ran = _last(text, r"^Ran (\d+) tests? in ")
    verdict = _last(text, r"^(?:OK|FAILED)\b(?: \(([^)\n]*)\))?")
    if not ran or not verdict:
        return None
    got = {name: int(n) for name, n in re.findall(r"(failures|errors|skipped)=(\d+)", verdict[1] or "")}
    failed, skipped = got.get("failures", 0) + got.get("errors", 0), got.get("skipped", 0)
    names = _failures(text, r"^(?:FAIL|ERROR): (\S+ \([^)\n]*\))")
    return Counts(max(0, int(ran[1]) - failed - skipped), failed, skipped, names)


def _jest(text: str) -> Counts | None:
    line = _last(text, r"^Tests:[ \t]+(.*\btotal)[ \t]*$")
    if not line:
        return None
    got = _named(line[1], r"(\d+) (failed|passed|skipped|todo|pending)")
    skipped = got.get("skipped", 0) + got.get("todo", 0) + got.get("pending", 0)
    return Counts(got.get("passed", 0), got.get("failed", 0), skipped, _failures(text, r"^[ \t]*● (.+ › .+)$"))


def _vitest(text: str) -> Counts | None:
    line = _last(text, r"^[ \t]*Tests[ \t]+(.*\(\d+\))")
    if not line:
        return None
    got = _named(line[1], r"(\d+) (failed|passed|skipped|todo)")
    names = _failures(text, r"^[ \t]*FAIL[ \t]+(\S+(?: > .+)?)$")
    return Counts(got.get("passed", 0), got.get("failed", 0), got.get("skipped", 0) + got.get("todo", 0), names)


def _mocha(text: str) -> Counts | None:
    got = _named(text, r"(?m)^[ \t]+(\d+) (passing|failing|pending)\b")
    if "passing" not in got:
        return None
    names = _failures(text, r"^[ \t]+\d+\) (.+?):?$") if got.get("failing") else ()
    return Counts(got["passing"], got.get("failing", 0), got.get("pending", 0), names)


def _node(text: str) -> Counts | None:
    got = {name: int(n) for name, n in re.findall(r"(?m)^(?:#|ℹ) (tests|pass|fail|skipped|todo) (\d+)[ \t]*$", text)}
    if "pass" not in got or "fail" not in got:
        return None
    names = _failures(text, r"^(?:not ok \d+ - |✖ )(.+?)(?: \([\d.]+ms\))?$") if got["fail"] else ()
    return Counts(got["pass"], got["fail"], got.get("skipped", 0) + got.get("todo", 0), names)


def _go(text: str) -> Counts | None:
    each = re.findall(r"(?m)^[ \t]*--- (PASS|FAIL|SKIP): (\S+)", text)
    packages = re.findall(r"(?m)^(ok|FAIL)\s+(\S+)\s+(?:[\d.]+s|\(cached\)|\[build failed\])", text)
    if not each and not packages:
        return None
    failed = tuple(dict.fromkeys(name for verdict, name in each if verdict == "FAIL"))
    if any(verdict == "PASS" for verdict, _ in each):
        return Counts(_count(each, "PASS"), _count(each, "FAIL"), _count(each, "SKIP"), failed)
    broken = failed or tuple(name for verdict, name in packages if verdict == "FAIL")
    return Counts(_count(packages, "ok"), len(broken), 0, broken[:MOST_FAILURES])


def _count(found: Iterable[tuple[str, str]], verdict: str) -> int:
    return sum(1 for one, _ in found if one == verdict)


def _cargo(text: str) -> Counts | None:
    results = re.findall(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", text)
    nextest = _last(text, r"Summary \[.*\]\s+\d+ tests? run: (.*)$")
    if nextest:
        got = _named(nextest[1], r"(\d+) (passed|failed|skipped)")
        return Counts(got.get("passed", 0), got.get("failed", 0), got.get("skipped", 0))
    if not results:
        return None
    passed, failed, ignored = (sum(int(row[n]) for row in results) for n in range(3))
    return Counts(passed, failed, ignored, _failures(text, r"^test (\S+) \.\.\. FAILED"))


def _maven(text: str) -> Counts | None:
    line = _last(text, r"Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)\s*$")
    if not line:
        return None
    ran, failures, errors, skipped = map(int, line.groups())
    names = _failures(text, r"^\[ERROR\]\s+(\w[\w.$]*\.\w+)(?::\d+)?\b")
    return Counts(max(0, ran - failures - errors - skipped), failures + errors, skipped, names)


def _gradle(text: str) -> Counts | None:
    line = _last(text, r"^(\d+) tests? completed(?:, (\d+) failed)?(?:, (\d+) skipped)?")
    if not line:
        return None
    ran, failed, skipped = (int(n or 0) for n in line.groups())
    return Counts(max(0, ran - failed - skipped), failed, skipped, _failures(text, r"^(\S+ > .+) FAILED\s*$"))


def _dotnet(text: str) -> Counts | None:
    line = _last(text, r"Failed:\s+(\d+), Passed:\s+(\d+), Skipped:\s+(\d+), Total:\s+\d+")
    if not line:
        return None
    failed, passed, skipped = map(int, line.groups())
    return Counts(passed, failed, skipped, _failures(text, r"^[ \t]+Failed (\S+) \["))


def _examples(text: str) -> Counts | None:
    """RSpec, ExUnit, Bats and Minitest all end in such a line."""
    line = _last(
        text, r"^(\d+) (?:examples?|tests?|runs)[^\n]*?, (\d+) failures?\b(?:, (\d+) (?:pending|skipped|errors))?"
    )
    if not line:
        return None
    ran, failed, third = (int(n or 0) for n in line.groups())
    names = _failures(text, r"^rspec (\S+)|^ *✗ (?:.*)$") if "rspec ./" in text else ()
    return Counts(max(0, ran - failed - third), failed, third, names)


def _phpunit(text: str) -> Counts | None:
    if good := _last(text, r"^OK \((\d+) tests?,"):
        return Counts(int(good[1]))
    line = _last(text, r"^Tests: (\d+), Assertions: \d+(.*)$")
    if not line:
        return None
    got = {name: int(n) for name, n in re.findall(r"(Failures|Errors|Skipped|Incomplete): (\d+)", line[2])}
    failed, skipped = got.get("Failures", 0) + got.get("Errors", 0), got.get("Skipped", 0) + got.get("Incomplete", 0)
    return Counts(max(0, int(line[1]) - failed - skipped), failed, skipped, _failures(text, r"^\d+\) (\S+::\S+)"))


def _ctest(text: str) -> Counts | None:
    line = _last(text, r"tests passed, (\d+) tests? failed out of (\d+)")
    if not line:
        return None
    failed, ran = int(line[1]), int(line[2])
    return Counts(
        max(0, ran - failed), failed, 0, _failures(text, r"^[ \t]+\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT).*\)")
    )


def _deno(text: str) -> Counts | None:
    line = _last(text, r"(?:ok|FAILED) \| (\d+) passed(?: \(\d+ steps?\))? \| (\d+) failed(?:.*?(\d+) ignored)?")
    return Counts(int(line[1]), int(line[2]), int(line[3] or 0)) if line else None


def _swift(text: str) -> Counts | None:
    line = _last(text, r"Executed (\d+) tests?, with (?:(\d+) tests? skipped and )?(\d+) failures?")
    if not line:
        return None
    ran, skipped, failed = int(line[1]), int(line[2] or 0), int(line[3])
    return Counts(max(0, ran - skipped - failed), failed, skipped)


def _bun(text: str) -> Counts | None:
    got = _named(text, r"(?m)^[ \t]*(\d+) (pass|fail|skip|todo)[ \t]*$")
    if "pass" not in got or "fail" not in got:
        return None
    return Counts(
        got["pass"], got["fail"], got.get("skip", 0) + got.get("todo", 0), _failures(text, r"^\(fail\) (.+?)(?: \[|$)")
    )


_PARSERS: tuple[Parser, ...] = (
    _pytest, _unittest, _vitest, _jest, _node, _cargo, _maven, _gradle, _dotnet, _phpunit, _ctest, _deno, _swift, _bun,
    _examples, _go, _mocha,
)  # fmt: skip
_OWN: dict[str, Parser] = {
    "pytest": _pytest, "py.test": _pytest, "unittest": _unittest, "jest": _jest, "vitest": _vitest, "mocha": _mocha,
    "go": _go, "gotestsum": _go, "cargo": _cargo, "mvn": _maven, "mvnw": _maven, "gradle": _gradle, "gradlew": _gradle,
    "dotnet": _dotnet, "rspec": _examples, "mix": _examples, "bats": _examples, "phpunit": _phpunit, "ctest": _ctest,
    "deno": _deno, "swift": _swift, "node": _node,
}  # fmt: skip
