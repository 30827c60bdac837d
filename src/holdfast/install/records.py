"""What a settings file was before us, kept in the state directory so that it can be given back exactly as it was."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from holdfast.paths import private_folder, write_atomically

KEPT_RESULTS = 8


class Record(msgspec.Struct, kw_only=True, frozen=True):
    """`results` are the hashes of what we wrote, newest last; more than one, because an update may be interrupted."""

    path: str
    agent: str
    level: str
    original: bytes | None = None
    results: tuple[str, ...] = ()
    made_folders: int = 0
    part: str = ""
    """What of ours it is about, where one file holds both our hooks and our MCP server."""
    not_kept: bool = False
    """The agent's own file, which may hold its keys: no copy is made, and only our entry is taken out."""

    def wrote(self, content: bytes | None) -> bool:
        return content is not None and digest(content) in self.results


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Records:
    def __init__(self, state: Path) -> None:
        self.state, self.folder = state, state / "installs"

    def find(self, path: Path, part: str = "") -> Record | None:
        """A record that cannot be read is as good as none: our entries are then taken out one by one."""
        try:
            return msgspec.json.decode(self._file(path, part).read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError):
            return None

    def keep(self, record: Record) -> None:
        write_atomically(self._file(Path(record.path), record.part), msgspec.json.encode(record))

    def drop(self, path: Path, part: str = "") -> None:
        self._file(path, part).unlink(missing_ok=True)

    def prepare(self) -> None:
        private_folder(self.state)
        private_folder(self.folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.prepare()
        fd = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _file(self, path: Path, part: str) -> Path:
        return self.folder / f"{digest(os.fsencode(path))[:32]}{part}.json"
