"""Starts the warm CLI server (`holdfast.doors.cli.warm_server`) when a command of a person had to load everything itself."""

import subprocess
import sys
import threading

from holdfast.paths import Paths

MODULE = "holdfast.doors.cli.warm_server"


class CliServer:
    """One at a time. Its standard input is held open here: when this process ends, however it ends, so does the server."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, prefix: str) -> bool:
        """`prefix` is the installation of the one who asks; another installation's commands are not served."""
        with self._lock:
            if prefix != sys.prefix or (self._process is not None and self._process.poll() is None):
                return False
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", MODULE, "--state", str(self._paths.state)],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            # Reaps the process when it ends, so that it leaves no zombie.
            threading.Thread(target=self._process.wait, name="cli-server", daemon=True).start()
            return True

    def stop(self) -> None:
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
