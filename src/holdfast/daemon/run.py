"""Starts a daemon: lease, store and sockets, in the order that answers the first hook soonest."""

import contextlib
import gc
import os
import signal
import sys
import time
from pathlib import Path

from holdfast.core.errors import HoldfastError
from holdfast.core.machine import Lease, collect_garbage_rarely
from holdfast.daemon.failures import record_failure
from holdfast.daemon.ingest.log import Log
from holdfast.paths import (
    WIPE_MARK,
    Paths,
    default_state_dir,
    use_folders_for_life,
)


def main(argv: list[str] | None = None) -> None:
    words = sys.argv[1:] if argv is None else argv
    state = Path(words[words.index("--state") + 1]) if "--state" in words[:-1] else default_state_dir()
    sys.exit(run_daemon(Paths(state.absolute()), foreground="--foreground" in words))


def run_daemon(paths: Paths, *, foreground: bool = False) -> int:
    """Return 0 if it served or another daemon does; 1 if it could not start (the reason is in run/failed)."""
    gc.disable()  # Nothing that is loaded now is garbage: looking for it would take a tenth of the start.
    try:
        paths.prepare()
        lease = Lease(paths.lease)
        if not lease.acquire():
            _close_start_lock()
            return 0
        use_folders_for_life(paths.state)
        # Under the lease: no other daemon opens what is being removed.
        _finish_wipe(paths)
        log = Log(paths.log_file, echo=foreground)
        return _serve_daemon(paths, lease, log)
    except (HoldfastError, OSError) as error:
        record_failure(paths, error)
        if foreground:
            print(f"holdfast: {error}", file=sys.stderr)
        return 1


def _serve_daemon(paths: Paths, lease: Lease, log: Log) -> int:
    from holdfast.daemon.service import Daemon

    # A daemon in the folder it was started from would keep that file system from being unmounted.
    os.chdir(paths.state)
    began = time.monotonic()
    try:
        daemon = Daemon(paths, log)
    except Exception as error:
        log.error("daemon.cannot-start", error)
        record_failure(paths, error)
        return 1
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, _frame: daemon.stop(signal.Signals(number).name))
    # The terminal that started it may be closed.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Hooks that hold back after an earlier failure may connect at once.
    paths.failed.unlink(missing_ok=True)
    _tune_interpreter()
    log("daemon.serving", pid=os.getpid(), ms=round((time.monotonic() - began) * 1000))
    # Not before the socket listens: the client waiting for the lock connects right afterwards.
    _close_start_lock()
    daemon.serve()
    lease.release()
    return 0


def _finish_wipe(paths: Paths) -> None:
    """Finish an interrupted `erase --everything` before anything else."""
    if not (paths.run / WIPE_MARK).exists():
        return
    from holdfast.app import database_path, open_settings
    from holdfast.daemon.wipe import finish_wipe

    finish_wipe(paths, database_path(paths, open_settings()))
    paths.prepare()


def _tune_interpreter() -> None:
    """Other threads must yield quickly when a hook arrives, and start-up objects never die."""
    # In seconds; Python's default of 0.005 is longer than a hook should take.
    sys.setswitchinterval(0.0005)
    # A collection stops the hook thread as well.
    collect_garbage_rarely()
    gc.enable()


def _close_start_lock() -> None:
    """The client that started us holds `run/start.lock`; releasing it means that a daemon serves."""
    fd = os.environ.pop("HOLDFAST_START_FD", "")
    if fd.isdigit():
        with contextlib.suppress(OSError):
            os.close(int(fd))
