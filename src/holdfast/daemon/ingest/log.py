"""The daemon's log: one JSON object per line, rotated by size."""

import os
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.analysis.redact import redact

# Rotated files besides the current one.
KEEP = 3


class Log:
    def __init__(self, path: Path, *, echo: bool = False) -> None:
        self._path, self._echo = path, echo
        # Set from `daemon.log_mb` once the settings are read.
        self.max_bytes = 10 << 20
        self._lock = threading.Lock()
        self._fd = self._open()

    def __call__(self, event: str, **fields: Any) -> None:
        # An error may quote its input.
        line, _ = redact(_encode_log_line({"at": _utc_timestamp(), "event": event, **fields}))
        with self._lock:
            try:
                if os.fstat(self._fd).st_size + len(line) > self.max_bytes:
                    self._rotate()
                os.write(self._fd, line)
            except OSError:
                pass  # A full disk must not take the daemon with it; the store says so by itself.
        if self._echo:
            # Outside the lock: a slow terminal must not block other threads.
            os.write(2, line)

    def error(self, event: str, error: BaseException, **fields: Any) -> None:
        where = traceback.extract_tb(error.__traceback__)
        location = f"{where[-1].filename}:{where[-1].lineno}" if where else ""
        self(event, error=f"{type(error).__name__}: {error}", where=location, **fields)

    def rewrite(self, change: Callable[[Path], bool]) -> int:
        """Let `change` rewrite each file; return how many changed."""
        with self._lock:
            paths = [self._path, *(Path(f"{self._path}.{n}") for n in range(1, KEEP + 1))]
            changed = sum(change(path) for path in paths if path.exists())
            # `change` may have replaced the file, and the descriptor would still write to the old one.
            os.close(self._fd)
            self._fd = self._open()
        return changed

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self._path, flags, 0o600)

    def _rotate(self) -> None:
        os.close(self._fd)
        # From the oldest on, so that no file is replaced before it was moved.
        for n in range(KEEP - 1, 0, -1):
            older = Path(f"{self._path}.{n}")
            if older.exists():
                older.replace(f"{self._path}.{n + 1}")
        self._path.replace(f"{self._path}.1")
        self._fd = self._open()


def _encode_log_line(fields: dict[str, Any]) -> bytes:
    """Never fails: a line that cannot be written must not stop the daemon."""
    try:
        return msgspec.json.encode(fields, enc_hook=str) + b"\n"
    except Exception:
        plain = {name: ascii(value) for name, value in fields.items()}
        return msgspec.json.encode(plain) + b"\n"


def _utc_timestamp() -> str:
    t = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(t)) + f".{int(t * 1000) % 1000:03d}Z"
