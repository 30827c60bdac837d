"""Dicts that stay small: the newest are kept. Documents are bounded, lists are queries on the log (decision 7)."""

from collections.abc import Callable, Iterable
from typing import Any


def with_newest(known: dict[str, Any], name: str, value: Any, most: int) -> dict[str, Any]:
    """A new dict with `name` last; the first ones fall out. Order is age."""
    kept = {key: one for key, one in known.items() if key != name} if name in known else dict(known)
    kept[name] = value
    while len(kept) > most:
        del kept[next(iter(kept))]
    return kept


def without(known: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    gone = set(names)
    return {key: one for key, one in known.items() if key not in gone}


def mapped(known: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    return {key: change(one) for key, one in known.items()}
