"""Finds the files of a folder that changed since the last look, by their stamps."""

import os
import re
import stat
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

FIELDS = 5
"""mtime, ctime, size, inode, type and mode; all zero if the file does not exist."""
Stamp = tuple[int, int, int, int, int]
MISSING: Stamp = (0, 0, 0, 0, 0)
UNSETTLED = -1
SETTLED_NS = 20_000_000
"""A file written within one clock tick can change again without a new stamp."""
# Threads pay off from this many names each; at most four.
NAMES_OF_A_THREAD, MAX_THREADS = 3_000, 4
_LIBRARY = Path(__file__).parents[1] / "analysis" / "redact" / "libanchors.so"


def read_stamp(path: str) -> Stamp:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    return stamp_of(found)


def stamp_of(found: os.stat_result) -> Stamp:
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode)


MOST_SMALL_FILES, SMALL_FILE = 1_000, 64 * 1024
_small_files: dict[str, tuple[Stamp, bytes]] = {}


def read_small_file(path: str) -> bytes:
    """Read the beginning of a file that every hook needs, again only if its stamp changed. Raises OSError."""
    found = os.stat(path)
    stamp = stamp_of(found)
    known = _small_files.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    # NONBLOCK: a named pipe must not block the hook.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        content = os.read(file, SMALL_FILE)
    finally:
        os.close(file)
    # A program can set back mtime but not ctime.
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > SETTLED_NS:
        if len(_small_files) >= MOST_SMALL_FILES:
            _small_files.clear()
        _small_files[path] = (stamp, content)
    return content


class _Part(NamedTuple):
    """The names one thread handles: index of the first, count, and offset in the packed names."""

    first: int
    size: int
    offset: int


class FileStamps:
    """Stamps of names below one folder, in the given order."""

    def __init__(self, root: str, names: Sequence[str]) -> None:
        """Read all stamps. Raises OSError if one cannot be read."""
        self._root, self.names = root, names
        packed = [os.fsencode(name) + b"\0" for name in names]
        self._packed, self._parts = b"".join(packed), _split_names(packed)
        self._stamps = array("q", bytes(8 * FIELDS * len(names)))
        if not self._look_natively(None):
            for place, name in enumerate(names):
                self.set_stamp(place, read_stamp(os.path.join(root, name)))
        self._mark_unsettled(time.time_ns() - SETTLED_NS)

    def find_changed(self) -> list[int]:
        """Return the indexes of names whose stamp differs."""
        changed: list[list[int]] = [[] for _ in self._parts]
        if self._look_natively(changed):
            return [place for places in changed for place in places]
        root = self._root
        return [n for n, name in enumerate(self.names) if read_stamp(os.path.join(root, name)) != self.stamp(n)]

    def stamp(self, place: int) -> Stamp:
        return tuple(self._stamps[place * FIELDS : (place + 1) * FIELDS])  # type: ignore[return-value]

    def set_stamp(self, place: int, stamp: Stamp) -> None:
        self._stamps[place * FIELDS : (place + 1) * FIELDS] = array("q", stamp)

    def forget(self, places: Iterable[int]) -> None:
        """Report these in every later look."""
        for place in places:
            # No file has this time, so the comparison always fails.
            self._stamps[place * FIELDS] = UNSETTLED

    def _mark_unsettled(self, newest: int) -> None:
        self.forget([n for n in range(len(self.names)) if self._stamps[n * FIELDS] > newest])

    def _look_natively(self, changed: list[list[int]] | None) -> bool:
        """Read or compare the stamps natively; False if the library is missing."""
        look = _native_look()
        if look is None:
            return False
        from ctypes import c_uint32

        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        done = [False] * len(self._parts)

        def look_at(number: int) -> None:
            part = self._parts[number]
            found = (c_uint32 * max(1, part.size))() if changed is not None else None
            # Eight bytes per field, from the first name of this part.
            stamps = self._stamps.buffer_info()[0] + 8 * FIELDS * part.first
            count: int = look(folder, self._packed[part.offset :], part.size, stamps, found)
            done[number] = count >= 0
            if changed is not None and found is not None and count > 0:
                changed[number] = [part.first + place for place in found[:count]]

        try:
            # The library releases the interpreter lock, so the parts run in parallel.
            threads = [threading.Thread(target=look_at, args=(n,), daemon=True) for n in range(1, len(self._parts))]
            for thread in threads:
                thread.start()
            look_at(0)
            for thread in threads:
                thread.join()
        finally:
            os.close(folder)
        return all(done)


