"""The check tools of `runners.toml`."""

from functools import cache

import msgspec

from holdfast.core.checks import CheckKind, Verdict
from holdfast.core.data_files import load_data
from holdfast.core.lazy import lazy_pattern
from holdfast.features.checks.runners import readers
from holdfast.features.checks.runners.spec import Reader, Runner, flag_set
from holdfast.features.checks.runners.summaries import counts_reader, line_reader

_FLAGS = (
    "runs_nothing", "nothing_operands", "takes_value", "hollow", "selects", "lenient", "quiet", "requires", "watches"
)  # fmt: skip


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """A runner as the file has it: flags in one text, codes as `1-63=failed`, patterns as text."""

    name: str
    kind: CheckKind = CheckKind.TEST
    programs: tuple[str, ...] = ()
    modules: str = ""
    runs_nothing: str = ""
    nothing_operands: str = ""
    takes_value: str = ""
    hollow: str = ""
    hollow_with: tuple[str, str] = ("", "")
    selects: str = ""
    lenient: str = ""
    quiet: str = ""
    requires: str = ""
    watches: str = ""
    whole_operands: str = r"^(?:\.|\./|\./\.\.\.|tests?/?|spec/?|src/?)$"
    requires_pattern: str = ""
    not_required: str = ""
    codes: str = "0=passed 1=failed"
    empty_succeeds: bool = False
    sums: bool = False
    options_variable: str = ""
    stream: str = "stdout"
    read: str = ""
    summary: str | tuple[str, ...] = ""
    parts: dict[str, str] = {}
    empty: str = ""
    sign: str = ""
    contradicts: str = ""
    good: str = ""
    bad: str = ""


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    runner: tuple[_Row, ...]


@cache
def load_runners() -> tuple[Runner, ...]:
    return tuple(map(_as_runner, load_data(__file__, "runners", _Table).runner))


def _as_runner(row: _Row) -> Runner:
    return Runner(
        name=row.name, kind=row.kind, programs=row.programs, modules=tuple(row.modules.split()), codes=_parse_codes(row.codes),
        hollow_with=(flag_set(row.hollow_with[0]), flag_set(row.hollow_with[1])), whole_operands=lazy_pattern(row.whole_operands),
        requires_pattern=lazy_pattern(row.requires_pattern) if row.requires_pattern else None,
        not_required=lazy_pattern(row.not_required) if row.not_required else None,
        empty_succeeds=row.empty_succeeds, sums=row.sums, options_variable=row.options_variable, stream=row.stream,
        read=_reader_of(row), **{name: flag_set(getattr(row, name)) for name in _FLAGS},
    )  # fmt: skip


def _parse_codes(text: str) -> dict[int, Verdict]:
    codes: dict[int, Verdict] = {}
    for entry in text.split():
        numbers, _, verdict = entry.partition("=")
        first, _, last = numbers.partition("-")
        codes |= dict.fromkeys(range(int(first), int(last or first) + 1), Verdict(verdict))
    return codes


def _reader_of(row: _Row) -> Reader:
    if row.read:
        reader: Reader = getattr(readers, f"read_{row.read}")
        return reader
    if not row.summary and not row.parts:
        return line_reader(row.good, row.bad)
    summaries = (row.summary,) if isinstance(row.summary, str) else row.summary
    return counts_reader(
        tuple(filter(None, summaries)), row.parts, empty=row.empty, sign=row.sign, contradicts=row.contradicts
    )
