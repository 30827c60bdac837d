"""What is loaded later is there when it is asked for."""

from importlib import import_module

import pytest

from holdfast.features import FEATURES

TABLES = [
    ("gates", "commands"),
    ("gates", "views"),
    ("project", "commands"),
    ("project", "views"),
    ("uat", "commands"),
    ("uat", "views"),
]


@pytest.mark.parametrize(("name", "part"), TABLES)
def test_a_feature_names_what_its_module_has(name: str, part: str) -> None:
    feature = next(one for one in FEATURES if one.name == name)
    table = getattr(import_module(f"holdfast.features.{name}.{part}"), part.upper())
    assert set(getattr(feature, part)) == set(table)


def test_each_command_of_memory_is_there() -> None:
    module = import_module("holdfast.features.memory.commands")
    feature = next(one for one in FEATURES if one.name == "memory")
    assert all(callable(getattr(module, {"handoff": "hand_over"}.get(name, name))) for name in feature.commands)
