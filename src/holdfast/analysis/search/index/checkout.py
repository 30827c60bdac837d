"""Lists the files of a checkout."""

import os
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from holdfast.analysis.redact import redact_lines
from holdfast.analysis.search import languages
from holdfast.analysis.search.settings import IndexSettings
from holdfast.core import git
from holdfast.core.errors import HoldfastError
from holdfast.paths import open_regular_itself

FRESH_NS = 50_000_000
"""What changed this recently may change again within the same clock tick."""
UNTRUSTED = -1


class TooManyFiles(HoldfastError):
    """The checkout has too many files"""


class ListedFile(msgspec.Struct, frozen=True):
    path: str
    size: int
    mtime: int
    ctime: int
    plain: bool = True
    """Not a link, a pipe or a folder of another repository."""

    @property
    def name(self) -> str:
        return _display_path(self.path)


def _display_path(path: str) -> str:
    """As stored and shown: names are bytes, and not all are text."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")


class Listing(msgspec.Struct):
    files: list[ListedFile]
    folders: dict[str, int]
    """Every folder in which something new could appear, with its mtime; UNTRUSTED if it changed meanwhile."""


def list_checkout(root: str, settings: IndexSettings) -> Listing:
    # From before the listing: a folder that changes during the walk must not look unchanged.
    began = time.time_ns() - FRESH_NS
    listed = git_names(root)
    folders: set[str] = {""}
    if listed is None:
        names: Iterable[str] = _walk_files(root, folders)
    else:
        names = listed
        # Git lists no empty folders, yet a file may appear in one.
        for folder in new_folders(root):
            for _ in _walk_files(root, folders, folder):
                pass
    files = list(_wanted_files(root, names, settings, folders))
    secret = _secret_paths([*folders, *(one.path for one in files)])
    return Listing(
        [one for one in files if one.path not in secret] if secret else files,
        {_display_path(name): _folder_mtime(root, name, began) for name in folders if name not in secret},
    )


def _secret_paths(paths: list[str]) -> set[str]:
    """Paths that contain a secret themselves, which the index would keep."""
    encoded = [os.fsencode(path).replace(b"\n", b" ") for path in paths]
    # All at once, because separate calls cost more than the search; then only those that seem affected.
    cleaned = redact_lines(b"\n".join(encoded)).split(b"\n")
    return {
        path
        for path, before, after in zip(paths, encoded, cleaned, strict=False)
        if before != after and redact_lines(before) != before
    }


def _wanted_files(root: str, names: Iterable[str], settings: IndexSettings, folders: set[str]) -> Iterator[ListedFile]:
    count, inside = 0, _Inside(root)
    for name in names:
        _add_above(name, folders)
        # Listed by git through a link, or replaced by one: listed, but not as plain.
        if is_wanted(name, settings) and (one := _stat_file(root, name, inside(name.rpartition("/")[0]))):
            count += 1
            # Counted while listing, so that a home folder by mistake does not fill the memory.
            if count > settings.most_files:
                raise TooManyFiles(
                    f"more than {settings.most_files}",
                    where=root,
                    fix="Leave some out (reindex.exclude) or allow more (reindex.most_files).",
                )
            yield one


def _add_above(name: str, folders: set[str]) -> None:
    folder = name.rpartition("/")[0]
    while folder not in folders:
        folders.add(folder)
        folder = folder.rpartition("/")[0]


def _folder_mtime(root: str, folder: str, began: int) -> int:
    try:
        seen = os.lstat(os.path.join(root, folder)).st_mtime_ns
    except (OSError, ValueError):
        return UNTRUSTED
    return seen if seen < began else UNTRUSTED


def _walk_files(root: str, folders: set[str], below: str = "") -> Iterator[str]:
    """The files; folders with files, and empty ones, are added to `folders`. Unreadable ones are skipped."""
    waiting = [below]
    while waiting:
        folder = waiting.pop()
        folders.add(folder)
        try:
            entries = sorted(os.scandir(os.path.join(root, folder)), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if not entry.is_dir(follow_symlinks=False):
                yield name
            elif entry.name not in languages.TABLES.files.not_walked:
                waiting.append(name)


def _stat_file(root: str, name: str, inside: bool) -> ListedFile | None:
    try:
        seen = os.lstat(os.path.join(root, name))
    except (OSError, ValueError):
        return None
    return ListedFile(name, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, inside and stat.S_ISREG(seen.st_mode))


class _Inside:
    """Whether a folder is really there, or behind a link: git lists what it tracks, not what exists now."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known = {"": True}

    def __call__(self, folder: str) -> bool:
        if (is_inside := self._known.get(folder)) is None:
            is_inside = self(folder.rpartition("/")[0]) and self._is_folder(folder)
            self._known[folder] = is_inside
        return is_inside

    def _is_folder(self, folder: str) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(os.path.join(self._root, folder)).st_mode)
        except (OSError, ValueError):
            return False


