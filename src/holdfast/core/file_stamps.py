"""What many files of one folder look like from outside, and which of them look otherwise than before.

One call of native/stamps.c looks at all of them while other threads run; where it was not built, Python does the same.
"""

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
"""When it was written, when its entry changed, size, number, kind and mode; all zero where there is no such file."""
Stamp = tuple[int, int, int, int, int]
MISSING: Stamp = (0, 0, 0, 0, 0)
UNSETTLED = -1
SETTLED_NS = 20_000_000
"""A file that was written within one tick of the clock can change again without a new stamp."""
# Fewer names than the first are not worth a thread.
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
    """The beginning of a file that is asked for at every hook: read again only when its stamp is another. Raises OSError."""
    found = os.stat(path)
    stamp = stamp_of(found)
    known = _small_files.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    # NONBLOCK: a named pipe under this path must not hold up the hook.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        content = os.read(file, SMALL_FILE)
    finally:
        os.close(file)
    # Its time can be set back by whoever writes it, that of its entry cannot.
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > SETTLED_NS:
        if len(_small_files) >= MOST_SMALL_FILES:
            _small_files.clear()
        _small_files[path] = (stamp, content)
    return content


class _Part(NamedTuple):
    """Names that one thread looks at: the place of the first, how many, and where they begin in the packed names."""

    first: int
    size: int
    offset: int


class FileStamps:
    """Stamps of names below one folder, in the order they were given."""

    def __init__(self, root: str, names: Sequence[str]) -> None:
        """Reads them all. Raises OSError where one cannot be looked at."""
        self._root, self.names = root, names
        packed = [os.fsencode(name) + b"\0" for name in names]
        self._packed, self._parts = b"".join(packed), _split_names(packed)
        self._stamps = array("q", bytes(8 * FIELDS * len(names)))
        if not self._look_natively(None):
            for place, name in enumerate(names):
                self.set_stamp(place, read_stamp(os.path.join(root, name)))
        self._mark_unsettled(time.time_ns() - SETTLED_NS)

    def find_changed(self) -> list[int]:
        """Places of the names that look otherwise than when they were read or set."""
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
        """These are reported by every later look."""
        for place in places:
            # No file was written at this time, so the comparison always fails.
            self._stamps[place * FIELDS] = UNSETTLED

    def _mark_unsettled(self, newest: int) -> None:
        self.forget([n for n in range(len(self.names)) if self._stamps[n * FIELDS] > newest])

    def _look_natively(self, changed: list[list[int]] | None) -> bool:
        """Reads the stamps, or compares them and fills `changed`. False: it has to be done without the library."""
        look = _native_look()
        if look is None:
            return False
        from ctypes import c_uint32

        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        done = [False] * len(self._parts)

        def look_at(number: int) -> None:
            part = self._parts[number]
            found = (c_uint32 * max(1, part.size))() if changed is not None else None
            # Eight bytes for each field, from the first name of this part on.
            stamps = self._stamps.buffer_info()[0] + 8 * FIELDS * part.first
            count: int = look(folder, self._packed[part.offset :], part.size, stamps, found)
            done[number] = count >= 0
            if changed is not None and found is not None and count > 0:
                changed[number] = [part.first + place for place in found[:count]]

        try:
            # The interpreter's lock is free meanwhile: the parts take as long as one of them where there are processors.
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


# Which files of a worktree differ from git's index or are new to it, without asking git each time.
#
# Git has to look at every file and read every folder to find them. Here the stamp of each is remembered, with the
# names
# in each folder: where git once said that a file is unchanged and its stamp is still the same, so is its content, and
# where no folder got another name there is no new file. What an editor or `sed -i` does (a new file under an old
# name)
# costs one look at that folder. Anything else makes the caller ask git again.

