"""Takes fingerprints of a worktree's content: equal if every tracked or untracked, not ignored file is equal."""

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

# With more changed files than this the content is unknown.
MAX_CHANGED = 20_000
MAX_HASHED_BYTES = 32_000_000
MAX_SUBMODULE_DEPTH = 3
PATIENT_S = 0.6
"""Seconds for a second look; both looks together stay below the two seconds a hook waits."""
MAX_REMEMBERED = 30
"""How many worktrees are remembered."""
MAX_SETTINGS_BYTES = 1 << 20
SHA256_DIGITS = 64
# The mode of a submodule in git's index.
SUBMODULE = "160000"
# The sum of all file hashes is taken modulo this, so one changed file is exchanged without reading the others.
_WIDTH = 1 << 128


class Fingerprint(msgspec.Struct, frozen=True):
    content: str = ""
    """Empty if unknown."""
    changed: int = 0
    """How many files differ from the index or are new."""
    why_unknown: str = ""
    out_of_time: bool = False
    """It is unknown only because time ran out."""
    newest: int = 0
    """When the newest of them was written, in ms; 0 if there is none."""

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
    unwatched: list[str] = []
    """Files whose changes git overlooks (`--assume-unchanged`, `--skip-worktree`)."""


class _Seen(msgspec.Struct, frozen=True):
    """The result of one look at a worktree; sums over parts of it need no second look."""

    root: str
    index: _Index
    changed: list[str]


class _OutOfTime(Exception):
    pass


def content_key(covers: Sequence[str]) -> str:
    """The key of a part of the content in `HookPayload.content`; empty means everything."""
    return "\n".join(sorted(set(covers)))


