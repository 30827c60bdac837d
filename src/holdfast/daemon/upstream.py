"""Starts the forwarder (`holdfast_team.forwarder`) of a machine in a team, and restarts it after a crash."""

import subprocess
import sys
import threading
import time

from holdfast.core.caller import OWN_CODE_ONLY
from holdfast.paths import Paths

MODULE = "holdfast_team.forwarder"
# Seconds between two starts, so that a failing forwarder does not occupy the processor.
BETWEEN_STARTS_S = 5.0


class UpstreamProcess:
    """One forwarder at a time. Its standard input is held open here, so it ends with this process."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0

    def check(self, *, at_once: bool = False) -> bool:
        """Run it exactly while there is a membership; return whether it runs."""
        with self._lock:
            running = self._process is not None and self._process.poll() is None
            if not (self._paths.state / "team" / "membership.json").exists():
                self._end()
                return False
            if not running and (at_once or time.monotonic() - self._started > BETWEEN_STARTS_S):
                self._start()
            return self._process is not None and self._process.poll() is None

    def _start(self) -> None:
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, OWN_CODE_ONLY, "-m", MODULE, "--state", str(self._paths.state)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _end(self) -> None:
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            # A separate thread reaps it, and the caller does not wait.
            threading.Thread(target=self._process.wait, name="forwarder-end", daemon=True).start()
            self._process = None

    def stop(self) -> None:
        with self._lock:
            self._end()
