"""Processes that outlive an agent's tool call, told from a person's, with real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.core.left_behind import LeftBehind

WAIT = "import time; print('here', flush=True); time.sleep(60)"
Start = Callable[..., int]


@pytest.fixture
def detached(tmp_path: Path) -> Iterator[Start]:
    """Starts a process in a session of its own whose starter is gone; it is ended with the test."""
    started: list[int] = []

    def start(**variables: str) -> int:
        # The starter tells the number and ends: nothing above the process is ours any more.
        code = (
            f"import subprocess, sys\np = subprocess.Popen([sys.executable, '-c', {WAIT!r}], stdout=subprocess.PIPE,"
            " stderr=subprocess.DEVNULL, start_new_session=True)\np.stdout.readline()\nprint(p.pid)"
        )
        environment = {"HOME": os.path.expanduser("~"), "PATH": os.environ["PATH"], **variables}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        started.append(int(done.stdout))
        return started[-1]

    yield start
    for pid in started:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="told by /proc")


def test_what_an_agent_left_behind_was_running_until_it_is_seen_to_be_gone(detached: Start) -> None:
    left = LeftBehind()
    left.look(1_000)
    pid = detached(CLAUDECODE="1")
    left.look(2_000)
    assert f"process {pid}" in left.name_running_at(2_500, 3_000)
    assert not left.name_running_at(1_500, 3_000), "it was not there yet"
    os.kill(pid, signal.SIGKILL)
    _wait_until_gone(pid)
    assert left.name_running_at(3_500, 4_000), "it may have ended right after it wrote"
    assert not left.name_running_at(4_500, 5_000)


def test_a_persons_process_and_one_of_another_home_are_not_an_agents(detached: Start, tmp_path: Path) -> None:
    left = LeftBehind()
    left.look(1_000)
    detached()
    detached(CLAUDECODE="1", HOME=str(tmp_path))
    left.look(2_000)
    assert not left.name_running_at(2_500, 3_000)


def _wait_until_gone(pid: int) -> None:
    for _ in range(500):
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} does not end")
