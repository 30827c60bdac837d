"""The client of the daemon: one JSON request over its control socket, JSON lines back."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast import __version__
from holdfast.core.caller import SESSION_VARIABLES, judge_caller
from holdfast.core.errors import CommandRefused, DaemonUnreachable, HoldfastError
from holdfast.core.machine import lease_holder
from holdfast.paths import Paths, default_state_dir

# In seconds. A busy machine loads the daemon slowly; one that exited is not waited for.
START_S = 60.0
STOP_S = 15.0
LARGEST_ANSWER = 64 << 20
LONGEST_ADDRESS = 100
"""A socket address has at most 108 bytes; a path may be longer."""


class Refused(HoldfastError):
    """The daemon refused"""

    @property
    def message(self) -> str:
        return self.detail


_borrowed: Callable[[float | None], socket.socket | None] | None = None


CODE_VARIABLE = "HOLDFAST_CODE"
"""A one-time code of the dashboard, for a person without a terminal."""
NO_START = "HOLDFAST_NO_START"
"""Set in a process that must not start a daemon, such as the warm CLI server."""


def borrow_connections(connection: Callable[[float | None], socket.socket | None]) -> None:
    """The warm CLI server uses connections of the process a person started, because the daemon judges callers by their
    process."""
    global _borrowed
    _borrowed = connection


class DaemonClient:
    """Thread-safe: every request has its own connection. `timeout` applies to each read; None waits for ever."""

    def __init__(self, paths: Paths, timeout: float | None = None) -> None:
        self.paths, self._timeout = paths, timeout

    def ask(self, op: str, *, start: bool = True, **request: Any) -> Any:
        # Closed at once, because the generator holds the connection.
        with contextlib.closing(self.stream(op, start=start, **request)) as lines:
            return next(line["done"] for line in lines if "done" in line)

    def stream(self, op: str, *, start: bool = True, **request: Any) -> Generator[dict[str, Any], None, None]:
        """Yield the answer line by line, e.g. the progress of a long request."""
        with contextlib.closing(self._connected(start)) as sock:
            try:
                sock.sendall(msgspec.json.encode({"op": op, **request}) + b"\n")
                with sock.makefile("rb") as answers:
                    for text in iter(lambda: answers.readline(LARGEST_ANSWER), b""):
                        line = msgspec.json.decode(text)
                        if "error" in line:
                            raise Refused(line["error"])
                        yield line
                        if "done" in line:
                            return
            except (OSError, msgspec.DecodeError) as error:
                raise DaemonUnreachable(str(error), fix="See: holdfast daemon logs") from error
        raise DaemonUnreachable("it closed the connection", fix="See: holdfast daemon logs")

    def running(self) -> int:
        """The daemon's pid, or 0."""
        return lease_holder(self.paths.lease)

    def start(self) -> int:
        """Start a daemon if none serves, wait until it does, and return its pid."""
        paths = self.paths.prepare()
        started = None
        if not lease_holder(paths.lease):
            # Left by an earlier start; from now on it can only be about this one.
            paths.failed.unlink(missing_ok=True)
            started = subprocess.Popen(
                # -P: a `holdfast` folder in the current repository must not be imported (P9).
                [sys.executable, "-P", "-m", "holdfast.daemon", "--state", str(paths.state)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if (sock := self._connect()) is not None:
                sock.close()
                return lease_holder(paths.lease)
            # The daemon wrote why it cannot serve; waiting longer is useless.
            if paths.failed.exists():
                break
            # Another process may have been faster and hold the lease.
            if started is not None and started.poll() is not None and not lease_holder(paths.lease):
                break
            time.sleep(0.02)
        raise DaemonUnreachable(self._reason(), fix="Try: holdfast doctor")

    def stop(self, reason: str = "asked to") -> int:
        """Stop the daemon, wait until the lease is free, and return its pid, or 0 if none was running."""
        pid = self.running()
        if not pid:
            return 0
        list(self.stream("stop", start=False, reason=reason, version=__version__, **_caller_fields()))
        deadline = time.monotonic() + STOP_S
        while self.running() and time.monotonic() < deadline:
            time.sleep(0.02)
        return pid

    def _connected(self, start: bool) -> socket.socket:
        sock = self._connect()
        if sock is None and start and NO_START not in os.environ:
            self.start()
            sock = self._connect()
        if sock is None:
            raise DaemonUnreachable(self._reason(), fix="Try: holdfast doctor")
        return sock

    def _connect(self) -> socket.socket | None:
        # Only for the state folder of the person's own process.
        if _borrowed is not None and self.paths == state_paths():
            return _borrowed(self._timeout)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(self._timeout)
        try:
            connect_socket(sock, self.paths.control_socket)
        except OSError:
            sock.close()
            return None
        return sock

    def _reason(self) -> str:
        failed = self.paths.failed
        return failed.read_text().strip() if failed.exists() else f"no daemon serves {self.paths.state}"


def connect_socket(sock: socket.socket, path: Path) -> None:
    """Connect; if the path is too long for a socket address, its folder is named by a file descriptor."""
    if len(os.fsencode(str(path))) < LONGEST_ADDRESS:
        sock.connect(str(path))
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if Path("/proc/self/fd").is_dir():
            sock.connect(f"/proc/self/fd/{folder}/{path.name}")
        else:
            _connect_from(folder, sock, path.name)
    finally:
        os.close(folder)


def _connect_from(folder: int, sock: socket.socket, name: str) -> None:
    """Without /proc (macOS): connect from inside the folder, changing the working directory briefly."""
    before = os.open(".", os.O_RDONLY)
    try:
        os.fchdir(folder)
        sock.connect(name)
    finally:
        os.fchdir(before)
        os.close(before)


# ── for programs that a person or an agent started ───────────────────────────────────────────────────────────────────


def state_paths() -> Paths:
    return Paths(default_state_dir().absolute())


def current_session() -> str:
    """The agent's shell names its session (H4); nothing is guessed."""
    return next((os.environ[name] for name in SESSION_VARIABLES if os.environ.get(name)), "")


def current_project() -> str:
    from holdfast.core.git_context import locate

    cwd = str(Path.cwd())
    return os.environ.get("HOLDFAST_PROJECT") or locate(cwd).get("root", cwd)


_look: Callable[[str, Mapping[str, Any]], tuple[Any] | None] | None = None


def answer_views_by(look: Callable[[str, Mapping[str, Any]], tuple[Any] | None]) -> None:
    """Ask `look` first; it answers while no daemon runs, so that looking starts none."""
    global _look
    _look = look


def ask_view(name: str, **args: Any) -> Any:
    if _look is not None and not running_pid() and (answer := _look(name, args)):
        return answer[0]
    return ask_daemon("view", name=name, args=args)


def run_command(name: str, **args: Any) -> Any:
    return ask_daemon("command", name=name, args=args)


def ask_daemon(op: str, *, start: bool = True, **request: Any) -> Any:
    return DaemonClient(state_paths()).ask(op, start=start, **(_caller_fields() | request))


def stream_replies(op: str, *, start: bool = True, **request: Any) -> Iterator[dict[str, Any]]:
    return DaemonClient(state_paths()).stream(op, start=start, **(_caller_fields() | request))


def authorise(act: str, words: str = "") -> None:
    """Refuse an agent an act of `OWN_PROCESS`, judged by this process's ancestors if no daemon runs."""
    # Imported here, because most commands don't need it.
    from holdfast.core.authority import OWN_PROCESS, Who

    declared = OWN_PROCESS[act]
    state = state_paths().state
    if declared.who is Who.OWNER and state.exists() and state.stat().st_uid != os.geteuid():
        raise CommandRefused(f"{state} belongs to another user")
    try:
        ask_daemon("authorise", act=act, words=words)
    except DaemonUnreachable:
        # The ancestors of the warm server are not the caller's.
        if _borrowed is not None:
            raise
        who = judge_caller(os.getpid())
        if who.is_agent:
            how = "Run it in a terminal of your own."
            raise CommandRefused(f"{words or declared.act} is a person's to do: {who.why}", fix=how) from None


def running_pid() -> int:
    return DaemonClient(state_paths()).running()


def start_daemon() -> int:
    return DaemonClient(state_paths()).start()


def stop_daemon(reason: str = "asked to") -> int:
    return DaemonClient(state_paths()).stop(reason)


def version_difference(answer: dict[str, Any] | None = None, asking: str = "this command") -> str:
    """Return a notice if the running daemon has another version (`answer`: its status, if known)."""
    try:
        status = ask_daemon("status", start=False) if answer is None else answer
    except HoldfastError:
        return ""
    running = status.get("version") or "another version"
    return "" if running == __version__ else f"The running daemon is Holdfast {running}, {asking} is {__version__}"


def _caller_fields() -> dict[str, str]:
    fields = {"session": current_session(), "project": current_project()}
    return fields | ({"code": code} if (code := os.environ.get(CODE_VARIABLE)) else {})
