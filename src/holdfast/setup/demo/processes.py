"""The processes of the demo's agents."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from holdfast.setup.demo.dialects import DIALECTS
from holdfast.setup.demo.moments import Cast

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1]
PATIENCE_S = 10.0


class Processes:
    def __init__(self, env: dict[str, str]) -> None:
        self._env = env
        self._running: dict[str, subprocess.Popen[str]] = {}

    def send_hooks(self, cast: Cast, order: dict[str, Any]) -> dict[str, Any]:
        process = self._running.get(cast.id) or self._start(cast)
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        value: dict[str, Any] = json.loads(process.stdout.readline() or "{}")
        return value

    def pid(self, cast: Cast) -> int:
        return self._running[cast.id].pid if cast.id in self._running else 0

    def end_process(self, cast: Cast) -> None:
        if process := self._running.pop(cast.id, None):
            _end_process(process)

    def crash(self, cast: Cast) -> None:
        process = self._running.pop(cast.id)
        process.send_signal(signal.SIGKILL)
        _end_process(process)

    def close(self) -> None:
        for process in self._running.values():
            _end_process(process)
        self._running = {}

    def _start(self, cast: Cast) -> subprocess.Popen[str]:
        # -I and -S: the stand-in for an agent needs only the standard library.
        words = [sys.executable, "-I", "-S", str(HERE / "agent.py"), DIALECTS[cast.agent].program, str(PACKAGE)]
        self._running[cast.id] = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._env, start_new_session=True
        )
        return self._running[cast.id]


def _end_process(process: subprocess.Popen[str]) -> None:
    assert process.stdin and process.stdout
    process.stdin.close()
    process.stdout.close()
    process.wait(PATIENCE_S)
