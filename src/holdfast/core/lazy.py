"""Functions that are loaded when they are first called: a daemon's start does not wait for what a few jobs need."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_function(package: str, module: str, name: str) -> Callable[..., Any]:
    """`name` of `package.module`."""

    def call(*given: Any) -> Any:
        return getattr(import_module(f"{package}.{module}"), name)(*given)

    return call
