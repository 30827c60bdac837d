"""Loads tables that are TOML in the source and JSON in the wheel, because parsing TOML takes 10 ms."""

from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def load_data(module_file: str, name: str, type_: type[T]) -> T:
    """Load a data file from the folder of the calling module."""
    source = Path(module_file).with_name(f"{name}.toml")
    compiled = source.with_suffix(".json")
    if compiled.exists():
        return msgspec.json.decode(compiled.read_bytes(), type=type_)
    return msgspec.toml.decode(source.read_bytes(), type=type_)
