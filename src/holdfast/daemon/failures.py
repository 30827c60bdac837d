"""Records failed starts of the daemon for hooks and people."""

import contextlib

from holdfast.core.errors import HoldfastError
from holdfast.core.times import now_ms
from holdfast.paths import Paths, private_folder, write_atomically


def record_failure(paths: Paths, error: Exception) -> None:
    """Hooks read the age of this file and wait before retrying; `doctor` and `status` read its text."""
    with contextlib.suppress(OSError, HoldfastError):
        private_folder(paths.run)
        write_atomically(paths.failed, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        if not paths.failing_since.exists():
            write_atomically(paths.failing_since, f"{now_ms()}\n".encode())


def forget_failures(paths: Paths) -> int:
    """Return the time of the first failure in ms; 0 if there was none."""
    since = failing_since(paths)
    paths.failing_since.unlink(missing_ok=True)
    return since


def failing_since(paths: Paths) -> int:
    try:
        return int(paths.failing_since.lstat().st_mtime * 1000)
    except OSError:
        return 0
