"""Functions that are loaded when they are first called: a daemon's start does not wait for what a few jobs need."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any


def lazy_function(package: str, module: str, name: str) -> Callable[..., Any]:
    """`name` of `package.module`."""

    def call(*given: Any) -> Any:
        return getattr(import_module(f"{package}.{module}"), name)(*given)

    return call


def lazy_table(package: str, module: str, table: str, names: Iterable[str]) -> dict[str, Callable[..., Any]]:
    """The functions in `table` of `package.module`, by `names`."""

    def entry(name: str) -> Callable[..., Any]:
        return lambda *given: getattr(import_module(f"{package}.{module}"), table)[name](*given)

    return {name: entry(name) for name in names}
