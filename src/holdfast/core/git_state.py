"""Reads git's files before and after an act, and explains the difference."""

import glob
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import islice

import msgspec

from holdfast.core.file_stamps import Stamp, read_small_file, read_stamp
from holdfast.core.lazy import lazy_pattern

MAX_LOG_BYTES = 200_000
# Old hash, new hash, author and time, then a tab and the message.
_REFLOG = re.compile(rb"^([0-9a-f]+) ([0-9a-f]+) [^\t\n]*\t([^\n]*)$", re.MULTILINE)
# The first that exists: during a rebase there may be a CHERRY_PICK_HEAD too.
_OPERATIONS = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}


class GitChange(msgspec.Struct, frozen=True):
    """One act shown by git: its verb and what it moved."""

    verb: str
    detail: str = ""
    old: str = ""
    new: str = ""


def operation_in(folder: str) -> str:
    """Return `rebase`, `merge` … while one is in progress in the worktree of this git folder."""
    return next((name for file, name in _OPERATIONS.items() if os.path.exists(os.path.join(folder, file))), "")


def read_from(path: str, start: int, most: int = MAX_LOG_BYTES) -> bytes:
    """Read the rest of a file; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(most)
    except OSError:
        return b""


# ── the difference ───────────────────────────────────────────────────────────────────────────────────────────────────


def log_changes(log: bytes) -> list[tuple[int, GitChange]]:
    """Yield the acts of a reflog, each with the byte offset where its line ends."""
    return [(match.end() + 1, change) for match in _REFLOG.finditer(log) if (change := _from_log(match))]


def _from_log(match: re.Match[bytes]) -> GitChange | None:
    old, new, message = (part.decode("utf-8", "replace") for part in match.groups())
    action, _, detail = message.partition(":")
    words = action.split()
    if not words:
        return None
    # A rebase names its step: `rebase (finish)`, `rebase -i (pick)`.
    verb = "rebase" if words[0] == "rebase" or action.startswith("rebase") else words[0]
    if verb in ("clone", "initial"):
        verb = "commit" if "commit" in action else verb
    return GitChange(verb, detail.strip() or action, old, new)


# Reads git's files without running git: hooks do so before they are answered.

_COMMIT_ID = lazy_pattern(r"[0-9a-f]{40,64}")


def _git_text(path: str) -> str:
    """Read a file of git; empty if it doesn't exist."""
    try:
        return read_small_file(path).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


_LAST_VERBS: dict[str, tuple[Stamp, str]] = {}
"""The last verb of each reflog, valid until the reflog grows."""
MOST_LOGS = 200


def last_verb(repo: str) -> str:
    """The newest line of HEAD's reflog; plumbing commands leave no text there."""
    path = os.path.join(repo, "logs", "HEAD")
    try:
        stamp = read_stamp(path)
    except OSError:
        return ""
    known = _LAST_VERBS.get(path)
    if known is None or known[0] != stamp:
        if len(_LAST_VERBS) >= MOST_LOGS:
            _LAST_VERBS.clear()
        known = _LAST_VERBS[path] = (stamp, _read_last_verb(path))
    return known[1]


def _read_last_verb(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4_096))
            last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    except OSError:
        return ""
    return re.split(r"[\s:(]", last.partition(b"\t")[2].decode("utf-8", "replace").strip(), maxsplit=1)[0]


MOST_REFS = 100
"""The most branches of one pattern that are read, by name."""
MOST_REF_FILES = 2_000
_WILDCARD = lazy_pattern(r"[*?\[]")


def is_branch_glob(name: str) -> bool:
    return _WILDCARD.search(name) is not None


def read_refs(repo: str, branches: Iterable[str]) -> dict[str, str]:
    """Read the commits of branches from git's files; missing branches are left out.

    `release/*` means every branch that it matches, up to `MOST_REFS`.
    """
    refs = {}
    packed: str | None = None
    waiting = list(branches) if repo else []
    while waiting:
        branch = waiting.pop(0)
        loose = "" if is_branch_glob(branch) else _git_text(os.path.join(repo, "refs", "heads", branch)).strip()
        if not loose:
            # Read at most once, and only if a branch has no file of its own.
            packed = _git_text(os.path.join(repo, "packed-refs")) if packed is None else packed
            if is_branch_glob(branch):
                waiting += _matching_branches(repo, branch, packed)
                continue
            match = re.search(rf"^([0-9a-f]+) refs/heads/{re.escape(branch)}$", packed, re.M)
            loose = match[1] if match else ""
        if _COMMIT_ID.fullmatch(loose):
            refs[branch] = loose
    return refs


def tips(repo: str) -> frozenset[str]:
    """The commits that branches, remote branches, tags and worktrees point at."""
    found = set(re.findall(r"^[\^]?([0-9a-f]{40,64})\b", _git_text(os.path.join(repo, "packed-refs")), re.M))
    files = [os.path.join(repo, name) for name in ("HEAD", "ORIG_HEAD", "FETCH_HEAD")]
    files += glob.iglob(os.path.join(glob.escape(repo), "worktrees", "*", "HEAD"))
    folders = (os.walk(os.path.join(repo, "refs", kind)) for kind in ("heads", "remotes", "tags"))
    loose = (
        os.path.join(base, name)
        for folder in folders
        for base, _, names in folder
        for name in names
        if not name.endswith(".lock")
    )
    for path in (*files, *islice(loose, MOST_REF_FILES)):
        if match := _COMMIT_ID.match(_git_text(path)):
            found.add(match[0])
    return frozenset(found)


def _matching_branches(repo: str, glob: str, packed: str) -> list[str]:
    """Branch names contain no wildcards: git refuses them."""
    named = {*re.findall(r"^[0-9a-f]+ refs/heads/(.+)$", packed, re.M), *_loose_branches(repo, glob)}
    return sorted(name for name in named if fnmatchcase(name, glob) and not is_branch_glob(name))[:MOST_REFS]


def _loose_branches(repo: str, glob: str) -> Iterable[str]:
    heads, above = os.path.join(repo, "refs", "heads"), _WILDCARD.split(glob)[0].rpartition("/")[0]
    # The pattern may come from a project's settings and must not leave its repository.
    if os.path.isabs(above) or ".." in above.split("/") or not _is_inside(os.path.join(heads, above), heads):
        return
    seen = 0
    for folder, _, files in os.walk(os.path.join(heads, above)):
        for name in files:
            seen += 1
            if seen > MOST_REF_FILES:
                return
            yield os.path.relpath(os.path.join(folder, name), heads)


def _is_inside(path: str, folder: str) -> bool:
    return f"{os.path.realpath(path)}/".startswith(f"{os.path.realpath(folder)}/")
