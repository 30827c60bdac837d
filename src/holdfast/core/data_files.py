"""Tables that lie beside the code as TOML; a wheel has them as JSON, because parsing TOML takes ten milliseconds."""

from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def load_data(module_file: str, name: str, type_: type[T]) -> T:
    """`name` is a file in the folder of the module that asks."""
    source = Path(module_file).with_name(f"{name}.toml")
    compiled = source.with_suffix(".json")
    if compiled.exists():
        return msgspec.json.decode(compiled.read_bytes(), type=type_)
    return msgspec.toml.decode(source.read_bytes(), type=type_)
