"""What git says of a checkout, and what can be seen of it without asking git."""

import os
import subprocess

from holdfast.core import git

PATIENCE_S = 120.0


def names(root: str) -> list[str] | None:
    """Tracked and new files that are not ignored. None where git cannot say: then the folder is walked."""
    return _listed(root, git.files(others=True))


def new_folders(root: str) -> list[str]:
    """Folders with nothing tracked in them that are not ignored, empty ones too; those inside them are not named."""
    listed = _listed(root, git.argv("ls-files", "-z", "--others", "--directory", "--exclude-standard"))
    return [name.rstrip("/") for name in listed or () if name.endswith("/")]


def _listed(root: str, argv: list[str]) -> list[str] | None:
    if not os.path.lexists(os.path.join(root, ".git")):
        return None
    try:
        done = subprocess.run(
            argv, cwd=root, env=git.environment(os.environ), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return list(dict.fromkeys(git.parse_names(done.stdout))) if done.returncode == 0 else None


def git_dir(root: str) -> str:
    """Of this worktree; empty outside git."""
    dot_git = os.path.join(root, ".git")
    if os.path.isdir(dot_git):
        return dot_git
    pointer = first_line(dot_git)
    return os.path.normpath(os.path.join(root, pointer.removeprefix("gitdir:").strip())) if pointer else ""


def common_dir(root: str) -> str:
    """What the worktrees of one repository share; empty outside git."""
    own = git_dir(root)
    shared = first_line(os.path.join(own, "commondir")) if own else ""
    return os.path.normpath(os.path.join(own, shared)) if shared else own


def branch(root: str) -> str:
    """Empty outside git, or where no branch is checked out."""
    head = first_line(os.path.join(git_dir(root), "HEAD")) if git_dir(root) else ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def marks(root: str) -> list[list[int]]:
    """What may change the list of files without changing a file or a folder: git's own list, and what it ignores."""
    own, shared = git_dir(root), common_dir(root)
    return [_mark(os.path.join(own, "index")), _mark(os.path.join(shared, "info", "exclude"))] if own else []


def _mark(path: str) -> list[int]:
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
