"""Processes that read files for an index run end with it (P6)."""

import os
import signal
import subprocess
import sys

from tests.kit import alive, wait_until

# Says which processes work for it, and then waits for one that never ends.
_RUN = """
import os, threading, time
from holdfast.analysis.search.index.process_map import process_map

def pid_of_worker(_):
    time.sleep(0.2)
    return os.getpid()

if __name__ == "__main__":
    with process_map(True) as map_files:
        print(*set(map_files(pid_of_worker, range(8))), flush=True)
        threading.Event().wait()
"""


def test_workers_end_with_a_run_that_is_killed_alone(tmp_path) -> None:
    script = tmp_path / "run.py"
    script.write_text(_RUN)
    run = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert run.stdout
    workers = [int(word) for word in run.stdout.readline().split()]
    try:
        assert workers and all(map(alive, workers))
        run.kill()
        run.wait()
        wait_until(lambda: not any(map(alive, workers)), "the workers are gone")
    finally:
        for pid in filter(alive, workers):
            os.kill(pid, signal.SIGKILL)
        run.kill()
        run.wait()
