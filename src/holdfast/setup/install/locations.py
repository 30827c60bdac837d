"""Locates an agent's settings files and writes them atomically, where we may."""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from holdfast.core.agent import Agent
from holdfast.core.errors import InstallRefused
from holdfast.paths import locked_file, private_folder, sync_path, write_atomically


def settings_file(agent: Agent, level: str, project: Path) -> Path:
    """The file itself, links followed. It need not exist."""
    named = agent.setup.files.get(level) if agent.setup else None
    if named is None:
        known_levels = ", ".join(install_levels(agent)) or "none"
        raise InstallRefused(f"{agent.title} has no settings at level “{level}”", fix=f"Known: {known_levels}.")
    base = Path.home() if level == "user" else project
    if not base.is_dir():
        raise InstallRefused("the folder is not there", where=str(base), fix="Name an existing folder.")
    return _resolve_link(base / named, project)


def install_levels(agent: Agent) -> list[str]:
    return list(agent.setup.files) if agent.setup else []


def _resolve_link(path: Path, project: Path) -> Path:
    try:
        real = path.resolve()
    except (OSError, RuntimeError) as error:
        raise InstallRefused(
            "the link leads in a circle", where=str(path), fix="Repair or remove the link, then run: holdfast up"
        ) from error
    # A dangling link must not become a new file in a place that nobody chose.
    linked = path.is_symlink() or path.parent.is_symlink()
    if (linked and not real.parent.is_dir()) or (path.is_symlink() and not real.exists()):
        raise InstallRefused(
            f"it is a link to {real}, which is not there",
            where=str(path),
            fix="Repair or remove the link, then run: holdfast up",
        )
    # A project may link to any file: we write only in the person's own folders.
    if not any(real.is_relative_to(folder.resolve()) for folder in (Path.home(), project)):
        raise InstallRefused(
            f"it is a link to {real}, outside of home and project",
            where=str(path),
            fix="Put a file in its place, or have the link lead into your home; then run: holdfast up",
        )
    return real


def missing_folders(path: Path) -> int:
    """How many folders must be created for it."""
    return sum(1 for folder in path.parents if not folder.exists())


def read_content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InstallRefused(f"it cannot be read ({error.strerror})", where=str(path), fix="Check the file.") from error


def refuse_unwritable(path: Path) -> None:
    """Checked by the permissions themselves, because root may write anything and should not."""
    folder = path.parent
    # The nearest existing folder must be writable.
    while not folder.exists():
        folder = folder.parent
    for target in (path, folder) if path.exists() else (folder,):
        target_stat = target.stat()
        if target == path and not stat.S_ISREG(target_stat.st_mode):
            raise InstallRefused("it is not a plain file", where=str(target), fix="Move it away.")
        if target_stat.st_uid != os.geteuid():
            raise InstallRefused(
                f"it belongs to user {target_stat.st_uid}",
                where=str(target),
                fix="Run this as that user, or use another level.",
            )
        # The mode for root, who may write anything; access for file systems mounted read-only.
        if not target_stat.st_mode & 0o200 or not os.access(target, os.W_OK):
            raise InstallRefused(
                "it is read-only", where=str(target), fix=f"Allow writing (chmod u+w {target}) and try again."
            )


def replace_file(path: Path, new: bytes | None) -> None:
    """Atomically, with the mode the file had. `None` removes it."""
    with refuse_on_os_error(path):
        # Left by a writer that was killed.
        partial_of(path).unlink(missing_ok=True)
        if new is None:
            path.unlink(missing_ok=True)
        else:
            _write_partial(path, new)
            partial_of(path).replace(path)
        sync_path(path.parent)


def _write_partial(path: Path, new: bytes) -> None:
    old = path.stat() if path.exists() else None
    # A file or link placed there in advance must not be followed.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(partial_of(path), flags, 0o666 if old is None else 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(new)
        if old is not None:
            # A file shared by a group stays the group's.
            if old.st_gid != os.fstat(fd).st_gid:
                os.fchown(fd, -1, old.st_gid)
            os.fchmod(fd, stat.S_IMODE(old.st_mode))
        out.flush()
        # On disk before the rename: after a power cut the file must not be empty.
        os.fsync(fd)


def partial_of(path: Path) -> Path:
    """A fixed name: writers hold a lock, and a killed one's file is found again."""
    return path.with_name(f".{path.name}.holdfast-partial")


@contextmanager
def refuse_on_os_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InstallRefused(
            f"{error.strerror or error}", where=str(path), fix="Check disk and permissions."
        ) from error


WRITTEN_BY_US = frozenset(("GLOBAL_STATE.md", "sessions"))
"""What the project feature keeps in `~/.claude` even without Claude Code."""


def is_present(agent: Agent) -> bool:
    """Whether the agent seems to be installed for this person."""
    if agent.setup is None:
        return False
    if agent.program and shutil.which(agent.program) is not None:
        return True
    try:
        names = {entry.name for entry in (Path.home() / agent.setup.folder).iterdir()} if agent.setup.folder else None
    except OSError:
        return False
    # An empty folder counts as well; one with only our own files does not.
    return names is not None and (not names or bool(names - WRITTEN_BY_US))


# What a settings file was before us, kept in the state directory so that it can be restored exactly.

# Enough for several interrupted updates in a row.
KEPT_RESULTS = 8


class Record(msgspec.Struct, kw_only=True, frozen=True):
    """`results` are the hashes of what we wrote, newest last; several, because an update may be interrupted."""

    path: str
    agent: str
    level: str
    original: bytes | None = None
    results: tuple[str, ...] = ()
    made_folders: int = 0
    part: str = ""
    """Which part of ours it concerns, where one file holds both our hooks and our MCP server."""
    made_file: bool = False
    """The file did not exist before us; also true if another part of ours is in it, so `original` is not empty."""
    not_kept: bool = False
    """The agent's own file, which may hold its keys: no copy is made, and only our entry is removed."""

    def wrote(self, content: bytes | None) -> bool:
        return content is not None and content_digest(content) in self.results


def content_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Records:
    def __init__(self, state: Path) -> None:
        self.state, self.folder = state, state / "installs"

    def read_record(self, path: Path, part: str = "") -> Record | None:
        """Without a readable record our entries are removed one by one."""
        try:
            return msgspec.json.decode(self._file(path, part).read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError):
            return None

    def write_record(self, record: Record) -> None:
        write_atomically(self._file(Path(record.path), record.part), msgspec.json.encode(record))

    def drop(self, path: Path, part: str = "") -> None:
        self._file(path, part).unlink(missing_ok=True)

    def prepare(self) -> None:
        private_folder(self.state)
        private_folder(self.folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.prepare()
        with locked_file(self.folder / "lock"):
            yield

    def all(self) -> Iterator[Record]:
        for file in sorted(self.folder.glob("*.json")):
            with suppress(OSError, msgspec.DecodeError):
                yield msgspec.json.decode(file.read_bytes(), type=Record)

    def _file(self, path: Path, part: str) -> Path:
        return self.folder / f"{content_digest(os.fsencode(path))[:32]}{part}.json"


# One entry of ours in somebody's file.


class HookEntry(NamedTuple):
    event: str
    line: int
    entry: dict[str, Any]
