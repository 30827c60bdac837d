"""Names of the tests that failed, from what a runner printed. What is not named stays unnamed."""

import re

MAX_FAILURES = 50
_PATTERNS = {
    "pytest": r"^(?:FAILED|ERROR) (\S+(?:::[^\n]+?)?)(?: - .*)?$",
    "unittest": r"^(?:FAIL|ERROR): (\S+ \([^)\n]*\))",
    "jest": r"^[ \t]*● (.+ › .+)$",
    "vitest": r"^[ \t]*FAIL[ \t]+(\S+(?: > .+)?)$",
    "mocha": r"^[ \t]+\d+\) (.+?):?$",
    "node": r"^(?:not ok \d+ - |✖ )(.+?)(?: \([\d.]+ms\))?$",
    "go test": r"^[ \t]*--- FAIL: (\S+)",
    "cargo test": r"^test (\S+) \.\.\. FAILED",
    "maven": r"^\[ERROR\]\s+(\w[\w.$]*\.\w+)(?::\d+)?\b",
    "gradle": r"^(\S+ > .+) FAILED\s*$",
    "dotnet": r"^[ \t]+Failed (\S+) \[",
    "rspec": r"^rspec (\S+)",
    "phpunit": r"^\d+\) (\S+::\S+)",
    "ctest": r"^[ \t]+\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT).*\)",
    "bun": r"^\(fail\) (.+?)(?: \[|$)",
}


def read_failures(runner: str, output: str) -> list[str]:
    """In the order they are printed, each once."""
    pattern = _PATTERNS.get(runner)
    if pattern is None:
        return []
    names = (name.strip()[:300] for name in re.findall(pattern, output, re.MULTILINE))
    return list(dict.fromkeys(name for name in names if name))[:MAX_FAILURES]
