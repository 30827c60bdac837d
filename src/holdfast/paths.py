"""Every path Holdfast uses: 0700/0600, owned by the user, never through symlinks (P8)."""

import contextlib
import fcntl
import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from holdfast.core.errors import UnsafePath


class _ProcessFolders:
    """Folders of a process that serves one state folder for life; None if the environment decides each time."""

    state: Path | None = None
    config: Path | None = None


def use_folders_for_life(state: Path) -> None:
    """For the daemon, which needs its folders at every event: those from its start count until it ends."""
    _ProcessFolders.config = default_config_dir()
    _ProcessFolders.state = state


def default_state_dir() -> Path:
    """The same rule as in the hook clients (docs/protocol.md)."""
    if _ProcessFolders.state is not None:
        return _ProcessFolders.state
    environ = os.environ
    return _state_dir(environ.get("HOLDFAST_STATE"), environ.get("XDG_STATE_HOME"), environ.get("HOME"))


@lru_cache(8)
def _state_dir(state: str | None, xdg: str | None, _home: str | None) -> Path:
    """Cached, because every hook needs the path."""
    # `_home` is only part of the cache key, because `Path.home()` depends on it.
    if state:
        return Path(state)
    if xdg:
        return Path(xdg) / "holdfast"
    return Path.home() / ".local" / "state" / "holdfast"


def default_config_dir() -> Path:
    if _ProcessFolders.config is not None:
        return _ProcessFolders.config
    environ = os.environ
    return _config_dir(environ.get("HOLDFAST_CONFIG"), environ.get("XDG_CONFIG_HOME"), environ.get("HOME"))


@lru_cache(8)
def _config_dir(config: str | None, xdg: str | None, _home: str | None) -> Path:
    if config:
        return Path(config)
    return Path(xdg or Path.home() / ".config") / "holdfast"


INTENT_SUFFIX = ".erase"
"""Files in `run/` that name what is being erased, until it is."""
WIPE_MARK = "erase-everything"
"""In `run/` while everything is being erased."""
# `.NAME.partial`, with the process and thread number where known.
_PARTIAL = re.compile(r"^\..*?(?:\.(\d+))?\.partial(?:-(\d+))?(?:-(?:journal|wal|shm))?$")


@dataclass(frozen=True)
class Paths:
    state: Path

    @property
    def run(self) -> Path:
        return self.state / "run"

    @property
    def spool(self) -> Path:
        return self.state / "spool"

    @property
    def journal(self) -> Path:
        return self.state / "journal"

    @property
    def ledger(self) -> Path:
        """The keys of the latest acknowledged deliveries."""
        return self.state / "acknowledged"

    @property
    def backups(self) -> Path:
        return self.state / "backups"

    @property
    def derived(self) -> Path:
        """Files that can be rebuilt from the log; removed on erasure."""
        return self.state / "derived"

    @property
    def restores(self) -> Path:
        """Append-only list of all restores, which no restore reverts."""
        return self.state / "restores"

    @property
    def heads(self) -> Path:
        """Ends of the log as noted over time; `verify` looks for them in the hash chain."""
        return self.state / "heads"

    @property
    def quarantine(self) -> Path:
        return self.state / "quarantine"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def database(self) -> Path:
        return self.state / "holdfast.db"

    @property
    def log_file(self) -> Path:
        return self.logs / "daemon.log"

    @property
    def lease(self) -> Path:
        return self.run / "daemon.lock"

    @property
    def start_lock(self) -> Path:
        return self.run / "start.lock"

    @property
    def failed(self) -> Path:
        return self.run / "failed"

    @property
    def failing_since(self) -> Path:
        """Its mtime is the first failed start; removed after a successful one."""
        return self.run / "failing"

    @property
    def hook_socket(self) -> Path:
        return self.run / "hook.sock"

    @property
    def control_socket(self) -> Path:
        return self.run / "control.sock"

    def run_identity(self) -> tuple[int, int]:
        """Identifies the `run/` folder; (0, 0) if there is none. A daemon ends when its folder is replaced."""
        try:
            folder_stat = self.run.lstat()
        except OSError:
            return 0, 0
        return folder_stat.st_dev, folder_stat.st_ino

    def prepare(self) -> "Paths":
        for folder in (self.state, self.run, self.spool, self.backups, self.logs, self.derived):
            private_folder(folder)
        return self


