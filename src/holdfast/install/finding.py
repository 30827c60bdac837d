"""One entry of ours in somebody's file."""

from typing import Any, NamedTuple


class Found(NamedTuple):
    event: str
    line: int
    entry: dict[str, Any]
