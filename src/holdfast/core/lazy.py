"""Functions and patterns that are made when they are first used: a daemon's start does not wait for what few events need."""

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, AnyStr, TypeVar, cast

T = TypeVar("T")


def lazy_function(package: str, module: str, name: str) -> Callable[..., Any]:
    """`name` of `package.module`."""

    def call(*given: Any) -> Any:
        return getattr(import_module(f"{package}.{module}"), name)(*given)

    return call


def lazy_attribute(package: str, module: str, name: str) -> Callable[[], Any]:
    """Gives `name` of `package.module`, which is loaded then."""
    return lambda: getattr(import_module(f"{package}.{module}"), name)


def lazy_table(package: str, module: str, table: str, names: Iterable[str]) -> dict[str, Callable[..., Any]]:
    """The functions in `table` of `package.module`, by `names`."""

    def entry(name: str) -> Callable[..., Any]:
        return lambda *given: getattr(import_module(f"{package}.{module}"), table)[name](*given)

    return {name: entry(name) for name in names}


def lazy_value(make: Callable[[], T]) -> Callable[[], T]:
    """`make`, called once. Unlike `functools.cache` it costs next to nothing to set up, which counts for hundreds of them."""
    made: list[T] = []

    def get() -> T:
        if not made:
            made.append(make())
        return made[0]

    return get


class _LazyPattern:
    """Compiled when one of its methods is first asked for; that method is then an attribute like any other."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern, self._given_flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self._given_flags), name)
        setattr(self, name, value)
        return value


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, for modules that the daemon loads at its start: hundreds of patterns would be a fifth of it."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))
