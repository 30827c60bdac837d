"""Plain data as YAML in the seed's look: texts in double quotes, one key a line. Written by hand because it is
written often and beside the hooks: a general YAML library takes a hundred times as long."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from holdfast.core.text import escape_invisible

_PLAIN_KEY = re.compile(r"^[A-Za-z_][\w.-]*$")
_RESERVED = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
DEEPEST = 20


def dump(value: Mapping[str, Any]) -> str:
    return "".join(f"{line}\n" for line in _mapping(value, "", DEEPEST))


def _mapping(value: Mapping[str, Any], indent: str, depth: int) -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner and depth:
            yield f"{indent}{_key(key)}:"
            yield from _mapping(inner, indent + "  ", depth - 1)
        elif isinstance(inner, list | tuple) and inner and depth:
            yield f"{indent}{_key(key)}:"
            yield from _list(inner, indent + "  ", depth - 1)
        else:
            yield f"{indent}{_key(key)}: {scalar(inner)}"


def _list(values: list[Any] | tuple[Any, ...], indent: str, depth: int) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping) and value and depth:
            lines = list(_mapping(value, indent + "  ", depth - 1))
            yield f"{indent}- {lines[0].lstrip()}"
            yield from lines[1:]
        else:
            yield f"{indent}- {scalar(value)}"


def _key(key: Any) -> str:
    text = str(key)
    return text if _PLAIN_KEY.fullmatch(text) and text.lower() not in _RESERVED else scalar(text)


def scalar(value: Any) -> str:
    """JSON is YAML: texts, numbers, true, false, null, and what is empty or too deep."""
    if isinstance(value, str):
        value = value.encode("utf-8", "replace").decode()
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return escape_invisible(text, yaml=True)
