"""A run as events change it."""

from holdfast.core.event import Event
from holdfast.features.uat.state.run import new_run, reduce_run


def test_what_changes_nothing_leaves_the_run_as_it_is() -> None:
    started = Event(key="k1", kind="uat.started", at=1, seq=1, session="s-1", data={"id": "uat-1", "scenario": "login"})
    run = new_run(started)
    assert reduce_run(run, Event(key="k2", kind="uat.suggested", at=2, seq=2)) is run
    assert reduce_run(run, started) is run, "a second start under the same id"
    assert reduce_run(None, Event(key="k3", kind="uat.ended", at=2, seq=3)) is None
