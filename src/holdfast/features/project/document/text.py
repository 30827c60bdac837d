"""Times and counts as text, and plain data as YAML: texts in double quotes, one key a line."""

# The YAML is written by hand because it is written often and next to the hooks: a general library takes a hundred times
# as long.

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.core.text import escape_invisible

_PLAIN_KEY = re.compile(r"^[A-Za-z_][\w.-]*$")
# Read as booleans or null by YAML 1.1, with any capitals.
_RESERVED = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
DEEPEST = 20
HEAD_MARK = "# Written by Holdfast from its log."
"""The first line of every document Holdfast writes."""


def iso_time(ms: int | None) -> str | None:
    return format_time(ms) if ms else None


def format_time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def count_with_noun(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def dump_yaml(value: Mapping[str, Any]) -> str:
    return "".join(f"{line}\n" for line in _mapping_lines(value, "", DEEPEST))


def _mapping_lines(value: Mapping[str, Any], indent: str, depth: int) -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner and depth:
            yield f"{indent}{_yaml_key(key)}:"
            yield from _mapping_lines(inner, indent + "  ", depth - 1)
        elif isinstance(inner, list | tuple) and inner and depth:
            yield f"{indent}{_yaml_key(key)}:"
            yield from _list_lines(inner, indent + "  ", depth - 1)
        else:
            yield f"{indent}{_yaml_key(key)}: {yaml_scalar(inner)}"


def _list_lines(values: list[Any] | tuple[Any, ...], indent: str, depth: int) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping) and value and depth:
            lines = list(_mapping_lines(value, indent + "  ", depth - 1))
            yield f"{indent}- {lines[0].lstrip()}"
            yield from lines[1:]
        else:
            yield f"{indent}- {yaml_scalar(value)}"


def _yaml_key(key: Any) -> str:
    text = str(key)
    return text if _PLAIN_KEY.fullmatch(text) and text.lower() not in _RESERVED else yaml_scalar(text)


def yaml_scalar(value: Any) -> str:
    """JSON is YAML: texts, numbers, true, false, null, and what is empty or too deep."""
    if isinstance(value, str):
        # Half of a surrogate pair cannot be encoded.
        value = value.encode("utf-8", "replace").decode()
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return escape_invisible(text, yaml=True)
