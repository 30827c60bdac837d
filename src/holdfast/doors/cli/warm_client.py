"""The light half of the command line: hands a command to the warm CLI server.

Loading the whole command line takes several times longer than most answers, so the daemon keeps one process with
everything loaded (`holdfast.doors.cli.warm_server`). This module sends it the arguments, environment, folder and
standard streams, and returns the exit code. Without such a server it returns None at once, and the caller loads the
command line itself. Only built-in modules are imported, because every import costs milliseconds.

The daemon judges callers by the process that connected, so the server never connects itself: this process connects
and passes it the open socket.
"""

import _socket
import os
import sys
from binascii import crc32

from holdfast import __version__

MAGIC = b"HFC1"
STARTED, CONNECT, EXITED = b"P", b"C", b"X"
MESSAGE = 5
"""Each message of the server: one letter and a four-byte number."""
# A socket address has 108 bytes on Linux and 104 on macOS.
LONGEST_ADDRESS = 100
SERVED = frozenset(
    ("who", "status", "session", "sessions", "gate", "task", "search", "cost", "event", "events", "state", "memory",
     "price", "prices", "check", "checks", "history")
)  # fmt: skip
"""Commands that only ask the daemon. All others run in the process a person started."""
spent: list[int] = []
"""CPU milliseconds on the server's side, for the benchmark."""
COMPLETE = "_HOLDFAST_COMPLETE"
OFF = "HOLDFAST_CLI_SERVER"
SIGINT, INTERRUPTED = 2, 130
"""As everywhere in POSIX; importing `signal` costs a tenth of the whole command."""


def is_served_warm(arguments: list[str]) -> bool:
    if os.environ.get(OFF) == "0" or not os.environ.get("HOME"):
        return False
    return COMPLETE in os.environ or (bool(arguments) and arguments[0] in SERVED)


def server_name() -> str:
    """One server per installation and version: another one's code must not answer."""
    return f"cli-{crc32(f'{sys.prefix} {__version__}'.encode()):08x}.sock"


def state_folder() -> str:
    """The rule of `holdfast.paths.default_state_dir`, without its imports; a test compares them."""
    if state := os.environ.get("HOLDFAST_STATE"):
        return os.path.abspath(state)
    if xdg := os.environ.get("XDG_STATE_HOME"):
        return os.path.abspath(os.path.join(xdg, "holdfast"))
    return os.path.join(os.path.expanduser("~"), ".local", "state", "holdfast")


def run_warm(arguments: list[str]) -> int | None:
    """Return the exit code, or None if nobody accepted the command."""
    run = os.path.join(state_folder(), "run")
    control, address = os.path.join(run, "control.sock"), os.path.join(run, server_name())
    if len(os.fsencode(address)) >= LONGEST_ADDRESS:
        return None
    lifeline, ours = -1, -1
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        channel.connect(address)
        lifeline, ours = os.pipe()
        _send_command(channel, arguments, (0, 1, 2, lifeline))
        pid = _receive_number(channel, STARTED)
    except (OSError, ValueError):
        return None
    finally:
        if lifeline >= 0:
            os.close(lifeline)
    try:
        return _follow_command(channel, pid, control)
    finally:
        os.close(ours)


def _send_command(channel: _socket.socket, arguments: list[str], streams: tuple[int, ...]) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    # The only way to read the umask is to set it.
    umask = os.umask(0o077)
    os.umask(umask)
    fields = [os.fsencode(os.getcwd()), encoding.encode(), b"%d" % umask, b"%d" % len(arguments)]
    fields += [os.fsencode(word) for word in arguments]
    fields += [name + b"=" + value for name, value in os.environb.items()]
    body = b"\0".join(fields)
    head = MAGIC + len(body).to_bytes(4, "little")
    rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in streams)
    # The descriptors are sent with the head; the body may exceed one message.
    channel.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    channel.sendall(body)


def _follow_command(channel: _socket.socket, pid: int, control: str) -> int:
    """Connect to the daemon for the command as often as it asks, until it ends."""
    interrupted = False
    while True:
        try:
            message = channel.recv(MESSAGE, _socket.MSG_WAITALL)
        except KeyboardInterrupt:
            interrupted = True
            try:
                # The key press may have reached only this process: forward it.
                os.kill(pid, SIGINT)
            except ProcessLookupError:
                return INTERRUPTED  # The same key press has ended it already.
            continue
        if len(message) < MESSAGE:
            if interrupted:
                return INTERRUPTED
            sys.stderr.write("holdfast: the command ended unexpectedly. See: holdfast daemon logs\n")
            return 1
        if message[:1] == EXITED:
            spent.append(int.from_bytes(message[2:], "little"))
            return message[1]
        _lend_connection(channel, control)


def _lend_connection(channel: _socket.socket, control: str) -> None:
    daemon = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        daemon.connect(control)
    except OSError:
        channel.sendall(b"n")
        return
    rights = daemon.fileno().to_bytes(4, sys.byteorder)
    # The command gets the open socket: the daemon still sees this process as the one that connected.
    channel.sendmsg([b"c"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    daemon.close()


def _receive_number(channel: _socket.socket, letter: bytes) -> int:
    message = channel.recv(MESSAGE, _socket.MSG_WAITALL)
    if len(message) < MESSAGE or message[:1] != letter:
        raise ValueError("no server")
    return int.from_bytes(message[1:], "little")
