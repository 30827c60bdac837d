"""Sets of names that the readers of commands share, from `word_lists.toml`."""

from functools import cache

from holdfast.core.data_files import load_data


@cache
def _lists() -> dict[str, str]:
    return load_data(__file__, "word_lists", dict[str, str])


@cache
def word_list(name: str) -> frozenset[str]:
    return frozenset(_lists()[name].split())
