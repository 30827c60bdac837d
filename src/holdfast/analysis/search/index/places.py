"""Where the index of each checkout is stored."""

import hashlib
import os
import re
import shutil
import time
from pathlib import Path

import msgspec

from holdfast.analysis.search.index import checkout
from holdfast.core.errors import UnsafePath
from holdfast.paths import write_atomically

KEPT_S = 14 * 86_400
DATABASE = re.compile(r"^(\d+)\.db$")


class About(msgspec.Struct, frozen=True):
    root: str
    repo: str = ""


class IndexDir(msgspec.Struct, frozen=True):
    folder: Path

    @property
    def claim(self) -> Path:
        return self.folder / "claim"

    @property
    def progress(self) -> Path:
        return self.folder / "progress.json"

    @property
    def cancel(self) -> Path:
        return self.folder / "cancel"

    def database(self, generation: int) -> Path:
        return self.folder / f"{generation}.db"

    def current(self) -> int:
        """0 if there is none yet. A missing one was followed by another."""
        generation = self._current_number()
        # Between reading the number and checking, a run may have replaced it.
        while generation and not self.database(generation).exists():
            before, generation = generation, self._current_number()
            if generation == before:
                return 0
        return generation

    def _current_number(self) -> int:
        try:
            text = (self.folder / "current").read_text("ascii").strip()
        except (OSError, ValueError):
            return 0
        return int(text) if text.isdecimal() else 0

    def turn(self, generation: int) -> None:
        write_atomically(self.folder / "current", f"{generation}\n".encode())

    def newest(self) -> int:
        return max(self.generations(), default=0)

    def generations(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        return [int(match[1]) for p in self.folder.iterdir() if (match := DATABASE.match(p.name))]

    def sweep(self) -> None:
        """Remove old generations. A reader with one open keeps it until done."""
        current = self.current()
        for generation in self.generations():
            if generation != current:
                for tail in ("-wal", "-shm", ""):
                    Path(f"{self.database(generation)}{tail}").unlink(missing_ok=True)

    def about(self) -> About | None:
        try:
            return msgspec.json.decode((self.folder / "about.json").read_bytes(), type=About)
        except (OSError, msgspec.DecodeError):
            return None

    def prepare(self, about: About) -> "IndexDir":
        for folder in (self.folder.parent, self.folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.is_symlink():
                raise UnsafePath(f"{folder} is a symlink", fix="Move it away and try again.")
        if self.about() != about:
            write_atomically(self.folder / "about.json", msgspec.json.encode(about))
        return self


def folder_of(state_dir: Path) -> Path:
    return state_dir / "indexes"


def index_dir_of(state_dir: Path, root: str) -> IndexDir:
    """By the real path: a checkout reached by two names has one index."""
    real = os.path.realpath(root)
    # The name is for people, the digest makes it unique.
    name = re.sub(r"[^\w.-]", "_", os.path.basename(real))[:40] or "root"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return IndexDir(folder_of(state_dir) / f"{name}-{digest}")


def sibling_indexes(index_dir: IndexDir, repo: str) -> list[IndexDir]:
    """Indexes of other worktrees of the repository, whose equal files need not be cut again."""
    if not repo or not index_dir.folder.parent.is_dir():
        return []
    others = [IndexDir(p) for p in sorted(index_dir.folder.parent.iterdir()) if p != index_dir.folder and p.is_dir()]
    return [other for other in others if (about := other.about()) and about.repo == repo and other.current()]


def sweep_gone(folder: Path) -> None:
    """Remove indexes of removed checkouts after some days: an unmounted disk may come back."""
    for index_dir in (IndexDir(p) for p in folder.iterdir() if p.is_dir() and not p.is_symlink()):
        about = index_dir.about()
        # The folder's mtime is that of the last run.
        if about and not os.path.lexists(about.root) and time.time() - index_dir.folder.stat().st_mtime > KEPT_S:
            shutil.rmtree(index_dir.folder, ignore_errors=True)


def root_of(project: str) -> tuple[str, str]:
    """(checkout, its common git directory): the nearest folder upwards with a `.git`, else the folder itself."""
    folder = project
    while folder and folder != os.path.dirname(folder):
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder, checkout.common_dir(folder)
        folder = os.path.dirname(folder)
    return project, ""
