"""Requirement kinds: registered, documented, and part of the settings."""

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from holdfast.features.gates.kinds import KINDS
from holdfast.features.gates.kinds.base import satisfied_by
from holdfast.features.gates.settings import AnyRequirement, Type
from holdfast.features.gates.state.branches import Entry


def test_settings_accept_every_kind_and_its_fields() -> None:
    fields = {field.name for field in msgspec.structs.fields(AnyRequirement)}
    assert set(get_args(Type)) == set(KINDS)
    for kind in KINDS.values():
        assert fields.issuperset(kind.settings.__struct_fields__), kind.name
        assert set(kind.comparisons) <= set(kind.settings.__struct_fields__), kind.name


def test_every_kind_has_its_row_in_the_docs() -> None:
    page = (Path(__file__).parents[4] / "docs" / "features" / "gates.md").read_text()
    assert [kind.name for kind in KINDS.values() if f"| `{kind.name}` | {kind.summary} |" not in page] == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (Entry(at=1, by="person"), "satisfied by person"),
        (Entry(at=1, by="skill"), "satisfied by skill"),
        (Entry(at=1), "satisfied by hand"),
        (Entry(at=1, by="person", approved=True), "approved by person"),
        (Entry(at=1, by="agent"), "said by the agent"),
    ],
)
def test_it_says_who_satisfied_it(entry: Entry, said: str) -> None:
    assert satisfied_by(entry) == said