class Fingerprinter:
    """Takes fingerprints of this machine's worktrees and remembers file hashes."""

    def __init__(self, run: Run, environment: Mapping[str, str]) -> None:
        self._run = run
        self._environment = git.git_environment(environment)
        self._hashes: dict[str, _Hashed] = {}
        self._sha256: set[str] = set()
        """Worktrees whose git uses SHA-256."""
        self._indexes: dict[str, _Index] = {}
        self._folders: dict[str, KnownFolders] = {}
        self._asked_for: set[str] = set()
        """Worktrees for which git had to be asked."""

    def take_fingerprint(self, root: str, covers: Iterable[str] = (), budget_s: float = 0.15) -> Fingerprint:
        """Take a fingerprint of the files that match `covers` (globs as in .gitignore). Unknown beyond the time
        budget."""
        return self.take_parts(root, (tuple(covers),), budget_s)[0]

    def take_patiently(self, root: str, parts: Sequence[Sequence[str]], budget_s: float = 0.15) -> list[Fingerprint]:
        """Retry once if the first look took too long: on a busy machine "unknown" would refuse honest work."""
        taken = self.take_parts(root, parts, budget_s)
        return self.take_parts(root, parts, PATIENT_S) if taken and taken[0].out_of_time else taken

    def take_parts(self, root: str, parts: Sequence[Sequence[str]], budget_s: float = 0.15) -> list[Fingerprint]:
        """Take fingerprints of several parts, each given as globs, with one look."""
        deadline = time.monotonic() + budget_s
        try:
            # A worktree reached by two names is remembered once.
            seen = self._look(os.path.realpath(root), deadline)
            return [seen if isinstance(seen, Fingerprint) else self._sum(seen, tuple(p), deadline, 0) for p in parts]
        except _OutOfTime:
            why = f"the content could not be read within {budget_s * 1000:.0f} ms"
            unknown = Fingerprint(why_unknown=why, out_of_time=True)
        except (OSError, ValueError) as error:
            unknown = Fingerprint(why_unknown=f"the content could not be read: {error}")
        return [unknown for _ in parts]

    def _look(self, root: str, deadline: float) -> "_Seen | Fingerprint":
        """Find what differs from the index, from memory or by git; or the reason why it is unknown."""
        return self._look_at_stamps(root, deadline) or self._ask_git(root, deadline)

    def _look_at_stamps(self, root: str, deadline: float) -> _Seen | None:
        """Compare stamps without running a program. None if that is not enough."""
        known, basis = self._folders.get(root), self._basis(root)
        if known is None or not basis:
            return None
        found = known.find_differences((*basis, *file_stamps(known.ignore_files)))
        index = self._index(root, deadline) if found else None
        if found is None or index is None:
            return None
        if known.changes_line_ends and any(self._has_crlf(os.path.join(root, path)) for path in found.tracked):
            return None  # Git may take its line ends for others: then its content is the same to it.
        return _Seen(root, index, _with_unwatched(root, index, [*found.tracked, *found.untracked]))

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
        changed = [change.path for change in status.changes if _differs_from_index(change)]
        return _Seen(root, index, _with_unwatched(root, index, changed))

    # ── what is remembered of git's answers ──────────────────────────────────────────────────────────────────────────

    def _basis(self, root: str) -> tuple[object, ...]:
        """Stamps of what else decides which files differ: the index, git's settings and rules. Empty if unknown."""
        stamp = _index_stamp(root)
        return () if stamp is None else (stamp, *file_stamps(self._settings_files(root)))

    def _settings_files(self, root: str) -> list[str]:
        """Files outside the worktree that change git's answer."""
        names = ("config", "config.worktree", "info/exclude", "info/attributes", "info/sparse-checkout")
        own = [os.path.join(where, name) for where in git_folders(git_folder(root) or "") for name in names]
        home = self._environment.get("HOME", "")
        settings = os.path.join(self._environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git")
        users = [os.path.join(settings, name) for name in ("config", "ignore", "attributes")]
        return [*own, os.path.join(home, ".gitconfig"), *users]

    def remember_folders(self, budget_s: float = 5.0) -> None:
        """Read the worktrees that needed git, so that later looks don't. Takes a while; call it from a thread nobody
        waits for."""
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
        """Read folders and files before git's answer, so that a write in between changes a stamp."""
        basis = self._basis(root)
        index = self._index(root, deadline) if basis else None
        # Stamps do not show changes inside submodules.
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
        # A new file in a folder that was not read could change unnoticed.
        seen = all(os.path.dirname(os.path.join(root, path.rstrip("/"))) in folders for path in new)
        if stamps is None or status.cut or len(status.changes) > MAX_CHANGED or not seen:
            return None
        # Git compared their content, so they are hashed in every look.
        different = {change.path for change in status.changes if _differs_from_index(change) and not change.untracked}
        stamps.forget(place for place, name in enumerate(stamps.names) if name in different)
        return KnownFolders(root, basis, folders, stamps, rules, new, changes_line_ends(attributes))

    def _read_attributes(self, root: str, index: _Index) -> list[bytes]:
        """Read the texts that may make git compare something else than the file's bytes."""
        named = [os.path.join(root, path) for path in index.entries if path.endswith(ATTRIBUTES_FILE)]
        return [read_head(path, MAX_SETTINGS_BYTES) for path in (*named, *self._settings_files(root))]

    def _ignored(self, root: str, deadline: float, folders: list[str]) -> set[str] | None:
        """Folders without tracked files: ignored, or empty and open to new files."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise _OutOfTime
        stdin = b"".join(os.fsencode(f"./{path}/") + b"\0" for path in folders)
        words = git.git_argv("check-ignore", "-z", "--stdin")
        ran = self._run(words, cwd=root, env=self._environment, stdin=stdin, timeout=left)
        # `check-ignore` exits with 1 if it ignores none of them.
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
        """Filter programs from the repository's own config; they are switched off."""
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
        out = self._git(root, deadline, *git.git_argv("ls-files", "-z", "-v", "--stage"))
        if out is None:
            return None
        entries, unwatched = _parse_stage(out)
        if entries and len(next(iter(entries.values())).oid) == SHA256_DIGITS:
            self._sha256.add(root)
        # Most entries are unchanged, so sums are corrected by the difference.
        index = _Index(stamp or (0, 0, 0), entries, _updated_sums(cached, entries) if cached else {}, unwatched)
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
        """Return what the file adds to the sum, and when it was written."""
        # Hashing is slow, so the deadline is checked before each file.
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
        # A file written within one clock tick could change again without a new stamp.
        if time.time_ns() - file_stat.st_mtime_ns > SETTLED_NS:
            self._hashes[path] = _Hashed(stamp, entry, has_crlf)
        return entry, file_stat.st_mtime_ns

    def blob_of(self, path: str) -> str:
        """Git's id of a file's content; empty for no file, and for one that is too large to read."""
        entry = self._hash(os.path.realpath(os.path.dirname(path)) + os.sep + os.path.basename(path))[0]
        return entry.oid if entry and entry.mode != "other" and ":" not in entry.oid else ""

    def _has_crlf(self, path: str) -> bool:
        """Return whether the file has CRLF; a file just written is read again, a missing one has none."""
        entry, _ = self._hash(path)
        known = self._hashes.get(path)
        return known.has_crlf if known and known.entry == entry else b"\r\n" in read_head(path, MAX_HASHED_BYTES)

    def _submodules(self, root: str, index: _Index, deadline: float, depth: int) -> int:
        """The content of checked-out submodules, each a worktree of its own."""
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


def _with_unwatched(root: str, index: _Index, changed: list[str]) -> list[str]:
    """A sparse checkout leaves files out: one that is not there is no change."""
    there = [name for name in index.unwatched if os.path.lexists(os.path.join(root, name))]
    return list(dict.fromkeys([*changed, *there])) if there else changed


def _differs_from_index(change: git.Change) -> bool:
    # The second letter compares the worktree with the index; staging changes only the first.
    return change.untracked or change.conflict or change.code[1:] != "."


def _updated_sums(known: _Index, entries: dict[str, _Entry]) -> dict[tuple[str, ...], int]:
    """Update sums for another index by the difference: most commits change a few files of thousands."""
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
    """The stamp of the index file; None if it is missing or was just written."""
    folder = git_folder(root)
    if folder is None:
        return None
    try:
        file_stat = os.stat(os.path.join(folder, "index"))
    except OSError:
        return None
    # Within one clock tick the index can change again and keep its stamp.
    fresh = time.time_ns() - file_stat.st_mtime_ns < 20_000_000
    return None if fresh else (file_stat.st_mtime_ns, file_stat.st_size, file_stat.st_ino)


def git_folder(root: str) -> str | None:
    """Return the worktree's git folder, also where `.git` is a file."""
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
    """Return the worktree's git folder and, if different, the shared one."""
    shared = read_head(os.path.join(folder, "commondir"), 4_096).decode("utf-8", "surrogateescape").strip()
    return [folder, os.path.normpath(os.path.join(folder, shared))] if shared else [folder]


def read_head(path: str, size: int) -> bytes:
    """Read the beginning of a file; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError:
        return b""


def _parse_stage(out: bytes) -> tuple[dict[str, _Entry], list[str]]:
    """Parse lines of `tag mode hash stage TAB name`: entries, and the names of those that git does not watch."""
    entries: dict[str, _Entry] = {}
    unwatched: list[str] = []
    for line in out.decode("utf-8", "surrogateescape").split("\0"):
        head, tab, name = line.partition("\t")
        if tab:
            # A tag and a space, six digits of mode, a space, the hash, a space, one digit of stage.
            entries[name] = _Entry(head[2:8], head[9:-2])
            if head[0] == "S" or head[0].islower():
                unwatched.append(name)
    return entries, unwatched


def _hash_file(path: str, file_stat: os.stat_result, digest: "Callable[..., hashlib._Hash]") -> tuple[_Entry, bool]:
    """Hash a file as git does, so that staging changes nothing; also return whether it has CRLF."""
    if stat.S_ISLNK(file_stat.st_mode):
        return _Entry("120000", _blob_id(os.readlink(path).encode("utf-8", "surrogateescape"), digest)), False
    if not stat.S_ISREG(file_stat.st_mode):
        # A pipe, socket or device has no content to hash.
        return _Entry("other", str(file_stat.st_mtime_ns)), False
    mode = "100755" if file_stat.st_mode & 0o100 else "100644"
    if file_stat.st_size > MAX_HASHED_BYTES:
        # Too large to read before a hook: size and mtime stand for the content, and CRLF is possible.
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

        # `./*.py` of our globs is `/*.py` there.
        self._spec = pathspec.PathSpec.from_lines(
            "gitignore", (glob.removeprefix(".") if glob[:2] == "./" else glob for glob in covers)
        )

    def __call__(self, path: str) -> bool:
        return bool(self._spec.match_file(path))


def _path_matcher(covers: tuple[str, ...]) -> "_Everything | _Covered":
    return _Covered(covers) if covers else _Everything()


@cache
def shared_fingerprinter() -> Fingerprinter:
    """The one fingerprinter of this process."""
    return Fingerprinter(run_briefly, os.environ)
