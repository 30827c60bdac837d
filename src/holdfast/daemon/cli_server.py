"""Starts the warm CLI server (`holdfast.doors.cli.warm_server`) after a command had to load everything itself."""

import subprocess
import sys
import threading

from holdfast.paths import Paths

MODULE = "holdfast.doors.cli.warm_server"


class CliServer:
    """One server at a time. Its standard input is held open here, so it ends with this process."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, prefix: str) -> bool:
        """`prefix` is the caller's installation; commands of other installations are not served."""
        with self._lock:
            if prefix != sys.prefix or (self._process is not None and self._process.poll() is None):
                return False
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", MODULE, "--state", str(self._paths.state)],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            # Reaps the process when it ends.
            threading.Thread(target=self._process.wait, name="cli-server", daemon=True).start()
            return True

    def stop(self) -> None:
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
