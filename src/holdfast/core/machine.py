"""Identifies machine, boot and process by the kernel, and holds the one daemon lease of a state folder."""

import contextlib
import ctypes
import fcntl
import functools
import gc
import os
import secrets
import socket
from pathlib import Path

import msgspec

# A process is identified by pid, start time and boot (C5, D6).


def collect_garbage_rarely() -> None:
    """For long-running processes: what is loaded now never dies, and scanning it repeatedly is wasted."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def release_unused_memory() -> None:
    """Return free heap pages to the system, where the C library can (glibc)."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


class Process(msgspec.Struct, frozen=True):
    """`start` is in the kernel's ticks since boot, or in ms where there is no /proc."""

    pid: int
    start: int
    parent: int
    name: str
    session: int = 0
    """The leader of its session; a terminal belongs to one session."""
    terminal: int = 0
    """Its controlling terminal; 0 if it has none."""


def look_up_process(pid: int) -> Process | None:
    """None if it is gone. A zombie is gone too, because pid 1 may never reap it."""
    if pid <= 0:
        return None
    return _look_in_proc(pid) if _has_proc() else _look_with_psutil(pid)


def _look_in_proc(pid: int) -> Process | None:
    try:
        text = _read_stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name may contain spaces and parentheses, so split at the last one.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split(None, 20)
    # Z is a zombie, X is dead.
    if len(fields) < 20 or fields[0] in "ZX":
        return None
    # Counted from the state: 19 is the start, 1 the parent, 3 the session, 4 the terminal.
    return Process(pid, int(fields[19]), int(fields[1]), name, int(fields[3]), int(fields[4]))


def _read_stat(pid: int) -> str:
    """Read without file objects: this happens before every hook is answered."""
    fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096).decode("utf-8", "replace")
    finally:
        os.close(fd)


def _look_with_psutil(pid: int) -> Process | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        session, terminal = os.getsid(pid), 1 if process.terminal() else 0
        return Process(pid, int(process.create_time() * 1000), process.ppid(), process.name(), session, terminal)
    except psutil.NoSuchProcess:
        return None
    except psutil.Error as error:
        raise OSError(str(error)) from error


def command_line(pid: int) -> list[str]:
    """Empty if it is gone or unreadable."""
    if _has_proc():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
        except OSError:
            return []
    import psutil

    try:
        return list(psutil.Process(pid).cmdline())
    except psutil.Error:
        return []


def process_folder(pid: int) -> str:
    """Its working directory; empty if it is gone or unreadable."""
    if _has_proc():
        try:
            return str(Path(f"/proc/{pid}/cwd").readlink())
        except OSError:
            return ""
    import psutil

    try:
        return str(psutil.Process(pid).cwd())
    except (psutil.Error, OSError):
        return ""


def pids_marked(variable: str, mark: str) -> list[int]:
    """Find this user's processes whose environment has `mark` in that variable, i.e. all descendants of a program."""
    return [pid for pid in all_pids() if mark in environment_of(pid).get(variable, "").split() and look_up_process(pid)]


def all_pids() -> list[int]:
    if _has_proc():
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - names only
    import psutil

    return list(psutil.pids())


def environment_of(pid: int) -> dict[str, str]:
    """The environment at the start of the process; empty if it is gone or belongs to another user."""
    if _has_proc():
        try:
            entries = os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes()).split("\0")
        except OSError:
            return {}
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)
    import psutil

    try:
        return dict(psutil.Process(pid).environ())
    except (psutil.Error, OSError):
        return {}


def process_start_ms(pid: int) -> int:
    """When it started, in ms since 1970; 0 if it is gone."""
    import psutil

    try:
        return int(psutil.Process(pid).create_time() * 1000)
    except (psutil.Error, ValueError):
        return 0


@functools.cache
def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")  # noqa: PTH110 - asked once


@functools.cache
def boot_id() -> str:
    """Start times count from boot; after a reboot the same numbers may be another process."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


@functools.cache
def local_host_name() -> str:
    return socket.gethostname()


class _Identity:
    """The machine's random id, kept in the state folder. Host names are shared by containers and change with networks."""

    value = ""


def use_state_folder(folder: Path) -> None:
    """Set where the machine's id is kept; it is created if missing."""
    _Identity.value = _read_or_make(folder / "machine-id")


def machine_id() -> str:
    """The machine's id; the host name if no state folder was set, as in unit tests."""
    return _Identity.value or local_host_name()


def wake_pipe() -> tuple[int, int]:
    """The two ends of a pipe that wakes a thread which waits for descriptors; neither blocks."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def is_here(machine: str, host_name: str) -> bool:
    """Return whether it is this machine. Old records name only the host."""
    return machine == machine_id() if machine else host_name == local_host_name()


def _read_or_make(path: Path) -> str:
    known_id = _read_id(path)
    if not known_id:
        with contextlib.suppress(OSError):  # A folder that cannot be written: then there is no id.
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _put_whole(path, secrets.token_hex(16))
            known_id = _read_id(path)
    return known_id


def _read_id(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _put_whole(path: Path, text: str) -> None:
    """Create the file atomically: of two processes starting together, one wins and the other never sees half a file."""
    own = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        try:
            os.link(own, path)
        except OSError:
            # An empty file of a process that died, or a file system without hard links.
            if not _read_id(path):
                own.replace(path)
    finally:
        own.unlink(missing_ok=True)


# At most one daemon per state directory (P6): a flock held for life, never a pid file's age.


class Lease:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def acquire(self) -> bool:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        # For people only. The lock decides, and it ends with the process.
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        return True

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def lease_holder(path: Path) -> int:
    """The pid of the daemon that holds the lease, or 0. The lock decides; the pid is informative."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return 0
    try:
        # A shared lock is refused only while a daemon holds its exclusive one.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return 0
    except BlockingIOError:
        text = os.pread(fd, 32, 0).strip()
        # -1: the holder has not written its pid yet.
        return int(text) if text.isdigit() else -1
    finally:
        os.close(fd)
