"""Kinds of requirements: each that the settings allow is built, and a requirement says who satisfied it."""

from typing import get_args

import pytest

from holdfast.features.gates.rules.requirements import KINDS, satisfied_by
from holdfast.features.gates.settings import Type
from holdfast.features.gates.state.branches import Entry


def test_every_type_of_the_settings_is_a_kind() -> None:
    assert set(get_args(Type)) == set(KINDS)


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
