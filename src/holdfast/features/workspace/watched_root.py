"""One worktree under watch: how its files looked last, and what has to be looked at again."""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from holdfast.core.times import now_ms
from holdfast.features.workspace import git_files
from holdfast.features.workspace.content_store import ABSENT, UNKEPT, ContentStore, Seen
from holdfast.features.workspace.git_files import Commit, IgnoreAsker, Look, Moved, Place, Tracked
from holdfast.features.workspace.settings import DEFAULTS, WorkspaceSettings

GIT = "git:"
"""Begins the id of content that git has; the rest is git's object id."""
MOST_FILES = 50_000
"""Changed and new files of one worktree that are kept."""
STAGING = ".holdfast-undo-"
"""Begins the name of the folder in which an undo prepares its files."""
MANY = 300
"""So many pending files are looked at with the help of git, which knows those that did not change."""
SETTLED_NS = 20_000_000
"""A file written within one clock tick can change again without a new stamp."""
MOST_SORTED = 5_000
READS = 3
_OURS = re.compile(r"(?:^|/)\.[^/]*\.partial(?:-\d+)?$")
"""Files that Holdfast is just writing (`paths.write_atomically`)."""
MOST_NOTES = 20


class WatchedRoot:
    """Not thread-safe: the recorder's lock protects it."""

    def __init__(self, place: Place, store: ContentStore, writer_of: Callable[["WatchedRoot", str], tuple[str, str]]):
        self.place, self.root = place, place.root
        self.settings: WorkspaceSettings = DEFAULTS
        self.project = place.root
        self.identity = identity_of(place.root)
        self.folders: dict[str, int] = {}
        """Watched folders, relative, by the number of their watch."""
        self.pending: dict[str, None] = {}
        self.current = False
        """Whether every change since the last look is known or pending."""
        self.partly = self.unwatched = ""
        """Why git could not be asked, and why some folders are not watched."""
        self.notes: dict[str, str] = {}
        """Files that are not kept, and why."""
        self.files = store.files(self.root)
        self.ignore = IgnoreAsker(place, lambda: self.settings.include)
        self._store, self._writer_of = store, writer_of
        self._look = Look(git_files.commit_of(place, ""))
        self._initial: set[str] = set()
        """Files that were there at the first look, and that were not captured yet."""
        self._converted: set[str] = set()
        self._unlisted: set[str] = set()
        """Files of the commit that are not on disk although git calls them unchanged (sparse checkouts)."""
        self._base = git_files.commit_of(place, store.head(self.root))
        """What `files` is based on: that a file of it is gone must be remembered."""
        self._real: dict[str, bool] = {}
        """Whether folders are reached without symlinks, as of the present capture."""
        self.backlog = 0
        """Files that the last capture left, which git has looked at already."""
        self.head = ""
        """Where HEAD was at the last call, in words."""
        self.sessions: set[str] = set()
        self.late = 0
        """Calls that began before everything was captured."""
        self.captures = 0
        self._looked = False
        self._excludes = 0

    @property
    def tracked(self) -> dict[str, Tracked]:
        """What HEAD had at the last look."""
        return self._look.commit.files()

    @property
    def last_look(self) -> Look:
        return self._look

    def inside(self, files: Iterable[str]) -> list[str]:
        """Those of this worktree, relative to it."""
        top = f"{self.root}/"
        return list(dict.fromkeys(one[len(top) :] for one in map(os.path.normpath, files) if one.startswith(top)))

    def state_of(self, path: str) -> Seen:
        seen = self.files.get(path)
        if seen is None and path not in self._look.changed and path not in self._unlisted:
            seen = _as_seen(self.tracked.get(path))
        return seen or ABSENT

    @property
    def problem(self) -> str:
        """Why changes are seen only by looks before calls."""
        return self.partly or self.unwatched

    def known_below(self, folder: str) -> list[str]:
        start = f"{folder}/"
        return [path for known in (self.files, self.tracked) for path in known if path.startswith(start)]

    # ── looks ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def take(self, look: Look) -> None:
        """Compare with what git says now. What was known and is not named any more has to be looked at too."""
        self.partly = look.problem
        if look.problem:
            self.expect_all()
            return
        # The first time, with what an earlier daemon saw: what happened without one is known too.
        before = self._look.commit if self._looked else self._base
        moved = git_files.differing(self.place, before.oid, look.commit.oid)
        if not self._looked and (moved is None or not before.oid):
            self._base, before = look.commit, look.commit
            self._initial = set(islice(look.changed, MOST_FILES)) - self.files.keys()
            self._store.set_head(self.root, look.commit.oid, self.place.shared)
        elif before.oid:
            self._compare(before, look, git_files.compare_files(before, look.commit) if moved is None else moved)
        self._look, self._looked = look, True
        self.pending.update(dict.fromkeys([*islice(look.changed, MOST_FILES), *self.files]))
        if len(look.changed) > MOST_FILES:
            self.notes["(more)"] = f"{len(look.changed) - MOST_FILES} files beyond the first {MOST_FILES}"

    def take_converted(self, converted: Iterable[str], missing: Iterable[str]) -> None:
        """Clean files that are not as git's object is are kept like changed ones."""
        known = self.files.keys() | self._look.changed.keys() | self.pending.keys()
        self._converted = set(converted) - known
        self._unlisted = set(missing) - known
        self._initial |= self._converted
        self.pending.update(dict.fromkeys(self._converted))

    def expect_all(self) -> None:
        """Git cannot help: the folder is gone, or no worktree any more."""
        if not self._looked:
            self._look, self._looked = Look(self._base), True
        self.pending.update(dict.fromkeys([*self.files, *self.tracked]))

    def _compare(self, before: Commit, now: Look, moved: Sequence[Moved]) -> None:
        """Files that were git's version before: what differs from HEAD now, and what is another version of git's."""
        self._initial -= self._initial - now.changed.keys() - self._converted
        known = before.some([path for path in now.changed if path not in self.files and path not in self._look.changed])
        self.files.update({path: Seen(GIT + was.oid, was.mode) for path, was in known.items()})
        with self._store.transaction():
            for path, was, is_now in moved:
                if path not in self.files and path not in now.changed:
                    self._note(path, _as_seen(was), _as_seen(is_now))
        # Git has looked at the others already.
        if rest := self.pending.keys() - self.files.keys() - now.changed.keys() - self._converted:
            for path in rest & now.commit.files().keys():
                del self.pending[path]

    def capture(self, until: float, *, waiting: bool, most: int = 1 << 30) -> bool:
        """Look at pending files, small ones first; return whether none is left."""
        self._notice_new_excludes()
        self._real.clear()
        names = list(islice(self.pending, most))
        if 1 < len(names) <= MOST_SORTED:
            names.sort(key=self._size)
        with self._store.transaction():
            for done, path in enumerate(names):
                if time.monotonic() > until and done:
                    break
                if waiting or not self._is_growing(path):
                    self.pending.pop(path, None)
                    self._capture_one(path)
        self.backlog = len(self.pending)
        return not self.pending

    def _notice_new_excludes(self) -> None:
        try:
            stamp = os.stat(os.path.join(self.place.shared, "info", "exclude")).st_mtime_ns
        except OSError:
            stamp = 0
        if stamp != self._excludes:
            self._excludes = stamp
            self.ignore.forget()

    def _size(self, path: str) -> int:
        try:
            return os.lstat(os.path.join(self.root, path)).st_size
        except OSError:
            return 0

    def _is_growing(self, path: str) -> bool:
        """A large file that was captured a moment ago, such as a log, waits for the next call."""
        seen = self.files.get(path)
        if seen is None or not seen.stamp:
            return False
        _mtime, size, _inode, captured = map(int, seen.stamp.split(" "))
        return size > 1 << 18 and time.time() - captured < 5

    def _capture_one(self, path: str) -> None:
        if path.startswith(STAGING):
            return
        self.captures += 1
        before = self.state_of(path)
        after = self._see(path, before)
        if after is None:
            return
        unkept = after.id == UNKEPT and not _same_file(before.stamp, after.stamp)
        if (after.id, after.mode) != (before.id, before.mode) or unkept:
            self._note(path, before, after)
        elif (path in self.files and after.stamp != before.stamp) or (path in self._initial and not after.id):
            # A file of HEAD that was gone at the first look: the next daemon has to know that too.
            self._remember(path, Seen(after.id, after.mode, after.stamp, before.by))
        self._initial.discard(path)
        self._converted.discard(path)

    def _note(self, path: str, before: Seen, after: Seen) -> None:
        writer, call = self._writer_of(self, path)
        # What the first look found was there before; nobody knows who wrote it.
        first = path in self._initial
        after = Seen(after.id, after.mode, after.stamp, "?" if first else writer)
        if not first:
            self._store.add_change(self.root, path, before, after, now_ms(), call)
        self._store.add_writer(self.root, path, before, after)
        self._remember(path, after)

    def _remember(self, path: str, seen: Seen) -> None:
        if seen.id or path in self._base.files() or path in self.tracked:
            self.files[path] = seen
            self._store.note(self.root, path, seen)
        elif self.files.pop(path, None) is not None:
            self._store.forget(self.root, path)

    # ── one file ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _see(self, path: str, before: Seen) -> Seen | None:
        """How the file looks now; None if there is nothing to note."""
        whole = os.path.join(self.root, path)
        try:
            found = os.lstat(whole)
            if not self._is_real_folder(os.path.dirname(whole)):
                return ABSENT  # A folder on the way is a symlink: it is another file.
        except OSError:
            return ABSENT
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            return ABSENT  # A folder, pipe, socket or device has no content of its own.
        stamp = stamp_of(found)
        if before.stamp and _same_file(before.stamp, stamp) and before.mode == found.st_mode and before.id != UNKEPT:
            return None
        if before is ABSENT and (_OURS.search(path) or self.ignore.is_ignored(path)):
            return None
        if before is ABSENT and len(self.files) >= MOST_FILES:
            self._note_unkept(path, f"more than {MOST_FILES} changed files")
            return None
        return self._keep(path, whole, found, before)

    def _is_real_folder(self, folder: str) -> bool:
        real = self._real.get(folder)
        if real is None:
            real = self._real[folder] = os.path.realpath(folder) == folder
        return real

    def _keep(self, path: str, whole: str, found: os.stat_result, before: Seen) -> Seen:
        if found.st_size > self.settings.max_file_mb << 20:
            self._note_unkept(path, f"larger than {self.settings.max_file_mb} MB")
            return Seen(UNKEPT, found.st_mode, stamp_of(found))
        try:
            content, found = self._read(whole, found)
        except FileNotFoundError:
            return ABSENT
        except OSError as error:
            self._note_unkept(path, error.strerror or str(error))
            return Seen(UNKEPT, found.st_mode, stamp_of(found))
        oid = before.id.removeprefix(GIT) if before.id.startswith(GIT) else ""
        # Git's modes know only whether a file is executable.
        if oid and _git_mode(found.st_mode) == _git_mode(before.mode) and git_files.object_id(content, oid) == oid:
            return before
        self.notes.pop(path, None)
        try:
            kept = self._store.put(content, before.id, now_ms())
        except Exception as error:  # The disk is full, or the database damaged: never the agent's problem.
            self._note_unkept(path, str(error))
            kept = UNKEPT
        return Seen(kept, found.st_mode, stamp_of(found))

    def _read(self, whole: str, found: os.stat_result) -> tuple[bytes, os.stat_result]:
        if stat.S_ISLNK(found.st_mode):
            return os.fsencode(os.readlink(whole)), found
        for _attempt in range(READS):
            fd = os.open(whole, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(fd, "rb") as file:
                found = os.fstat(fd)
                content = file.read((self.settings.max_file_mb << 20) + 1)
                if stamp_of(os.fstat(fd)) == stamp_of(found):
                    break
        return content, found

    def _note_unkept(self, path: str, why: str) -> None:
        if len(self.notes) < MOST_NOTES or path in self.notes:
            self.notes[path] = why


def content_of(store: ContentStore, repo: str, name: str) -> bytes | None:
    """None if it is not kept any more."""
    if not name:
        return b""
    if name.startswith(GIT):
        return git_files.read_blob(repo, name[len(GIT) :])
    return None if name == UNKEPT else store.get(name)


def _as_seen(tracked: Tracked | None) -> Seen:
    return Seen(GIT + tracked.oid, tracked.mode) if tracked else ABSENT


def stamp_of(found: os.stat_result) -> str:
    """Modification time, size and inode, and when it was taken."""
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    # Too fresh to rely on: a second write in the same tick would have the same stamp.
    settled = changed if time.time_ns() - changed > SETTLED_NS else 0
    return f"{settled} {found.st_size} {found.st_ino} {int(time.time())}"


def _same_file(one: str, other: str) -> bool:
    before, now = one.split(" ")[:3], other.split(" ")[:3]
    return before == now and before[0] != "0"


def _git_mode(mode: int) -> tuple[int, bool]:
    return stat.S_IFMT(mode), bool(mode & 0o100)


def identity_of(root: str) -> tuple[int, int]:
    try:
        found = os.lstat(root)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def folders_of(paths: Iterable[str]) -> Iterator[str]:
    """Every folder on the way to these files, the root first."""
    known = {""}
    yield ""
    for path in paths:
        folder = os.path.dirname(path)
        missing = []
        while folder not in known:
            known.add(folder)
            missing.append(folder)
            folder = os.path.dirname(folder)
        yield from reversed(missing)
