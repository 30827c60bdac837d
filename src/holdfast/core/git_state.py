"""What git shows of a repository before and after something happened, and the acts that explain the difference."""

import os
import re
from collections.abc import Iterable, Mapping

import msgspec

from holdfast.core import git
from holdfast.core.file_stamps import Stamp, read_small_file, read_stamp
from holdfast.core.fingerprint import git_folder
from holdfast.core.job import Run
from holdfast.core.lazy import lazy_pattern

MAX_LOG_BYTES = 200_000
# The hash before, the hash after, (who and when), and behind a tab the message.
_REFLOG = re.compile(rb"^([0-9a-f]+) ([0-9a-f]+) [^\t\n]*\t([^\n]*)$", re.MULTILINE)
# The first that is there: during a rebase there may be a CHERRY_PICK_HEAD too.
_OPERATIONS = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}


class GitState(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot. `known` is False where there is no repository or git did not answer."""

    known: bool = False
    head: str = ""
    branch: str = ""
    """Empty when detached."""
    refs: dict[str, str] = {}
    index: tuple[int, int] = (0, 0)
    """Size and modification time of the index file."""
    log_size: int = 0
    """Length of HEAD's reflog, so that later entries can be told from earlier ones."""
    operation: str = ""
    """`rebase`, `merge` … while one is in progress."""


class GitChange(msgspec.Struct, frozen=True):
    """One act that git shows: its verb, and what it moved."""

    verb: str
    detail: str = ""
    old: str = ""
    new: str = ""


def read_git_state(run: Run, root: str, environment: Mapping[str, str], timeout: float = 1.0) -> GitState:
    """Never raises; a folder that is no repository gives a state that is not known."""
    folder = git_folder(root)
    if folder is None:
        return GitState()
    env = git.git_environment(environment)
    try:
        out = run(git.git_argv("for-each-ref", "--format=%(objectname) %(refname)"), cwd=root, env=env, timeout=timeout)
        head = run(git.git_argv("rev-parse", "--verify", "--quiet", "HEAD"), cwd=root, env=env, timeout=timeout)
    except OSError:
        return GitState()
    if out.timed_out or out.code != 0 or head.timed_out:
        return GitState()
    return GitState(
        known=True,
        head=head.out.decode("ascii", "replace").strip(),
        branch=_current_branch(folder),
        refs=_parse_refs(out.out),
        index=_index_stat(folder),
        log_size=_file_size(os.path.join(folder, "logs", "HEAD")),
        operation=operation_in(folder),
    )


def operation_in(folder: str) -> str:
    """`rebase`, `merge` … while one is in progress in the worktree of this git folder."""
    return next((name for file, name in _OPERATIONS.items() if os.path.exists(os.path.join(folder, file))), "")


def _current_branch(folder: str) -> str:
    text = read_from(os.path.join(folder, "HEAD"), 0).decode("utf-8", "replace")
    return text.partition("ref: refs/heads/")[2].strip()


def _parse_refs(out: bytes) -> dict[str, str]:
    lines = (line.partition(" ") for line in out.decode("utf-8", "surrogateescape").splitlines())
    return {name: oid for oid, _, name in lines if name}


def _index_stat(folder: str) -> tuple[int, int]:
    try:
        file_stat = os.stat(os.path.join(folder, "index"))
    except OSError:
        return (0, 0)
    return (file_stat.st_size, file_stat.st_mtime_ns)


def _file_size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def read_from(path: str, start: int, most: int = MAX_LOG_BYTES) -> bytes:
    """Nothing where the file cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(most)
    except OSError:
        return b""


def read_new_log(root: str, before: GitState) -> bytes:
    """What was added to HEAD's reflog since `before`."""
    folder = git_folder(root)
    return read_from(os.path.join(folder, "logs", "HEAD"), before.log_size) if folder else b""


def read_ref_logs(root: str, before: GitState, after: GitState) -> dict[str, bytes]:
    """The reflogs of remote branches that moved: they tell a push from a fetch."""
    folder = git_folder(root)
    if folder is None:
        return {}
    shared = read_from(os.path.join(folder, "commondir"), 0).decode("utf-8", "surrogateescape").strip()
    common = os.path.normpath(os.path.join(folder, shared)) if shared else folder
    moved = [n for n, oid in after.refs.items() if n.startswith("refs/remotes/") and before.refs.get(n) != oid]
    return {name: read_from(os.path.join(common, "logs", name), 0) for name in moved[:200]}


# ── the difference ───────────────────────────────────────────────────────────────────────────────────────────────────


def git_changes(
    before: GitState, after: GitState, new_log: bytes = b"", ref_logs: Mapping[str, bytes] | None = None
) -> list[GitChange]:
    """The acts between two states, in the order of the reflog, then what moved besides HEAD."""
    if not (before.known and after.known):
        return []
    acts = [change for _, change in log_changes(new_log)]
    acts += _ref_changes(before.refs, after.refs, {act.new for act in acts}, ref_logs or {})
    if not acts and before.head != after.head:
        acts.append(GitChange("update-ref", "HEAD moved", before.head, after.head))
    if not acts and before.branch != after.branch:
        acts.append(GitChange("checkout", after.branch))
    # By size alone: git also rewrites the index, with another time, when it only refreshes it.
    if not acts and before.index[0] != after.index[0]:
        acts.append(GitChange("add", "the index changed"))
    return acts


def log_changes(log: bytes) -> list[tuple[int, GitChange]]:
    """The acts of a reflog, each with the place in bytes where its line ends."""
    return [(match.end() + 1, change) for match in _REFLOG.finditer(log) if (change := _from_log(match))]


def _from_log(match: re.Match[bytes]) -> GitChange | None:
    old, new, message = (part.decode("utf-8", "replace") for part in match.groups())
    action, _, detail = message.partition(":")
    words = action.split()
    if not words:
        return None
    # The action of a rebase has its step with it: `rebase (finish)`, `rebase -i (pick)`.
    verb = "rebase" if words[0] == "rebase" or action.startswith("rebase") else words[0]
    if verb in ("clone", "initial"):
        verb = "commit" if "commit" in action else verb
    return GitChange(verb, detail.strip() or action, old, new)


def _ref_changes(
    before: dict[str, str], after: dict[str, str], explained: set[str], logs: Mapping[str, bytes]
) -> list[GitChange]:
    acts: list[GitChange] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, ""), after.get(name, "")
        if old == new:
            continue
        verb = _ref_verb(name, new, explained, logs.get(name, b""))
        if verb:
            acts.append(GitChange(verb, name, old, new))
    return acts


