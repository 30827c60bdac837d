"""The state of the repository: one `git status`, and a second question only when the commit changed."""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from holdfast.core import git
from holdfast.core.process import Ran, Run
from holdfast.features.project.model import LISTED_FILES

MOST_LOOKED_AT = 2_000
MOST_SOURCES = 30
TIMEOUT_S = 120.0
_ON_ITS_WAY = re.compile(r"(?:^|/)\.[^/]+\.\d+\.partial$")
"""A file that we are about to put in its place (`holdfast.paths.write_atomically`): nobody's change."""
DOING = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
SOURCES = frozenset(
    [
        ".py",
        ".pyi",
        ".js",
        ".jsx",
        ".ts",
        ".tsx",
        ".mjs",
        ".cjs",
        ".go",
        ".rs",
        ".java",
        ".kt",
        ".kts",
        ".scala",
        ".c",
        ".h",
        ".cc",
        ".cpp",
        ".hpp",
        ".cs",
        ".rb",
        ".php",
        ".swift",
        ".sh",
        ".bash",
        ".zsh",
        ".sql",
        ".vue",
        ".svelte",
        ".ex",
        ".exs",
        ".erl",
        ".hs",
        ".ml",
        ".clj",
        ".lua",
        ".pl",
        ".r",
        ".jl",
        ".zig",
        ".dart",
        ".proto",
        ".graphql",
        ".css",
        ".scss",
        ".html",
    ]
)

Facts = dict[str, Any]


def look(root: str, run: Run, before: Mapping[str, Any], now: int) -> Facts:
    """`before`: what is known already, so that nothing is asked twice."""
    try:
        folders = git_folders(root)
    except OSError as error:
        return _unknown(root, f"cannot be read: {error.strerror}")
    if folders is None:
        return _unknown(root, "not a git repository" if Path(root).is_dir() else "the folder is gone")
    ask = Asking(root, run)
    ran = ask(git.status(filters=ask.filters(*folders)))
    if ran.code != 0:
        return _unknown(root, _complaint(ran))
    found = git.parse_status(ran.out)
    found.changes = [c for c in found.changes if not (c.untracked and _ON_ITS_WAY.search(c.path))]
    own, common = folders
    return {
        **_branch(found),
        **_files(root, found, before, now),
        **_doing(own),
        **_commits(ask, found, before),
        "repository": tilde(root),
        "status": "dirty" if found.changes else "clean",
        "worktree": own != common,
        "draft": _draft(own, found.head, before),
        "remote": _remote(common),
    }


