"""Functions and patterns created on first use, so that the daemon starts faster."""

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, AnyStr, TypeVar, cast

T = TypeVar("T")


def lazy_function(package: str, module: str, name: str) -> Callable[..., Any]:
    """Return a function that loads `name` from `package.module` on its first call."""

    def call(*given: Any) -> Any:
        return getattr(import_module(f"{package}.{module}"), name)(*given)

    return call


def lazy_attribute(package: str, module: str, name: str) -> Callable[[], Any]:
    """Load `package.module` and return `name`."""
    return lambda: getattr(import_module(f"{package}.{module}"), name)


def lazy_table(package: str, module: str, table: str, names: Iterable[str]) -> dict[str, Callable[..., Any]]:
    """The functions in `table` of `package.module`, by name."""

    def entry(name: str) -> Callable[..., Any]:
        return lambda *given: getattr(import_module(f"{package}.{module}"), table)[name](*given)

    return {name: entry(name) for name in names}


def lazy_value(make: Callable[[], T]) -> Callable[[], T]:
    """Call `make` once. Much cheaper to create than `functools.cache`, and there are hundreds."""
    made: list[T] = []

    def get() -> T:
        if not made:
            made.append(make())
        return made[0]

    return get


class _LazyPattern:
    """Compiled on first use of a method, which then becomes an ordinary attribute."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern, self._given_flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self._given_flags), name)
        setattr(self, name, value)
        return value


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, but deferred: compiling hundreds of patterns took a fifth of the daemon's start."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))
