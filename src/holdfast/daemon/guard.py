"""Runs one program and kills its process group when the program or the daemon ends."""

# Started as `python -I -S guard.py PROGRAM…` with the lifeline on descriptor 3, a pipe whose other end only the daemon
# holds. Imports only modules compiled into the interpreter: `os` and `signal` would double its start time.

import _signal as signal  # type: ignore[import-not-found]
import posix as os
import select
import sys

LIFELINE = 3


def main() -> int:
    child = os.fork()
    return _watch_child(child) if child else _become_the_program()


def _become_the_program() -> int:
    # A process group of its own, so that everything it starts can be killed together.
    os.setpgid(0, 0)
    os.close(LIFELINE)
    problem: OSError | None = None
    for program in _program_paths(sys.argv[1]):
        try:
            os.execv(program, sys.argv[1:])
        except OSError as error:
            # As in a shell, report "permission denied" rather than the "not found" of a later folder.
            problem = error if problem is None or not isinstance(error, FileNotFoundError) else problem
    os.write(2, f"{sys.argv[1]}: {problem.strerror if problem else 'not found'}\n".encode())
    # 127 is a shell's exit status for a missing program.
    os._exit(127)


def _program_paths(program: str) -> list[str]:
    """Where a program of that name may be, as the shell would search."""
    if "/" in program:
        return [program]
    path = os.environ.get(b"PATH", b"/usr/local/bin:/usr/bin:/bin").decode("utf-8", "surrogateescape")
    return [f"{folder or '.'}/{program}" for folder in path.split(":")]


def _watch_child(child: int) -> int:
    signal.signal(signal.SIGTERM, lambda *_: _kill_group(child))
    # Without a handler Python does not write to the wake-up descriptor.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    while True:
        # Checked before waiting: the program may have ended before the handler was installed.
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            _kill_group(child)  # What it left behind in its group.
            # Negative for a signal; an exit status has only eight bits.
            return os.waitstatus_to_exitcode(status) & 0xFF
        ready, _, _ = select.select([LIFELINE, ended], [], [])
        if LIFELINE in ready:
            _kill_group(child)
            os.waitpid(child, 0)
            return 137
        os.read(ended, 4096)


def _kill_group(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


if __name__ == "__main__":
    sys.exit(main())
