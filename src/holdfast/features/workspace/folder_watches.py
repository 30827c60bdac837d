"""Watches the folders of worktrees, and turns what the kernel notices into files that have to be looked at."""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from holdfast.features.workspace import inotify as kernel
from holdfast.features.workspace.inotify import Inotify, Notice
from holdfast.features.workspace.watched_root import STAGING, WatchedRoot

MOST_FOLDERS = 100_000


class FolderWatches:
    """One for all worktrees. Not thread-safe: the recorder's lock protects it."""

    def __init__(self, roots: Callable[[], Iterable[WatchedRoot]], doubt: Callable[[WatchedRoot], None]) -> None:
        self._roots, self._doubt = roots, doubt
        self._watches: dict[int, tuple[WatchedRoot, str]] = {}
        self.trouble = ""
        """Why nothing can be watched."""
        try:
            self._kernel: Inotify | None = Inotify()
        except OSError as error:
            self._kernel, self.trouble = None, str(error)

    @property
    def descriptors(self) -> list[int]:
        """What to wait for."""
        return [self._kernel.fd] if self._kernel else []

    def close(self) -> None:
        if self._kernel:
            self._kernel.close()
            self._kernel = None

    def read(self) -> None:
        """Everything that the kernel has noticed until now."""
        if self._kernel is None:
            return
        for notice in self._kernel.read():
            if notice.mask & kernel.OVERFLOW:
                for root in self._roots():
                    self._doubt(root)
            elif found := self._watches.get(notice.watch):
                self._take_notice(*found, notice)

    def _take_notice(self, root: WatchedRoot, folder: str, notice: Notice) -> None:
        if notice.mask & kernel.IGNORED:
            self._watches.pop(notice.watch, None)
            if root.folders.get(folder) == notice.watch:
                del root.folders[folder]
        elif notice.mask & (kernel.DELETE_SELF | kernel.MOVE_SELF):
            if not folder:
                root.pending.update(dict.fromkeys([*root.files, *root.tracked]))
                self._doubt(root)
        elif notice.name and notice.name != ".git":
            path = f"{folder}/{notice.name}" if folder else notice.name
            root.pending[path] = None
            if notice.name == ".gitignore":
                root.ignore.forget()
            if notice.mask & kernel.IS_DIR:
                self._take_folder_notice(root, path, notice.mask)

    def _take_folder_notice(self, root: WatchedRoot, folder: str, mask: int) -> None:
        """A folder that moves takes its files along, and no event names them."""
        if mask & (kernel.MOVED_FROM | kernel.MOVED_TO):
            self.unwatch_below(root, folder)
            root.pending.update(dict.fromkeys(root.known_below(folder)))
        if mask & (kernel.CREATE | kernel.MOVED_TO):
            self.watch_tree(root, folder)

    def watch_tree(self, root: WatchedRoot, folder: str) -> None:
        """Watch a new folder and what is below; its files have to be looked at."""
        waiting = [folder]
        while waiting:
            one = waiting.pop()
            whole = os.path.join(root.root, one)
            if one.startswith(STAGING) or os.path.lexists(os.path.join(whole, ".git")) or root.ignore.is_ignored(one):
                continue
            # The watch comes before the listing: what appears in between is in both.
            if not self.watch(root, one):
                continue
            try:
                with os.scandir(whole) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(f"{one}/{entry.name}")
                        else:
                            root.pending[f"{one}/{entry.name}"] = None
            except OSError:
                continue

    def watch(self, root: WatchedRoot, folder: str) -> bool:
        if self._kernel is None:
            return False
        if len(self._watches) >= MOST_FOLDERS:
            root.unwatched = f"more than {MOST_FOLDERS} folders"
            return False
        try:
            number = self._kernel.watch(os.path.join(root.root, folder) if folder else root.root)
        except FileNotFoundError:
            return True  # It has gone again.
        except OSError as error:
            root.unwatched = f"no watch on {folder or root.root}: {error.strerror}"
            return False
        self._watches[number] = (root, folder)
        root.folders[folder] = number
        return True

    def unwatch_below(self, root: WatchedRoot, folder: str) -> None:
        start = f"{folder}/" if folder else ""
        for name in [one for one in root.folders if one == folder or one.startswith(start)]:
            number = root.folders.pop(name)
            self._watches.pop(number, None)
            if self._kernel:
                self._kernel.unwatch(number)

    def watch_others(self, root: WatchedRoot, lock: AbstractContextManager[object]) -> None:
        """Folders without a file that git knows, such as empty ones: a file may appear in them."""
        for folder in list(root.folders):
            with lock:
                for name in _folders_in(os.path.join(root.root, folder)):
                    below = f"{folder}/{name}" if folder else name
                    if below not in root.folders and name != ".git" and not root.unwatched:
                        self.watch_tree(root, below)


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
