"""How long a command waits for the daemon it started."""

import sys
import time
from pathlib import Path

import pytest

from holdfast import client
from holdfast.core.errors import DaemonUnreachable
from holdfast.paths import Paths

MOST_LOOKS = 500


def test_a_daemon_that_ended_at_once_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    looks = iter(range(MOST_LOOKS))
    real_sleep = time.sleep

    def sleep(seconds: float) -> None:
        assert next(looks, None) is not None, "it waits for a process that is gone"
        real_sleep(seconds)

    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(client, "START_S", float("inf"))
    monkeypatch.setattr(client.time, "sleep", sleep)
    with pytest.raises(DaemonUnreachable, match="no daemon serves"):
        client.DaemonClient(Paths(tmp_path / "state")).start()
