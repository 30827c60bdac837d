"""A fingerprint of a worktree's content: equal when every tracked and untracked, not ignored file has the same content.

It does not change when content is staged or committed, only when content changes. Git's index says what is unchanged;
changed and new files are hashed, and remembered by their stat. Nothing raises: what takes too long is unknown.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from holdfast.core import git
from holdfast.core.file_stamps import (
    ATTRIBUTES_FILE,
    SETTLED_NS,
    KnownFolders,
    Stamp,
    changes_line_ends,
    compares_other_content,
    file_stamps,
    ignore_files_in,
    read_folders,
    stamp_of,
    stamp_worktree,
)
from holdfast.core.job import Run, run_briefly

# Files; with more changes than this the content counts as unknown.
MAX_CHANGED = 20_000
MAX_HASHED_BYTES = 32_000_000
MAX_SUBMODULE_DEPTH = 3
PATIENT_S = 0.6
"""For a second look. With the first one it stays well below the two seconds that a hook waits."""
MAX_REMEMBERED = 30
"""Of how many worktrees it is remembered what git said."""
MAX_SETTINGS_BYTES = 1 << 20
SHA256_DIGITS = 64
# The mode of a submodule in git's index.
SUBMODULE = "160000"
# The sum of all files' hashes is taken modulo this: one changed file is exchanged without reading the others.
_WIDTH = 1 << 128


class Fingerprint(msgspec.Struct, frozen=True):
    content: str = ""
    """Empty when unknown."""
    changed: int = 0
    """How many files differ from the index or are new."""
    why_unknown: str = ""
    out_of_time: bool = False
    """It is unknown only because the look took too long: another one may tell."""
    newest: int = 0
    """When the last of them was written, in milliseconds; 0 where none is there."""

    @property
    def is_known(self) -> bool:
        return bool(self.content)


class _Entry(NamedTuple):
    mode: str
    oid: str


class _Hashed(NamedTuple):
    stamp: Stamp
    entry: _Entry
    has_crlf: bool


class _Index(msgspec.Struct):
    stamp: tuple[int, int, int]
    entries: dict[str, _Entry]
    sums: dict[tuple[str, ...], int]


class _Seen(msgspec.Struct, frozen=True):
    """What one look at a worktree showed; sums over parts of it need no second look."""

    root: str
    index: _Index
    changed: list[str]


class _OutOfTime(Exception):
    pass


def content_key(covers: Sequence[str]) -> str:
    """The name of a part of the content in `HookPayload.content`; the empty one is everything."""
    return "\n".join(sorted(set(covers)))


class Fingerprinter:
    """Takes fingerprints of one machine's worktrees and remembers what it hashed."""

    def __init__(self, run: Run, environment: Mapping[str, str]) -> None:
        self._run = run
        self._environment = git.git_environment(environment)
        self._hashes: dict[str, _Hashed] = {}
        self._sha256: set[str] = set()
        """Worktrees whose git names its objects by SHA-256."""
        self._indexes: dict[str, _Index] = {}
        self._folders: dict[str, KnownFolders] = {}
        self._asked_for: set[str] = set()
        """Worktrees of which git had to be asked."""

    def take_fingerprint(self, root: str, covers: Iterable[str] = (), budget_s: float = 0.15) -> Fingerprint:
        """`covers`: globs as in .gitignore; only matching files count. Over the budget the content is unknown."""
        return self.take_parts(root, (tuple(covers),), budget_s)[0]

    def take_patiently(self, root: str, parts: Sequence[Sequence[str]], budget_s: float = 0.15) -> list[Fingerprint]:
        """With a second look where the first took too long: on a busy machine "unknown" would refuse honest work."""
        taken = self.take_parts(root, parts, budget_s)
        return self.take_parts(root, parts, PATIENT_S) if taken and taken[0].out_of_time else taken

    def take_parts(self, root: str, parts: Sequence[Sequence[str]], budget_s: float = 0.15) -> list[Fingerprint]:
        """One look for several parts of the content, each given as globs."""
        deadline = time.monotonic() + budget_s
        try:
            # A worktree that is reached by two names is remembered once.
            seen = self._look(os.path.realpath(root), deadline)
            return [seen if isinstance(seen, Fingerprint) else self._sum(seen, tuple(p), deadline, 0) for p in parts]
        except _OutOfTime:
            why = f"the content could not be read within {budget_s * 1000:.0f} ms"
            unknown = Fingerprint(why_unknown=why, out_of_time=True)
        except (OSError, ValueError) as error:
            unknown = Fingerprint(why_unknown=f"the content could not be read: {error}")
        return [unknown for _ in parts]

    def _look(self, root: str, deadline: float) -> "_Seen | Fingerprint":
        """What differs from the index, by what is remembered or else by git; or why nothing can be known."""
        return self._look_at_stamps(root, deadline) or self._ask_git(root, deadline)

    def _look_at_stamps(self, root: str, deadline: float) -> _Seen | None:
        """No program is run: each file and folder is looked at. None where that does not tell."""
        known, basis = self._folders.get(root), self._basis(root)
        if known is None or not basis:
            return None
        found = known.find_differences((*basis, *file_stamps(known.ignore_files)))
        index = self._index(root, deadline) if found else None
        if found is None or index is None:
            return None
        if known.changes_line_ends and any(self._has_crlf(os.path.join(root, path)) for path in found.tracked):
            return None  # Git may take its line ends for others: then its content is the same to it.
        return _Seen(root, index, [*found.tracked, *found.untracked])

    def _ask_git(self, root: str, deadline: float) -> "_Seen | Fingerprint":
        self._asked_for.add(root)
        out = self._git(root, deadline, *git.status_argv(filters=self._own_filters(root, deadline)))
        if out is None:
            return Fingerprint(why_unknown=f"git shows no worktree at {root}")
        status = git.parse_status(out)
        if status.cut or len(status.changes) > MAX_CHANGED:
            return Fingerprint(why_unknown="too many files are changed or new")
        index = self._index(root, deadline)
        if index is None:
            return Fingerprint(why_unknown="git could not list the index")
        return _Seen(root, index, [change.path for change in status.changes if _differs_from_index(change)])

    # ── what is remembered of git's answers ──────────────────────────────────────────────────────────────────────────

    def _basis(self, root: str) -> tuple[object, ...]:
        """What decides which files differ or are new, beside themselves: the index, git's settings and rules. Empty: not
        known."""
        stamp = _index_stamp(root)
        return () if stamp is None else (stamp, *file_stamps(self._settings_files(root)))

    def _settings_files(self, root: str) -> list[str]:
        """Files outside of the worktree that change what git makes of it."""
        names = ("config", "config.worktree", "info/exclude", "info/attributes", "info/sparse-checkout")
        own = [os.path.join(where, name) for where in git_folders(git_folder(root) or "") for name in names]
        home = self._environment.get("HOME", "")
        settings = os.path.join(self._environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git")
        users = [os.path.join(settings, name) for name in ("config", "ignore", "attributes")]
        return [*own, os.path.join(home, ".gitconfig"), *users]

    def remember_folders(self, budget_s: float = 5.0) -> None:
        """Reads the worktrees of which git was asked, so that later looks need not ask it.

        Takes a moment: for a thread that nobody waits for.
        """
        while self._asked_for:
            root = self._asked_for.pop()
            try:
                folders = self._read_folders(root, time.monotonic() + budget_s)
            except (_OutOfTime, OSError, ValueError):
                folders = None
            if folders is not None:
                if len(self._folders) >= MAX_REMEMBERED:
                    self._folders.clear()
                self._folders[root] = folders

    def _read_folders(self, root: str, deadline: float) -> KnownFolders | None:
        """Folders and files before git's answer: what is written in between shows in their stamps the next time."""
        basis = self._basis(root)
        index = self._index(root, deadline) if basis else None
        # The stamps of a worktree do not show what changes inside of its submodules.
        if index is None or any(entry.mode == SUBMODULE for entry in index.entries.values()):
            return None
        attributes = self._read_attributes(root, index)
        before = self._folders.get(root)
        folders = read_folders(root, index.entries, lambda some: self._ignored(root, deadline, some), before)
        if folders is None or compares_other_content(attributes):
            return None
        rules = ignore_files_in(folders)
        basis = (*basis, *file_stamps(rules))
        stamps = stamp_worktree(root, folders, index.entries)
        out = self._git(root, deadline, *git.status_argv(filters=self._own_filters(root, deadline)))
        status = git.parse_status(out) if out else git.Status(cut=True)
        new = tuple(change.path for change in status.changes if change.untracked)
        # A new file in a folder that was not read could change without being noticed.
        seen = all(os.path.dirname(os.path.join(root, path.rstrip("/"))) in folders for path in new)
        if stamps is None or status.cut or len(status.changes) > MAX_CHANGED or not seen:
            return None
        # Git compared their content: whether it still differs is found out by hashing them, at every look.
        different = {change.path for change in status.changes if _differs_from_index(change) and not change.untracked}
        stamps.forget(place for place, name in enumerate(stamps.names) if name in different)
        return KnownFolders(root, basis, folders, stamps, rules, new, changes_line_ends(attributes))

    def _read_attributes(self, root: str, index: _Index) -> list[bytes]:
        """Texts that may say that git compares something else than what lies in a file."""
        named = [os.path.join(root, path) for path in index.entries if path.endswith(ATTRIBUTES_FILE)]
        return [read_head(path, MAX_SETTINGS_BYTES) for path in (*named, *self._settings_files(root))]

    def _ignored(self, root: str, deadline: float, folders: list[str]) -> set[str] | None:
        """Folders without any file that git knows: they are ignored, or empty and may get one."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise _OutOfTime
        stdin = b"".join(os.fsencode(f"./{path}/") + b"\0" for path in folders)
        words = git.git_argv("check-ignore", "-z", "--stdin")
        ran = self._run(words, cwd=root, env=self._environment, stdin=stdin, timeout=left)
        # `check-ignore` ends with 1 where it ignores none of them.
        if ran.timed_out or ran.code not in (0, 1):
            return None
        return {os.fsdecode(name).removeprefix("./").rstrip("/") for name in ran.out.split(b"\0") if name}

    def _sum(self, seen: _Seen, covers: tuple[str, ...], deadline: float, depth: int) -> Fingerprint:
        matches = _path_matcher(covers)
        total, newest = self._index_sum(seen.index, covers), 0
        for path in seen.changed:
            if matches(path):
                difference, written = self._difference(seen.root, path, seen.index, deadline)
                total, newest = total + difference, max(newest, written)
        total += self._submodules(seen.root, seen.index, deadline, depth)
        return Fingerprint(f"{total % _WIDTH:032x}", len(seen.changed), newest=newest // 1_000_000)

    def _take_once(self, root: str, deadline: float, depth: int) -> Fingerprint:
        seen = self._look(root, deadline)
        return seen if isinstance(seen, Fingerprint) else self._sum(seen, (), deadline, depth)

    def _own_filters(self, root: str, deadline: float) -> list[str]:
        """Programs that the repository's own config would have git run on changed files: they are switched off."""
        folder = git_folder(root)
        texts = [read_head(os.path.join(where, "config"), 1 << 20) for where in git_folders(folder)] if folder else []
        if folder:
            texts.append(read_head(os.path.join(folder, "config.worktree"), 1 << 20))
        if not any(git.may_name_filters(text) for text in texts):
            return []
        return git.own_filters(self._git(root, deadline, *git.config_names()) or b"")

    def _git(self, root: str, deadline: float, *words: str) -> bytes | None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise _OutOfTime
        ran = self._run(list(words), cwd=root, env=self._environment, timeout=left)
        if ran.timed_out:
            raise _OutOfTime
        return ran.out if ran.code == 0 else None

    # ── what the index holds ─────────────────────────────────────────────────────────────────────────────────────────

    def _index(self, root: str, deadline: float) -> _Index | None:
        stamp = _index_stamp(root)
        cached = self._indexes.get(root)
        if cached is not None and stamp is not None and cached.stamp == stamp:
            return cached
        out = self._git(root, deadline, *git.git_argv("ls-files", "-z", "--stage"))
        if out is None:
            return None
        entries = _parse_stage(out)
        if entries and len(next(iter(entries.values())).oid) == SHA256_DIGITS:
            self._sha256.add(root)
        # Most entries are as before: sums are corrected by the difference.
        index = _Index(stamp or (0, 0, 0), entries, _updated_sums(cached, entries) if cached else {})
        if stamp is not None:
            self._indexes[root] = index
        return index

    def _index_sum(self, index: _Index, covers: tuple[str, ...]) -> int:
        total = index.sums.get(covers)
        if total is None:
            matches = _path_matcher(covers)
            total = sum(_entry_hash(path, entry) for path, entry in index.entries.items() if matches(path))
            index.sums[covers] = total
        return total

    # ── what differs from it ─────────────────────────────────────────────────────────────────────────────────────────

    def _difference(self, root: str, path: str, index: _Index, deadline: float) -> tuple[int, int]:
        """What the file adds to the sum, and when it was written."""
        # Hashing is what takes long, so the time is looked at before each file.
        if time.monotonic() > deadline:
            raise _OutOfTime
        before = index.entries.get(path)
        now, written = self._hash(os.path.join(root, path))
        return (_entry_hash(path, now) if now else 0) - (_entry_hash(path, before) if before else 0), written

    def _hash(self, path: str) -> tuple[_Entry | None, int]:
        try:
            file_stat = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None, 0
        stamp = stamp_of(file_stat)
        cached = self._hashes.get(path)
        if cached is not None and cached.stamp == stamp:
            return cached.entry, file_stat.st_mtime_ns
        wide = any(path.startswith(f"{root}/") for root in self._sha256)
        entry, has_crlf = _hash_file(path, file_stat, hashlib.sha256 if wide else hashlib.sha1)
        if len(self._hashes) > 4 * MAX_CHANGED:
            self._hashes.clear()
        # A file written within the same clock tick could change again without a new stamp.
        if time.time_ns() - file_stat.st_mtime_ns > SETTLED_NS:
            self._hashes[path] = _Hashed(stamp, entry, has_crlf)
        return entry, file_stat.st_mtime_ns

    def _has_crlf(self, path: str) -> bool:
        """A file that is gone has none; one that was written this moment is read once more."""
        entry, _ = self._hash(path)
        known = self._hashes.get(path)
        return known.has_crlf if known and known.entry == entry else b"\r\n" in read_head(path, MAX_HASHED_BYTES)

    def _submodules(self, root: str, index: _Index, deadline: float, depth: int) -> int:
        """Content of checked-out submodules: each is a worktree of its own."""
        links = [path for path, entry in index.entries.items() if entry.mode == SUBMODULE] if _has_modules(root) else []
        total = 0
        for path in links if depth < MAX_SUBMODULE_DEPTH else ():
            folder = os.path.join(root, path)
            if os.path.exists(os.path.join(folder, ".git")):
                inner = self._take_once(folder, deadline, depth + 1)
                if not inner.is_known:
                    raise ValueError(f"submodule {path}: {inner.why_unknown}")
                total += _entry_hash(path, _Entry("submodule", inner.content))
        return total


def _differs_from_index(change: git.Change) -> bool:
    # The second letter compares the worktree with the index; staging changes only the first.
    return change.untracked or change.conflict or change.code[1:] != "."


def _updated_sums(known: _Index, entries: dict[str, _Entry]) -> dict[tuple[str, ...], int]:
    """Sums over another index, by what differs: most commits change a few files of thousands."""
    gone, new = known.entries.items() - entries.items(), entries.items() - known.entries.items()
    sums = {}
    for covers, before in known.sums.items():
        matches = _path_matcher(covers)
        added = sum(_entry_hash(path, entry) for path, entry in new if matches(path))
        sums[covers] = before + added - sum(_entry_hash(path, entry) for path, entry in gone if matches(path))
    return sums


def _has_modules(root: str) -> bool:
    return os.path.exists(os.path.join(root, ".gitmodules"))


def _index_stamp(root: str) -> tuple[int, int, int] | None:
    """The stat of the index file; None where it cannot be found or was written this very moment."""
    folder = git_folder(root)
    if folder is None:
        return None
    try:
        file_stat = os.stat(os.path.join(folder, "index"))
    except OSError:
        return None
    # Within one tick of the clock the index can change once more and keep its stamp. In nanoseconds.
    fresh = time.time_ns() - file_stat.st_mtime_ns < 20_000_000
    return None if fresh else (file_stat.st_mtime_ns, file_stat.st_size, file_stat.st_ino)


def git_folder(root: str) -> str | None:
    """The worktree's own git folder, also where `.git` is a file that points to it."""
    path = os.path.join(root, ".git")
    if os.path.isdir(path):
        return path
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(4_096)
    except OSError:
        return None
    target = text.partition("gitdir:")[2].strip()
    return os.path.normpath(os.path.join(root, target)) if target else None


def git_folders(folder: str) -> list[str]:
    """A worktree's git folder, and the one it shares with the others where that is another."""
    shared = read_head(os.path.join(folder, "commondir"), 4_096).decode("utf-8", "surrogateescape").strip()
    return [folder, os.path.normpath(os.path.join(folder, shared))] if shared else [folder]


def read_head(path: str, size: int) -> bytes:
    """The beginning of a file; empty where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError:
        return b""


def _parse_stage(out: bytes) -> dict[str, _Entry]:
    """Lines of `mode hash stage TAB name`."""
    entries: dict[str, _Entry] = {}
    for line in out.decode("utf-8", "surrogateescape").split("\0"):
        head, tab, name = line.partition("\t")
        if tab:
            # Six digits of mode, a blank, the hash, a blank, one digit of stage.
            entries[name] = _Entry(head[:6], head[7:-2])
    return entries


def _hash_file(path: str, file_stat: os.stat_result, digest: "Callable[..., hashlib._Hash]") -> tuple[_Entry, bool]:
    """The same identity that git gives the content, so that staging it changes nothing; and whether it has CRLF in it."""
    if stat.S_ISLNK(file_stat.st_mode):
        return _Entry("120000", _blob_id(os.readlink(path).encode("utf-8", "surrogateescape"), digest)), False
    if not stat.S_ISREG(file_stat.st_mode):
        # A pipe, a socket or a device: there is no content to be hashed.
        return _Entry("other", str(file_stat.st_mtime_ns)), False
    mode = "100755" if file_stat.st_mode & 0o100 else "100644"
    if file_stat.st_size > MAX_HASHED_BYTES:
        # Too large to be read before a hook: size and time stand for the content, and CRLF is possible.
        return _Entry(mode, f"{file_stat.st_size}:{file_stat.st_mtime_ns}"), True
    with open(path, "rb") as file:
        data = file.read()
    return _Entry(mode, _blob_id(data, digest)), b"\r\n" in data


def _blob_id(data: bytes, digest: "Callable[..., hashlib._Hash]") -> str:
    return digest(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _entry_hash(path: str, entry: _Entry) -> int:
    text = f"{entry.mode} {entry.oid} {path}".encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")


class _Everything:
    def __call__(self, _path: str) -> bool:
        return True


class _Covered:
    def __init__(self, covers: tuple[str, ...]) -> None:
        import pathspec

        self._spec = pathspec.PathSpec.from_lines("gitignore", covers)

    def __call__(self, path: str) -> bool:
        return bool(self._spec.match_file(path))


def _path_matcher(covers: tuple[str, ...]) -> "_Everything | _Covered":
    return _Covered(covers) if covers else _Everything()


@cache
def shared_fingerprinter() -> Fingerprinter:
    """One for the whole process: what was hashed and remembered for one question serves the next."""
    return Fingerprinter(run_briefly, os.environ)
