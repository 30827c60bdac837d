"""Runs one program and kills its whole process group when it ends, or when the one who started us is gone.

Started as `python -I -S guard.py PROGRAM…` with the lifeline on descriptor 3: a pipe whose other end only the daemon
holds, so that it closes however the daemon dies. Imports only what the interpreter has built in, to start fast.
"""

import os
import select
import signal
import sys

LIFELINE = 3


def main() -> int:
    child = os.fork()
    return _watch(child) if child else _become_the_program()


def _become_the_program() -> int:
    os.setpgid(0, 0)
    os.close(LIFELINE)
    try:
        os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606
    except OSError as error:
        os.write(2, f"{sys.argv[1]}: {error.strerror}\n".encode())
    os._exit(127)


def _watch(child: int) -> int:
    signal.signal(signal.SIGTERM, lambda *_: _kill(child))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            _kill(child)  # What it left behind in its group.
            return os.waitstatus_to_exitcode(status) & 0xFF
        ready, _, _ = select.select([LIFELINE, ended], [], [])
        if LIFELINE in ready:
            _kill(child)
            os.waitpid(child, 0)
            return 137
        os.read(ended, 4096)


def _kill(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


if __name__ == "__main__":
    sys.exit(main())