def _ref_verb(name: str, new: str, explained: set[str], log: bytes) -> str:
    if name == "refs/stash":
        return "stash"
    if name.startswith("refs/tags/"):
        return "tag"
    if name.startswith("refs/remotes/"):
        # Only the last entry is about where the branch stands now.
        return "push" if b"update by push" in log.rstrip().rpartition(b"\n")[2] else "fetch"
    if name.startswith("refs/heads/"):
        # A branch that HEAD's own reflog explains is no act of its own.
        return "" if new in explained else "branch"
    return "update-ref"


# What git's own files say, without asking git: hooks look at it before they are answered.

_COMMIT_ID = lazy_pattern(r"[0-9a-f]{40,64}")


def _git_text(path: str) -> str:
    """Of a file that git keeps; empty where it is not there."""
    try:
        return read_small_file(path).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


_LAST_VERBS: dict[str, tuple[Stamp, str]] = {}
"""Of each reflog, as long as nothing was added to it."""
MOST_LOGS = 200


def last_verb(repo: str) -> str:
    """The newest line of HEAD's reflog; of a plumbing command it has no text."""
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


def read_refs(repo: str, branches: Iterable[str]) -> dict[str, str]:
    """Where branches stand, from git's own files; those that are not there are left out."""
    refs = {}
    packed: str | None = None
    for branch in branches if repo else ():
        loose = _git_text(os.path.join(repo, "refs", "heads", branch)).strip()
        if not loose:
            # Read at most once, and only where a branch has no file of its own.
            packed = _git_text(os.path.join(repo, "packed-refs")) if packed is None else packed
            match = re.search(rf"^([0-9a-f]+) refs/heads/{re.escape(branch)}$", packed, re.M)
            loose = match[1] if match else ""
        if _COMMIT_ID.fullmatch(loose):
            refs[branch] = loose
    return refs