def _split_names(packed: Sequence[bytes]) -> list[_Part]:
    each = max(NAMES_OF_A_THREAD, -(-len(packed) // MAX_THREADS))
    parts, offset = [], 0
    for first in range(0, max(1, len(packed)), each):
        some = packed[first : first + each]
        parts.append(_Part(first, len(some), offset))
        offset += sum(map(len, some))
    return parts


@cache
def _native_look() -> Any:
    import ctypes  # Commands that only want a branch do without it.

    try:
        look = ctypes.CDLL(str(_LIBRARY)).holdfast_look_at_files
    except (OSError, AttributeError):
        return None  # It was not built for this machine, or by an older version.
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    look.argtypes, look.restype = (ctypes.c_int, ctypes.c_char_p, size, pointer, pointer), ctypes.c_int64
    return look


# Finds which files of a worktree differ from git's index or are new, without running git each time.
#
# Git inspects every file and folder. Here the stamp of each is remembered, with the names in each folder: a file that
# git called unchanged is unchanged as long as its stamp is, and a folder without new names has no new files. A file
# replaced under its old name (editors, `sed -i`) costs one look at its folder. For anything else the caller asks git
# again.

MAX_FOLDERS = 20_000
MAX_DIFFERENT = 2_000
"""With more changed stamps than this, git is as fast."""
IGNORE_FILE, ATTRIBUTES_FILE = ".gitignore", ".gitattributes"
_REWRITES = re.compile(
    rb"\bfilter\s*=|\bident\b|working-tree-encoding|attributesfile|filemode\s*=\s*(?:false|no|off|0)", re.I
)
"""Attributes and settings that make git compare something else than the file's bytes, or ignore its mode."""
# Attributes and settings that may convert line endings; an include may hold any of them.
_CHANGES_LINE_ENDS = re.compile(rb"\b(?:text|eol|crlf|autocrlf|include\w*)\b", re.I)

AskIgnored = Callable[[list[str]], set[str] | None]
"""Returns the folders that git ignores; None if git does not answer."""


class _Folder(msgspec.Struct):
    stamp: Stamp
    names: frozenset[tuple[str, bool]]
    """Each name in it, and whether it is a folder."""


class Differences(msgspec.Struct, frozen=True):
    """Files that may differ from the index, and new files."""

    tracked: list[str]
    untracked: tuple[str, ...]


class KnownFolders(msgspec.Struct):
    """What one answer of git about changed and new files depends on."""

    root: str
    basis: tuple[object, ...]
    """Stamps of the other inputs: the index, git's settings, ignore files."""
    folders: dict[str, _Folder]
    stamps: FileStamps
    """Stamps of the folders, then of the tracked files; files that git called changed are reported by every look."""
    ignore_files: tuple[str, ...]
    untracked: tuple[str, ...]
    changes_line_ends: bool = False

    def find_differences(self, basis: tuple[object, ...]) -> Differences | None:
        """Return the current differences; None if git must be asked."""
        if basis != self.basis:
            return None
        places = self.stamps.find_changed()
        if len(places) > MAX_DIFFERENT:
            return None
        folders, gone = list(self.folders), False
        for place in places:
            if place < len(folders):
                changed = self._look_again(place, folders[place])
                if changed is None:
                    return None
                gone = gone or changed
        if gone:
            # A missing name may have been an untracked file.
            self.untracked = tuple(p for p in self.untracked if os.path.lexists(os.path.join(self.root, p)))
        tracked = [self.stamps.names[place] for place in places if place >= len(folders)]
        # New attributes may change what git compares in untouched files.
        return None if any(name.endswith(ATTRIBUTES_FILE) for name in tracked) else Differences(tracked, self.untracked)

    def _look_again(self, place: int, path: str) -> bool | None:
        """Return whether names disappeared; None if some appeared."""
        folder, seen = self.folders[path], _look_at(path)
        if seen is None or seen.names - folder.names:
            return None
        # A removed folder takes along what was remembered below it.
        if any(is_folder for _name, is_folder in folder.names - seen.names):
            return None
        went = seen.names != folder.names
        if not _is_settled(seen.stamp):
            return None
        self.folders[path] = seen
        self.stamps.set_stamp(place, seen.stamp)
        return went


def stamp_worktree(root: str, folders: dict[str, _Folder], tracked: Iterable[str]) -> FileStamps | None:
    """Stamp the worktree before git is asked. None if a folder changed since its names were read."""
    names = [os.path.relpath(path, root) for path in folders]
    stamps = FileStamps(root, [*names, *tracked])
    same = all(stamps.stamp(place) == folder.stamp for place, folder in enumerate(folders.values()))
    return stamps if same else None


def compares_other_content(texts: Sequence[bytes]) -> bool:
    """Return whether attributes and settings make git compare something else than the file's bytes."""
    return any(_REWRITES.search(text) for text in texts)


def changes_line_ends(texts: Sequence[bytes]) -> bool:
    return any(_CHANGES_LINE_ENDS.search(text) for text in texts)


def read_folders(
    root: str, tracked: Iterable[str], ignored: AskIgnored, before: "KnownFolders | None" = None
) -> dict[str, _Folder] | None:
    """Read every folder in which a new file would count, before git is asked; None if there are too many."""
    tracked_folders, old = _folders_of(tracked), before.folders if before else {}
    folders: dict[str, _Folder] = {}
    waiting, unsure = [""], list[str]()
    while waiting or unsure:
        if not waiting:
            # One call of git for all folders without tracked files.
            skipped = ignored(unsure)
            if skipped is None:
                return None
            waiting, unsure = [path for path in unsure if path not in skipped], []
            continue
        path = waiting.pop()
        full = os.path.join(root, path) if path else root
        listing = _look_at(full, old.get(full))
        if listing is None or not _is_settled(listing.stamp) or len(folders) >= MAX_FOLDERS:
            return None
        folders[full] = listing
        for name, is_folder in listing.names:
            inner = f"{path}/{name}" if path else name
            # A nested repository is not part of the content.
            if is_folder and name != ".git" and not os.path.lexists(os.path.join(root, inner, ".git")):
                (waiting if inner in tracked_folders else unsure).append(inner)
    return folders


def ignore_files_in(folders: dict[str, _Folder]) -> tuple[str, ...]:
    return tuple(os.path.join(path, IGNORE_FILE) for path, one in folders.items() if (IGNORE_FILE, False) in one.names)


def _folders_of(paths: Iterable[str]) -> set[str]:
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def _look_at(path: str, before: _Folder | None = None) -> _Folder | None:
    """Read the stamp first: a name added meanwhile changes the next stamp."""
    try:
        stamp = read_stamp(path)
        if stamp == MISSING or not stat.S_ISDIR(stamp[4]):
            return None
        if before is not None and before.stamp == stamp:
            return before
        with os.scandir(path) as entries:
            names = frozenset((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError:
        return None
    return _Folder(stamp, names)


def _is_settled(stamp: Stamp) -> bool:
    return time.time_ns() - stamp[0] > SETTLED_NS


def file_stamps(paths: Iterable[str]) -> tuple[object, ...]:
    """Stamp files whose content matters, including missing ones."""
    stamps: list[object] = []
    for path in paths:
        try:
            seen = os.stat(path)
        except OSError:
            stamps.append(None)
        else:
            stamps.append((seen.st_mtime_ns, seen.st_size, seen.st_ino))
    return tuple(stamps)