def is_wanted(name: str, settings: IndexSettings) -> bool:
    if settings.include and not _matches_any_glob(name, settings.include):
        return False
    return not _matches_any_glob(name, settings.exclude)


def _matches_any_glob(name: str, globs: tuple[str, ...]) -> bool:
    """`docs/`, `docs/**` and `docs` mean everything below; `*.md` means in every folder."""
    for glob in globs:
        bare = glob.removesuffix("**").rstrip("/")
        if (
            fnmatchcase(name, glob)
            or fnmatchcase(name, bare)
            or name.startswith(f"{bare}/")
            or fnmatchcase(name, f"*/{glob}")
        ):
            return True
    return False


def read_file(root: str, one: ListedFile, largest: int) -> bytes:
    """Open the file without following symlinks, in any component. Raises OSError."""
    with open(os.path.join(root, one.path), "rb", opener=open_regular_itself) as file:
        # Only the last component is certainly no link; a folder on the way may have become one.
        if _path_of_open_file(file.fileno(), root, one.path) != f"{_real_root(root)}/{one.path}":
            raise OSError("not a plain file of the checkout")
        # One byte more shows that it grew beyond the limit.
        return file.read(largest + 1)


def _path_of_open_file(fd: int, root: str, path: str) -> str:
    """The real path of an open file: from the kernel, else looked up."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return os.path.realpath(os.path.join(root, path))


@lru_cache(maxsize=8)
def _real_root(root: str) -> str:
    return os.path.realpath(root)


# ── what git says of a checkout ──────────────────────────────────────────────────────────────────────────────────────

GIT_TIMEOUT_S = 120.0


def git_names(root: str) -> list[str] | None:
    """Tracked and new files that are not ignored. None if git cannot tell: then the folder is walked."""
    return _git_listing(root, git.list_files_argv(others=True))


def new_folders(root: str) -> list[str]:
    """Folders without tracked files that are not ignored, including empty ones, but not those inside them."""
    listed = _git_listing(root, git.git_argv("ls-files", "-z", "--others", "--directory", "--exclude-standard"))
    return [name.rstrip("/") for name in listed or () if name.endswith("/")]


def _git_listing(root: str, argv: list[str]) -> list[str] | None:
    if not os.path.lexists(os.path.join(root, ".git")):
        return None
    try:
        done = subprocess.run(
            argv, cwd=root, env=git.git_environment(os.environ), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=GIT_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return list(dict.fromkeys(git.parse_names(done.stdout))) if done.returncode == 0 else None


def git_dir(root: str) -> str:
    """Of this worktree; empty outside git."""
    dot_git = os.path.join(root, ".git")
    if os.path.isdir(dot_git):
        return dot_git
    # In a linked worktree `.git` is a file that names its directory.
    pointer = first_line(dot_git)
    return os.path.normpath(os.path.join(root, pointer.removeprefix("gitdir:").strip())) if pointer else ""


def common_dir(root: str) -> str:
    """What the worktrees of one repository share; empty outside git."""
    own = git_dir(root)
    shared = first_line(os.path.join(own, "commondir")) if own else ""
    return os.path.normpath(os.path.join(own, shared)) if shared else own


def current_branch(root: str) -> str:
    """Empty outside git or with a detached HEAD."""
    head = first_line(os.path.join(git_dir(root), "HEAD")) if git_dir(root) else ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def git_marks(root: str) -> list[list[int]]:
    """What may change the list of files without changing a file or folder: git's index and ignore rules."""
    own, shared = git_dir(root), common_dir(root)
    return (
        [_size_and_mtime(os.path.join(own, "index")), _size_and_mtime(os.path.join(shared, "info", "exclude"))]
        if own
        else []
    )


def _size_and_mtime(path: str) -> list[int]:
    try:
        seen = os.lstat(path)
    except OSError:
        return []
    return [seen.st_size, seen.st_mtime_ns]


def first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(4096).strip()
    except OSError:
        return ""
