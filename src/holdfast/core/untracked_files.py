"""Which files of a worktree are new to git, without asking git each time.

Git has to read every folder to find them. Here each folder's time stamp and the names in it are remembered: where no
folder got another name since the last answer of git, the answer is still the same. What an editor or `sed -i` does
(a new file under an old name) costs one look at that folder. Anything else makes the caller ask git again.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable

import msgspec

MAX_FOLDERS = 20_000
SETTLED_NS = 20_000_000
"""A folder that was written to within one tick of the clock can change again without a new stamp."""
IGNORE_FILE = ".gitignore"

AskIgnored = Callable[[list[str]], set[str] | None]
"""Which of these folders git ignores; None where it does not tell."""
Stamp = tuple[int, int]


class _Folder(msgspec.Struct):
    stamp: Stamp
    names: frozenset[tuple[str, bool]]
    """Each name in it, and whether it is a folder."""


class KnownFolders(msgspec.Struct):
    """What one answer of git about new files rests on."""

    root: str
    basis: tuple[object, ...]
    """Stamps of what else decides what is new: the index, git's settings, ignore files."""
    folders: dict[str, _Folder]
    ignore_files: tuple[str, ...]
    untracked: tuple[str, ...]

    def still_untracked(self, basis: tuple[object, ...]) -> tuple[str, ...] | None:
        """The new files of this moment; None when git has to be asked."""
        if basis != self.basis:
            return None
        gone = False
        for path, folder in self.folders.items():
            stamp = _stamp_of(path)
            if stamp == folder.stamp:
                continue
            if stamp is None:
                return None
            changed = self._look_again(path, folder)
            if changed is None:
                return None
            gone = gone or changed
        if gone:
            self.untracked = tuple(p for p in self.untracked if os.path.lexists(os.path.join(self.root, p)))
        return self.untracked

    def _look_again(self, path: str, folder: _Folder) -> bool | None:
        """Whether names went; None when some came."""
        seen = _look_at(path)
        if seen is None or seen.names - folder.names:
            return None
        if any(is_folder for _name, is_folder in folder.names - seen.names):
            return None
        went = seen.names != folder.names
        if not _is_settled(seen.stamp):
            return None
        self.folders[path] = seen
        return went


def read_folders(
    root: str, tracked: Iterable[str], ignored: AskIgnored, before: "KnownFolders | None" = None
) -> dict[str, _Folder] | None:
    """Every folder in which a new file would count. To be read before git is asked; None where they cannot be kept."""
    wanted, old = _folders_of(tracked), before.folders if before else {}
    folders: dict[str, _Folder] = {}
    waiting, unsure = [""], list[str]()
    while waiting or unsure:
        if not waiting:
            skipped = ignored(unsure)
            if skipped is None:
                return None
            waiting, unsure = [path for path in unsure if path not in skipped], []
            continue
        path = waiting.pop()
        full = os.path.join(root, path) if path else root
        found = _look_at(full, old.get(full))
        if found is None or not _is_settled(found.stamp) or len(folders) >= MAX_FOLDERS:
            return None
        folders[full] = found
        for name, is_folder in found.names:
            inner = f"{path}/{name}" if path else name
            if is_folder and name != ".git" and not os.path.lexists(os.path.join(root, inner, ".git")):
                (waiting if inner in wanted else unsure).append(inner)
    return folders


def ignore_files_in(folders: dict[str, _Folder]) -> tuple[str, ...]:
    return tuple(os.path.join(path, IGNORE_FILE) for path, one in folders.items() if (IGNORE_FILE, False) in one.names)


def _folders_of(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _look_at(path: str, before: _Folder | None = None) -> _Folder | None:
    """The stamp first: what is added while the names are read shows as another stamp the next time."""
    stamp = _stamp_of(path)
    if stamp is None:
        return None
    if before is not None and before.stamp == stamp:
        return before
    try:
        with os.scandir(path) as entries:
            names = frozenset((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError:
        return None
    return _Folder(stamp, names)


def _is_settled(stamp: Stamp) -> bool:
    return time.time_ns() - stamp[0] > SETTLED_NS


def _stamp_of(path: str) -> Stamp | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def file_stamps(paths: Iterable[str]) -> tuple[object, ...]:
    """Of files whose content decides; one that is not there has a stamp as well."""
    found: list[object] = []
    for path in paths:
        try:
            seen = os.stat(path)
        except OSError:
            found.append(None)
        else:
            found.append((seen.st_mtime_ns, seen.st_size, seen.st_ino))
    return tuple(found)
