"""The agents' processes: each session of the day has its own, and a crash is a real one."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from holdfast.demo.dialects import DIALECTS
from holdfast.demo.moments import Cast

HERE = Path(__file__).parent
PACKAGE = HERE.parent
PATIENCE_S = 10.0


class Troupe:
    def __init__(self, env: dict[str, str]) -> None:
        self._env = env
        self._running: dict[str, subprocess.Popen[str]] = {}

    def tell(self, cast: Cast, order: dict[str, Any]) -> dict[str, Any]:
        process = self._running.get(cast.id) or self._start(cast)
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline() or "{}")

    def pid(self, cast: Cast) -> int:
        return self._running[cast.id].pid if cast.id in self._running else 0

    def leave(self, cast: Cast) -> None:
        if process := self._running.pop(cast.id, None):
            _end(process)

    def crash(self, cast: Cast) -> None:
        process = self._running.pop(cast.id)
        process.send_signal(signal.SIGKILL)
        _end(process)

    def close(self) -> None:
        for process in self._running.values():
            _end(process)
        self._running = {}

    def _start(self, cast: Cast) -> subprocess.Popen[str]:
        words = [sys.executable, "-I", "-S", str(HERE / "agent.py"), DIALECTS[cast.agent].program, str(PACKAGE)]
        self._running[cast.id] = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._env, start_new_session=True
        )
        return self._running[cast.id]


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin and process.stdout
    process.stdin.close()
    process.stdout.close()
    process.wait(PATIENCE_S)
