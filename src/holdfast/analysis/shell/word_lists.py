"""Sets of names that the readers of commands share, from `word_lists.toml`."""

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

from holdfast.core.data_files import load_data

T = TypeVar("T")


@cache
def _lists() -> dict[str, str]:
    return load_data(__file__, "word_lists", dict[str, str])


@cache
def word_list(name: str) -> frozenset[str]:
    return frozenset(_lists()[name].split())


def by_single_name(rows: Mapping[str, T]) -> dict[str, T]:
    """A table whose rows are shared by several names, by each of them."""
    return {name: row for names, row in rows.items() for name in names.split()}
