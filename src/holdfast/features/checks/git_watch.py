"""What git's own files show of a worktree, and what is new in them since the last look."""

# No program is run. A look costs some file reads, so it is made at every shell call. Repositories that keep their refs
# in another format (reftable) show nothing here, and no act is reported.

import os
from collections import OrderedDict

import msgspec

from holdfast.core.checks import GitLogEntry, GitLook
from holdfast.core.fingerprint import git_folder, git_folders, read_head
from holdfast.core.git_state import GitChange, log_changes, operation_in, read_from

# Worktrees that are remembered; branches of remotes that are looked at; bytes; acts of one look.
MAX_WORKTREES = 200
MAX_REMOTE_BRANCHES = 400
MAX_LOG_BYTES = 64_000
MAX_FIRST_BYTES = 3_000
MAX_ACTS = 50
OVERLAP_BYTES = 1_000
"""Read again at each look: an act seen with an event that was dropped as a duplicate is reported by the next one.
The reducer remembers the length of the reflog, so it knows which acts are new."""
Stamp = tuple[int, int]
"""Size and modification time of a file."""
NO_STAMP: Stamp = (0, 0)


class GitFiles(msgspec.Struct, frozen=True):
    """The state of the files that git acts change."""

    head_text: str
    log: Stamp
    remotes: dict[str, Stamp]
    stash: Stamp


class Worktree(msgspec.Struct, frozen=True):
    """A worktree with its own git folder and the one it shares."""

    root: str
    own: str
    shared: str

    @property
    def branch(self) -> str:
        return _file_text(os.path.join(self.own, "HEAD")).partition("ref: refs/heads/")[2].strip()

    @property
    def head(self) -> str:
        """The commit that is checked out; empty before the first one, or where it is not found."""
        text = _file_text(os.path.join(self.own, "HEAD")).strip()
        if not text.startswith("ref: "):
            # A detached HEAD holds the commit itself; 64 digits are a SHA-256, the longest there is.
            return text[:64]
        name = text[5:]
        return (
            _file_text(os.path.join(self.shared, name)).strip()[:64] or self._packed(name)
            if _is_plain_name(name)
            else ""
        )

    def _packed(self, name: str) -> str:
        # In bytes; repositories with many refs have large packed-refs files.
        for line in _file_text(os.path.join(self.shared, "packed-refs"), 4 << 20).splitlines():
            if line.endswith(f" {name}"):
                return line.partition(" ")[0]
        return ""


_PLACES: dict[str, Worktree] = {}


def find_place(folder: str) -> Worktree | None:
    """The worktree that contains a folder; None outside git. A known one is only checked for existence."""
    cached = _PLACES.get(folder)
    if cached is not None and os.path.isfile(os.path.join(cached.own, "HEAD")):
        return cached
    worktree = _search_place(folder)
    if worktree is not None and worktree.root == folder:
        # Rather than tracking the order of use: the places are found again quickly.
        if len(_PLACES) >= MAX_WORKTREES:
            _PLACES.clear()
        _PLACES[folder] = worktree
    return worktree


def _search_place(folder: str) -> Worktree | None:
    root = folder if os.path.isabs(folder) else ""
    while root and not os.path.lexists(os.path.join(root, ".git")):
        root = os.path.dirname(root) if os.path.dirname(root) != root else ""
    own = git_folder(root) if root else None
    if own is None or not os.path.isfile(os.path.join(own, "HEAD")):
        return None
    return Worktree(root, own, git_folders(own)[-1])


