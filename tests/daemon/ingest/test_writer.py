"""What other threads hand to the writer: in which order it runs, and what becomes of it at the end."""

import pytest

from holdfast.daemon.ingest import writer
from holdfast.daemon.ingest.writer import WriterCalls


def test_work_that_can_wait_runs_only_when_nobody_is_at_the_door() -> None:
    calls, ran = WriterCalls(), []
    indexed = calls.submit(lambda: ran.append("index"), idle=True)
    asked = calls.submit(lambda: ran.append("command"))
    assert calls.waiting() and calls.has_put_off()
    assert calls.run_waiting() == 1
    assert not calls.run_put_off(idle=False)
    assert ran == ["command"]
    assert calls.run_put_off(idle=True)
    assert ran == ["command", "index"]
    asked.result(0)
    indexed.result(0)
    assert not calls.has_put_off()


def test_work_that_waited_too_long_runs_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = WriterCalls()
    first, second = (calls.submit(lambda: None, idle=True) for _ in range(2))
    monkeypatch.setattr(writer, "LONGEST_PUT_OFF_S", -1.0)
    assert calls.run_put_off(idle=False)
    first.result(0)
    with pytest.raises(TimeoutError):
        second.result(0)


def test_nothing_is_left_waiting_when_the_daemon_stops() -> None:
    calls = WriterCalls()
    left = [calls.submit(lambda: None), calls.submit(lambda: None, idle=True)]
    calls.close()
    for pending in (*left, calls.submit(lambda: None, idle=True)):
        with pytest.raises(RuntimeError, match="stopping"):
            pending.result(0)