MAX_FOLDERS = 20_000
MAX_DIFFERENT = 2_000
"""More files with another stamp than this: git reads them as quickly."""
IGNORE_FILE, ATTRIBUTES_FILE = ".gitignore", ".gitattributes"
_REWRITES = re.compile(
    rb"\bfilter\s*=|\bident\b|working-tree-encoding|attributesfile|filemode\s*=\s*(?:false|no|off|0)", re.I
)
"""In attributes and settings: git compares something else than what lies in the file, or leaves its mode out."""
# Attributes and settings by which git may convert line ends; an include may hold any of them.
_CHANGES_LINE_ENDS = re.compile(rb"\b(?:text|eol|crlf|autocrlf|include\w*)\b", re.I)

AskIgnored = Callable[[list[str]], set[str] | None]
"""Which of these folders git ignores; None where it does not tell."""


class _Folder(msgspec.Struct):
    stamp: Stamp
    names: frozenset[tuple[str, bool]]
    """Each name in it, and whether it is a folder."""


class Differences(msgspec.Struct, frozen=True):
    """Files whose content may differ from the index, and files that are new."""

    tracked: list[str]
    untracked: tuple[str, ...]


class KnownFolders(msgspec.Struct):
    """What one answer of git about changed and new files rests on."""

    root: str
    basis: tuple[object, ...]
    """Stamps of what else decides: the index, git's settings, ignore files."""
    folders: dict[str, _Folder]
    stamps: FileStamps
    """Of the folders, then of the tracked files; those that git called changed are reported by every look."""
    ignore_files: tuple[str, ...]
    untracked: tuple[str, ...]
    changes_line_ends: bool = False

    def find_differences(self, basis: tuple[object, ...]) -> Differences | None:
        """Of this moment; None when git has to be asked."""
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
            # A name that went may have been an untracked file.
            self.untracked = tuple(p for p in self.untracked if os.path.lexists(os.path.join(self.root, p)))
        tracked = [self.stamps.names[place] for place in places if place >= len(folders)]
        # Other attributes may make git see other content in files that nobody touched.
        return None if any(name.endswith(ATTRIBUTES_FILE) for name in tracked) else Differences(tracked, self.untracked)

    def _look_again(self, place: int, path: str) -> bool | None:
        """Whether names went; None when some came."""
        folder, seen = self.folders[path], _look_at(path)
        if seen is None or seen.names - folder.names:
            return None
        # A folder that went takes along what was remembered below it.
        if any(is_folder for _name, is_folder in folder.names - seen.names):
            return None
        went = seen.names != folder.names
        if not _is_settled(seen.stamp):
            return None
        self.folders[path] = seen
        self.stamps.set_stamp(place, seen.stamp)
        return went


def stamp_worktree(root: str, folders: dict[str, _Folder], tracked: Iterable[str]) -> FileStamps | None:
    """To be read before git is asked. None where a folder got another stamp since its names were read."""
    names = [os.path.relpath(path, root) for path in folders]
    stamps = FileStamps(root, [*names, *tracked])
    same = all(stamps.stamp(place) == folder.stamp for place, folder in enumerate(folders.values()))
    return stamps if same else None


def compares_other_content(texts: Sequence[bytes]) -> bool:
    """By the attributes and settings that count: what lies in a file is not what git compares."""
    return any(_REWRITES.search(text) for text in texts)


def changes_line_ends(texts: Sequence[bytes]) -> bool:
    return any(_CHANGES_LINE_ENDS.search(text) for text in texts)


def read_folders(
    root: str, tracked: Iterable[str], ignored: AskIgnored, before: "KnownFolders | None" = None
) -> dict[str, _Folder] | None:
    """Every folder in which a new file would count. To be read before git is asked; None where they cannot be kept."""
    tracked_folders, old = _folders_of(tracked), before.folders if before else {}
    folders: dict[str, _Folder] = {}
    waiting, unsure = [""], list[str]()
    while waiting or unsure:
        if not waiting:
            # One call of git for all folders that hold no tracked file.
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
            # A repository inside of this one is no part of its content.
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
    """The stamp first: what is added while the names are read shows as another stamp the next time."""
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
    """Of files whose content decides; one that is not there has a stamp as well."""
    stamps: list[object] = []
    for path in paths:
        try:
            seen = os.stat(path)
        except OSError:
            stamps.append(None)
        else:
            stamps.append((seen.st_mtime_ns, seen.st_size, seen.st_ino))
    return tuple(stamps)
