"""Comparisons that tell whether a changed setting asks for at least as much as before."""

from collections.abc import Callable, Collection
from typing import Any

import msgspec

Comparison = Callable[[Any, Any], bool]


def is_superset(was: Collection[Any], now: Collection[Any]) -> bool:
    return set(map(_hashable, was)) <= set(map(_hashable, now))


def is_subset(was: Collection[Any], now: Collection[Any]) -> bool:
    return is_superset(now, was)


def is_wider(was: Collection[str], now: Collection[str]) -> bool:
    """No paths at all means every file."""
    return not now or (bool(was) and is_superset(was, now))


def is_lower_limit(was: float, now: float) -> bool:
    """0 means no limit."""
    return bool(now) and (not was or now <= was)


def is_at_most(was: float, now: float) -> bool:
    return now <= was


def _hashable(value: Any) -> Any:
    return msgspec.json.encode(value) if isinstance(value, msgspec.Struct) else value