def private_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError as error:
        raise UnsafePath(f"{folder} is not a plain folder", fix="Move it away and try again.") from error
    except OSError as error:
        raise UnsafePath(
            f"{folder} cannot be created ({error.strerror})", fix="Set HOLDFAST_STATE to a folder that you may write."
        ) from error
    # Checked after creation: it may have existed before, as a link or as someone else's.
    folder_stat = folder.lstat()
    if stat.S_ISLNK(folder_stat.st_mode) or not stat.S_ISDIR(folder_stat.st_mode):
        raise UnsafePath(f"{folder} is not a plain folder", fix="Move it away and try again.")
    if folder_stat.st_uid != os.geteuid():
        raise UnsafePath(
            f"{folder} belongs to user {folder_stat.st_uid}", fix="Use another state directory (HOLDFAST_STATE)."
        )
    if stat.S_IMODE(folder_stat.st_mode) & 0o077:
        folder.chmod(0o700)
    return folder


def emergency_spools() -> list[Path]:
    """Where a hook puts an event if the spool cannot be written (docs/protocol.md)."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folders = [Path(runtime) / "holdfast-spool"] if runtime else []
    return [*folders, Path(f"/dev/shm/holdfast-spool-{os.geteuid()}")]  # noqa: S108 - owner and mode are checked


def write_atomically(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Readers see the old file or the new one. A symlink at `path` is replaced, not followed."""
    # Two threads may write the same file: each has its own partial file, and the last one wins.
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial-{threading.get_native_id()}")
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as out:
            out.write(content)
            out.flush()
            # Before the rename: otherwise a crash could leave an empty file under the real name.
            os.fsync(out.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """One process and thread at a time. The file stays: if it were removed, two could lock different ones."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def overwrite_file(path: Path) -> None:
    """Overwrite a file with zeros, as far as the file system writes in place."""
    fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.pwrite(fd, bytes(os.fstat(fd).st_size), 0)
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_path(path: Path) -> None:
    """Sync a file's content, or the names in a folder: a rename is durable only once its folder is synced."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


PARTIAL_S = 3600.0


def remove_partials(paths: Paths) -> int:
    """Remove half-written files of dead writers. Only the lease holder may do this."""
    removed = 0
    for base, _, names in os.walk(paths.state):
        for match in filter(None, map(_PARTIAL.match, names)):
            path = Path(base, match[0])
            if not _being_written(path, match[1], match[2], paths):
                path.unlink(missing_ok=True)
                removed += 1
    return removed


def _being_written(path: Path, pid: str | None, thread: str | None, paths: Paths) -> bool:
    """The daemon writes files without a number itself, except in index folders, where another process may."""
    if pid and thread:
        return Path(f"/proc/{pid}/task/{thread}").exists()
    if pid:
        return int(pid) != os.getpid() and Path(f"/proc/{pid}").exists()
    if path.parent.parent != paths.state / "indexes":
        return False
    with contextlib.suppress(OSError):
        return time.time() - path.stat().st_mtime < PARTIAL_S
    return False


def plain_files(folder: Path) -> Iterator[Path]:
    """Every regular file below, without following links, not even at the folder itself."""
    if folder.is_symlink():
        return
    for base, _, names in os.walk(folder):
        for name in names:
            path = Path(base, name)
            if is_plain_file(path):
                yield path


def is_plain_file(path: Path) -> bool:
    """Return whether it is a regular file that still exists."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


class NotRegular(OSError):
    """A folder, pipe or device is in the place of a file."""


def open_regular(path: str, flags: int) -> int:
    """An opener for `open` that never waits for a pipe and never reads a device."""
    # Opening a pipe would wait for its writer; O_NOCTTY keeps a terminal from becoming ours.
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    # Checked after opening, because a check before could be outrun by a swap.
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise NotRegular(f"not a plain file: {path}")


def open_regular_itself(path: str, flags: int) -> int:
    """The same, without following a symlink."""
    return open_regular(path, flags | os.O_NOFOLLOW)
