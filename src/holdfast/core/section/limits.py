"""How large, how long: the limits of an annotation, and what is said when they are not kept."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from holdfast.core.section.leaves import Kind, Text

Limit = tuple[Callable[[Any], bool], str]


def limits(meta: msgspec.Meta, kind: Kind) -> Iterator[Limit]:
    least, most = meta.ge, meta.le
    if least is not None and most is not None:
        yield (lambda value: least <= value <= most), f"must be from {least} to {most}"
    elif least is not None:
        yield (lambda value: value >= least), f"must be at least {least}"
    elif most is not None:
        yield (lambda value: value <= most), f"must be at most {most}"
    yield from _lengths(meta.min_length, meta.max_length, "character" if isinstance(kind, Text) else "entry")
    if meta.pattern is not None:
        whole = re.compile(meta.pattern).fullmatch
        yield (lambda value: whole(value) is not None), (meta.extra or {}).get("says", f"must fit {meta.pattern}")


def _lengths(least: int | None, most: int | None, unit: str) -> Iterator[Limit]:
    if least is not None:
        says = "must not be empty" if least == 1 else f"must have at least {_counted(least, unit)}"
        yield (lambda value: len(value) >= least), says
    if most is not None:
        yield (lambda value: len(value) <= most), f"must have at most {_counted(most, unit)}"


def _counted(number: int, unit: str) -> str:
    many = {"character": "characters", "entry": "entries"}
    return f"{number} {unit if number == 1 else many[unit]}"
