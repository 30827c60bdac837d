"""What an undo is about, chosen from the steps on record."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.core.errors import CommandRefused
from holdfast.core.kinds.workspace_events import FileChange
from holdfast.features.workspace import plans
from holdfast.features.workspace.timeline import Request, Step, choose


def step(seq: int, of: str, path: str) -> Step:
    change = FileChange(path=path, before="1", after="2", was=0o100644, mode=0o100644, at=seq)
    return Step(seq, seq, of, "call", of, of, "Bash", "", (change,))


def test_the_last_call_is_chosen_whole_though_another_wrote_in_between() -> None:
    steps = [step(1, "one", "a"), step(2, "two", "b"), step(3, "one", "c")]
    chosen = choose(steps, Request(), cast(Any, None), 9)
    assert [one.seq for one in chosen.steps] == [1, 3]


def test_nothing_is_chosen_from_changes_that_are_half_recorded() -> None:
    here = SimpleNamespace(recorder=SimpleNamespace(settle=lambda _patience: False))
    with pytest.raises(CommandRefused, match="still being recorded"):
        plans.steps_of(cast(Any, None), cast(Any, here))
