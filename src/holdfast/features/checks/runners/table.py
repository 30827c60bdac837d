"""The check tools of `runners.toml`."""

import re
from functools import cache
from typing import Any

from holdfast.core.checks import CheckKind, Verdict
from holdfast.core.data_files import load_data
from holdfast.core.lazy import lazy_pattern
from holdfast.features.checks.runners import readers
from holdfast.features.checks.runners.spec import Reader, Runner, flag_set
from holdfast.features.checks.runners.summaries import counts_reader, line_reader

_FLAGS = (
    "runs_nothing",
    "nothing_operands",
    "takes_value",
    "hollow",
    "selects",
    "lenient",
    "quiet",
    "requires",
    "bends",
)
_PATTERNS = ("whole_operands", "requires_pattern", "not_required")
_COUNTS = ("summary", "parts", "empty", "sign", "contradicts")
Row = dict[str, Any]
"""A runner as the file has it: flags in one text, codes as `1-63=failed`, patterns as text."""


@cache
def load_runners() -> tuple[Runner, ...]:
    return tuple(map(_as_runner, load_data(__file__, "runners", dict[str, list[Row]])["runner"]))


def failure_patterns(name: str) -> list[re.Pattern[str]]:
    return [runner.failures for runner in load_runners() if runner.name == name and runner.failures]


def _as_runner(row: Row) -> Runner:
    read, fields = _pop_reader(row)
    fields |= {name: flag_set(row[name]) for name in _FLAGS if name in row}
    fields |= {name: lazy_pattern(row[name]) for name in _PATTERNS if name in row}
    if "failures" in row:
        fields["failures"] = lazy_pattern(row["failures"], re.MULTILINE)
    if "programs" in row:
        fields["programs"] = tuple(row["programs"])
    if "hollow_with" in row:
        fields["hollow_with"] = tuple(map(flag_set, row["hollow_with"]))
    codes = _parse_codes(row.get("codes", "0=passed 1=failed"))
    kind, modules = CheckKind(row.get("kind", "test")), tuple(row.get("modules", "").split())
    return Runner(**{**fields, "kind": kind, "modules": modules, "codes": codes, "read": read})


def _parse_codes(text: str) -> dict[int, Verdict]:
    codes: dict[int, Verdict] = {}
    for entry in text.split():
        numbers, _, verdict = entry.partition("=")
        first, _, last = numbers.partition("-")
        codes |= dict.fromkeys(range(int(first), int(last or first) + 1), Verdict(verdict))
    return codes


def _pop_reader(row: Row) -> tuple[Reader, Row]:
    """The reader that a row describes, and the other fields."""
    rest = {name: value for name, value in row.items() if name not in ("read", "good", "bad", *_COUNTS)}
    if "read" in row:
        return getattr(readers, f"read_{row['read']}"), rest
    counts = {name: row[name] for name in _COUNTS if name in row}
    return (counts_reader(**counts) if counts else line_reader(row.get("good", ""), row.get("bad", ""))), rest
