"""Finds repository root, branch and common git directory of a folder by reading files only."""

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from holdfast.core.file_stamps import read_small_file

FRESH_S = 1.0
REMEMBERED = 500
NOWHERE: Mapping[str, str] = {}
Located = tuple[float, Mapping[str, str], str]
"""When it was looked up, the result, and the worktree's own git folder."""


class CachedGitContext:
    """Caches a repository's location for one second, because hooks come in bursts. The branch is never cached: a
    decision concerns the branch checked out now."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: OrderedDict[str, Located] = OrderedDict()

    def of(self, cwd: str) -> Mapping[str, str]:
        seen = self._fresh(cwd)
        return _with_branch(seen[1], seen[2]) if seen else self._look_up(cwd)

    def root_of(self, cwd: str) -> str:
        """The repository root only. It is asked several times per hook and reads no file."""
        seen = self._fresh(cwd)
        return (seen[1] if seen else self._look_up(cwd)).get("root", "")

    def _fresh(self, cwd: str) -> Located | None:
        seen = self._seen.get(cwd)
        return seen if seen and self._now() - seen[0] < FRESH_S else None

    def _look_up(self, cwd: str) -> Mapping[str, str]:
        context = locate(cwd) if cwd.startswith("/") else NOWHERE
        # A worktree's HEAD is in its own git folder, not in the shared one.
        self._seen[cwd] = (self._now(), context, _git_dir(context["root"]) if context else "")
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return context


def _with_branch(context: Mapping[str, str], git_dir: str) -> Mapping[str, str]:
    if not context:
        return context
    try:
        branch = _current_branch(git_dir)
    except OSError:
        return NOWHERE
    return context if branch == context["branch"] else {**context, "branch": branch}


def locate(cwd: str) -> Mapping[str, str]:
    try:
        root = _find_root(cwd)
        if not root:
            return NOWHERE
        git_dir = _git_dir(root)
        return {"root": root, "branch": _current_branch(git_dir), "repo": _common_dir(git_dir)}
    except OSError:
        return NOWHERE


def _find_root(folder: str) -> str:
    while True:
        # A file of this name marks a worktree or a submodule.
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent


def _git_dir(root: str) -> str:
    """Return `.git` itself, or the folder that a worktree's `.git` file names."""
    dot_git = os.path.join(root, ".git")
    if os.path.isdir(dot_git):
        return dot_git
    target = _first_line(dot_git).removeprefix("gitdir:").strip()
    return os.path.normpath(os.path.join(root, target))


def _current_branch(git_dir: str) -> str:
    head = _first_line(os.path.join(git_dir, "HEAD"))
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def _common_dir(git_dir: str) -> str:
    """Return the folder that all worktrees share."""
    pointer = os.path.join(git_dir, "commondir")
    if not os.path.exists(pointer):
        return git_dir
    return os.path.normpath(os.path.join(git_dir, _first_line(pointer)))


def detached_head(root: str) -> str:
    """The commit that a worktree is on without a branch; empty if it is on one."""
    try:
        head = _first_line(os.path.join(_git_dir(root), "HEAD"))
    except OSError:
        return ""
    return "" if head.startswith("ref:") else head


def _first_line(path: str) -> str:
    return read_small_file(path)[:4096].decode("utf-8", "replace").partition("\n")[0].strip()
