"""Where a project's runs are stored."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from holdfast.core.errors import UnsafePath
from holdfast.features.uat.file_names import safe_file_name

FOLDERS = ("sessions", "scenarios", "screenshots", "reports", "archive")


def root_of(project: str, root: str) -> str:
    """The root as text (no disk is looked at): in the project, unless the person's settings say an absolute place."""
    if root.startswith("/"):
        return os.path.normpath(root)
    inside = os.path.normpath(root)
    if not project.startswith("/") or inside.startswith(".."):
        return ""
    return f"{project.rstrip('/')}/{inside}"


@dataclass(frozen=True)
class RunFolders:
    root: Path
    project: str = ""

    def session_file(self, session: str) -> Path:
        return self.root / "sessions" / f"claude-session-{safe_file_name(session)}.json"

    def backup_file(self, session: str) -> Path:
        return self.session_file(session).with_suffix(".backup")

    def lock_file(self, session: str) -> Path:
        return self.session_file(session).with_suffix(".lock")

    def archive_file(self, run: str) -> Path:
        return self.root / "archive" / f"{safe_file_name(run)}.json"

    def screenshots(self, run: str) -> Path:
        return self.root / "screenshots" / safe_file_name(run)

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    def report_file(self, run: str, ending: str = ".html") -> Path:
        return self.reports / f"{safe_file_name(run)}{ending}"

    @property
    def scenarios(self) -> Path:
        return self.root / "scenarios"

    def ready(self, folder: Path) -> Path:
        """Makes a folder below the root. A link on the way is refused: it may lead out of the project."""
        parts = folder.relative_to(self.root).parts
        self._check_root()
        here = self.root
        here.mkdir(parents=True, exist_ok=True)
        # The root itself is checked too, then each folder on the way down.
        for part in ("", *parts):
            here = here / part if part else here
            here.mkdir(exist_ok=True)
            if not stat.S_ISDIR(here.lstat().st_mode):
                raise UnsafePath(f"{here} is not a plain folder", fix="Move it away, or set another `uat.root`.")
        return folder

    def is_plain(self, folder: Path) -> bool:
        """Whether a folder is there and no link leads to it: only in such a one is anything removed."""
        try:
            self._check_root()
        except UnsafePath:
            return False
        # The path must be the same after following links, apart from links above the root.
        real, root = os.path.realpath(folder), os.path.realpath(self.root)
        return folder.is_dir() and real == os.path.join(root, *folder.relative_to(self.root).parts)  # noqa: PTH118

    def _check_root(self) -> None:
        """The root itself may lie below links, but not lead out of its project."""
        project = self.project
        if not project or not str(self.root).startswith(f"{project.rstrip('/')}/"):
            return
        if not Path(project).is_dir():
            raise UnsafePath(f"the project {project} is not there")
        real, home = os.path.realpath(self.root), os.path.realpath(project)
        if not real.startswith(f"{home.rstrip('/')}/"):
            raise UnsafePath(f"{self.root} leads out of the project", fix="Move it away, or set another `uat.root`.")


def is_inside_folders(path: Path, folders: tuple[str, ...]) -> bool:
    """Whether a file is in one of the folders, links followed."""
    real = os.path.realpath(path)
    return any(real.startswith(os.path.realpath(folder).rstrip("/") + "/") for folder in folders if folder)