def tilde(path: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111 - a text, not a file
    return f"~{path.removeprefix(home)}" if path == home or path.startswith(f"{home}/") else path


def _unknown(root: str, problem: str) -> Facts:
    return {"repository": tilde(root), "status": "unknown", "problem": problem[:300], "count": 0, "files": []}


def _complaint(ran: Ran) -> str:
    if ran.timed_out:
        return f"git did not answer within {TIMEOUT_S:.0f} s"
    lines = ran.err.decode("utf-8", "replace").strip().splitlines()
    return (lines or [f"git ended with {ran.code}"])[0].removeprefix("fatal: ")


class Asking:
    def __init__(self, root: str, run: Run) -> None:
        self._root, self._run, self._env = root, run, git.environment(os.environ)

    def __call__(self, argv: list[str]) -> Ran:
        return self._run(argv, cwd=self._root, env=self._env, timeout=TIMEOUT_S)

    def filters(self, own: Path, common: Path) -> list[str]:
        """Programs of the repository's own config that a mere status would run on changed files."""
        texts = [text_of(common / "config"), text_of(own / "config.worktree")]
        if not any(git.may_name_filters(text) for text in texts):
            return []
        return git.own_filters(self(git.config_names()).out)


def text_of(path: Path) -> bytes:
    try:
        return path.read_bytes()[:1_000_000]
    except OSError:
        return b""


def git_folders(root: str) -> tuple[Path, Path] | None:
    """(this checkout's git folder, the one all worktrees share)"""
    dot_git = Path(root) / ".git"
    if dot_git.is_dir():
        return dot_git, dot_git
    if not dot_git.is_file():
        return None
    own = (Path(root) / text_of(dot_git).decode("utf-8", "replace").partition("gitdir:")[2].strip()).resolve()
    pointer = text_of(own / "commondir").decode("utf-8", "replace").strip()
    return own, (own / pointer).resolve() if pointer else own


def _branch(found: git.Status) -> Facts:
    return {
        "branch": found.branch or "HEAD",
        "detached": not found.branch,
        "head": found.head,
        "upstream": found.upstream,
        "ahead": found.ahead,
        "behind": found.behind,
    }


def _files(root: str, found: git.Status, before: Mapping[str, Any], now: int) -> Facts:
    """Conflicts first, then what git knows, then what is new: the list is cut, the count is not."""
    changes = sorted(found.changes, key=lambda c: (not c.conflict, c.untracked, c.path))
    known = {file["path"]: file.get("modified") for file in before.get("files") or ()}
    looked = [_file(root, change, known, now) for change in changes[:MOST_LOOKED_AT]]
    times = [file["modified"] for file in looked if file["modified"]]
    return {
        "count": len(changes),
        "cut": found.cut,
        "files": looked[:LISTED_FILES],
        "oldest_change": min(times, default=0),
        "newest_change": max(times, default=0),
        "conflicts": [shown_path(c.path) for c in changes if c.conflict][:LISTED_FILES],
        "untracked_sources": _sources(changes),
        "stashes": found.stashes,
    }


def _file(root: str, change: git.Change, known: Mapping[str, Any], now: int) -> Facts:
    shown = shown_path(change.path)
    try:
        seen = os.lstat(os.path.join(root, change.path))  # noqa: PTH118 - two thousand of them
    except (OSError, ValueError):
        # It is gone: the moment it was first missed stands for its time.
        return {"path": shown, "code": change.code, "modified": known.get(shown) or now, "size": None}
    size = seen.st_size if stat.S_ISREG(seen.st_mode) else None
    modified, inode_changed = seen.st_mtime_ns // 1_000_000, seen.st_ctime_ns // 1_000_000
    # A file that was moved here keeps its time of modification; the inode's own time is the kernel's.
    return {
        "path": shown,
        "code": change.code,
        "modified": modified,
        "changed": max(modified, inode_changed),
        "size": size,
    }


def shown_path(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")[:500]


def _sources(changes: Iterable[git.Change]) -> list[str]:
    new = (shown_path(change.path) for change in changes if change.untracked)
    return [path for path in new if Path(path).suffix.lower() in SOURCES][:MOST_SOURCES]


def _doing(own: Path) -> Facts:
    return {"doing": next((what for name, what in DOING.items() if (own / name).exists()), "")}


def _commits(ask: Asking, found: git.Status, before: Mapping[str, Any]) -> Facts:
    """Asked again only when there is another commit, or another upstream to compare it with."""
    same = before.get("head") == found.head and before.get("last")
    last = before.get("last") if same else _last(ask, found.head)
    compared = ("head", "upstream", "ahead")
    same = same and all(before.get(name) == getattr(found, name) for name in compared)
    since = before.get("unpushed_since") if same else _unpushed_since(ask, found)
    return {"last": last, "unpushed_since": since or 0}


def _last(ask: Asking, head: str) -> Facts | None:
    if not head:
        return None
    commit = git.parse_commit(ask(git.last_commit(head)).out)
    if commit is None:
        return None
    return {"hash": commit.hash, "subject": commit.subject, "at": commit.at, "author": commit.author}


def _unpushed_since(ask: Asking, found: git.Status) -> int:
    if not found.ahead:
        return 0
    commits = git.parse_commits(ask(git.commits("@{upstream}..HEAD", min(found.ahead, 1000))).out)
    return min((commit.at for commit in commits), default=0)


def _draft(own: Path, head: str, before: Mapping[str, Any]) -> bool:
    """A commit message newer than the last commit; git leaves the used one where it was."""
    try:
        written = (own / "COMMIT_EDITMSG").stat().st_mtime_ns // 1_000_000
    except OSError:
        return False
    last = before.get("last") or {}
    return bool(last) and last.get("hash") == head and written > int(last["at"]) + 2_000


def _remote(common: Path) -> str:
    """`origin`'s address as the config says it, without asking git; never with what stands before an `@`."""
    section = url = ""
    for line in text_of(common / "config").decode("utf-8", "replace").splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text
        elif section.startswith("[remote ") and text.replace(" ", "").startswith("url="):
            found = text.partition("=")[2].strip().rpartition("@")[2]
            url = found if section == '[remote "origin"]' or not url else url
    return url[:300]