class GitWatch:
    """Remembers the last look at each worktree, and reports what happened since."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, GitFiles] = OrderedDict()

    def look(self, worktree: Worktree, *, outside: bool) -> GitLook | None:
        """None when nothing changed since the last look."""
        now, last = _read_files(worktree), self._last.get(worktree.root)
        if now == last:
            return None
        self._last[worktree.root] = now
        self._last.move_to_end(worktree.root)
        if len(self._last) > MAX_WORKTREES:
            self._last.popitem(last=False)
        # Without an earlier look it is not known which pushes and fetches are new.
        acts = _log_acts(worktree, last, now) + (_remote_acts(worktree, last, now) if last else [])
        return GitLook(
            worktree=worktree.root,
            head=worktree.head,
            branch=worktree.branch,
            log_size=now.log[0],
            operation=operation_in(worktree.own),
            acts=acts[-MAX_ACTS:],
            outside=outside and bool(acts),
        )


def _read_files(worktree: Worktree) -> GitFiles:
    logs = os.path.join(worktree.shared, "logs", "refs")
    return GitFiles(
        _file_text(os.path.join(worktree.own, "HEAD")),
        _file_stamp(os.path.join(worktree.own, "logs", "HEAD")),
        _stamps_below(os.path.join(logs, "remotes")),
        _file_stamp(os.path.join(logs, "stash")),
    )


def _log_acts(worktree: Worktree, last: GitFiles | None, now: GitFiles) -> list[GitLogEntry]:
    """New lines of HEAD's reflog; at the first look its end, of which the reducer knows what is new."""
    size = now.log[0]
    # Not longer than before: nothing was added, or the reflog was expired and rewritten.
    if last and last.log[0] >= size:
        return []
    start = last.log[0] - OVERLAP_BYTES if last else size - MAX_FIRST_BYTES
    start = max(start, size - MAX_LOG_BYTES, 0)
    text = read_from(os.path.join(worktree.own, "logs", "HEAD"), start, MAX_LOG_BYTES)
    if start:  # What is left of a line that began before is none.
        first = text.find(b"\n") + 1
        start, text = start + first, text[first:]
    return _without_steps([_log_entry(change, start + end) for end, change in log_changes(text)])


def _log_entry(change: GitChange, at: int) -> GitLogEntry:
    """Names of branches are kept, messages of commits are not: they may hold anything."""
    with_detail = change.verb in ("checkout", "rebase")
    return GitLogEntry(change.verb, change.old, change.new, change.detail[:200] if with_detail else "", at)


def _without_steps(acts: list[GitLogEntry]) -> list[GitLogEntry]:
    """A rebase writes a line for each commit it picks: together they are one act."""
    merged: list[GitLogEntry] = []
    for act in acts:
        if act.verb == "rebase" and merged and merged[-1].verb == "rebase" and not act.detail.startswith("checkout"):
            merged[-1] = msgspec.structs.replace(act, old=merged[-1].old)
        else:
            merged.append(act)
    return merged


def _remote_acts(worktree: Worktree, last: GitFiles, now: GitFiles) -> list[GitLogEntry]:
    acts: list[GitLogEntry] = []
    for name, stamp in now.remotes.items():
        if last.remotes.get(name, NO_STAMP) == stamp:
            continue
        path = os.path.join(worktree.shared, "logs", "refs", "remotes", name)
        lines = (
            read_from(path, last.remotes.get(name, NO_STAMP)[0], MAX_LOG_BYTES).decode("utf-8", "replace").splitlines()
        )
        # One push or fetch adds a line or two; a reflog seen for the first time may have thousands.
        for line in lines[-5:]:
            fields, _, message = line.partition("\t")
            old, _, rest = fields.partition(" ")
            # Git itself writes these words into the reflog of a remote branch that it pushed to.
            verb = "push" if "update by push" in message else "fetch"
            acts.append(GitLogEntry(verb, old, rest.partition(" ")[0], f"refs/remotes/{name}"))
    if now.stash != last.stash:
        acts.append(GitLogEntry("stash"))
    return acts


def _file_stamp(path: str) -> Stamp:
    try:
        file_stat = os.stat(path)
    except OSError:
        return NO_STAMP
    return (file_stat.st_size, file_stat.st_mtime_ns)


def _stamps_below(folder: str) -> dict[str, Stamp]:
    stamps: dict[str, Stamp] = {}
    folders = [""]
    while folders and len(stamps) < MAX_REMOTE_BRANCHES:
        below = folders.pop()
        try:
            with os.scandir(os.path.join(folder, below)) as entries:
                for entry in entries:
                    name = f"{below}/{entry.name}" if below else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(name)
                    else:
                        stamps[name] = _file_stamp(entry.path)
        except OSError:
            continue
    return stamps


def _file_text(path: str, size: int = 4_096) -> str:
    return read_head(path, size).decode("utf-8", "replace")


def _is_plain_name(name: str) -> bool:
    # HEAD is a file that anybody may have written: a ref must not lead out of the git folder.
    return ".." not in name.split("/") and not name.startswith("/")
