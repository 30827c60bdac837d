"""The state of the repository: one `git status`, and a second question only when the commit changed."""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.core import git
from holdfast.core.fingerprint import shared_fingerprinter
from holdfast.core.git_state import operation_in
from holdfast.core.job import Ran, Run
from holdfast.core.kinds.project_events import ChangedFile, CommitFacts, GitFacts
from holdfast.features.project.state import MAX_LISTED_FILES

# Files whose times are read from the disk.
MAX_LOOKED_AT = 2_000
MAX_SOURCES = 30
# Bytes of changed files whose content is read in one look.
MAX_READ_BYTES = 16 << 20
MAX_SUBMODULES = 20
_SUBMODULE_PATH = re.compile(r"^\s*path\s*=\s*(.+?)\s*$", re.MULTILINE)
TIMEOUT_S = 120.0
_BEING_WRITTEN = re.compile(r"(?:^|/)\.[^/]+\.\d+\.partial(?:-\d+)?$")
"""A temporary file of `holdfast.paths.write_atomically`."""
SOURCES = frozenset(
    ".py .pyi .js .jsx .ts .tsx .mjs .cjs .go .rs .java .kt .kts .scala .c .h .cc .cpp .hpp .cs .rb .php .swift .sh .bash "
    ".zsh .sql .vue .svelte .ex .exs .erl .hs .ml .clj .lua .pl .r .jl .zig .dart .proto .graphql .css .scss .html".split()
)


def read_git_status(root: str, run: Run, before: GitFacts, now: int) -> GitFacts:
    """`before`: what is known, so that git is not asked again."""
    try:
        folders = git_folders(root)
    except OSError as error:
        return _unknown_facts(root, f"cannot be read: {error.strerror}")
    if folders is None:
        return _unknown_facts(root, "not a git repository" if Path(root).is_dir() else "the folder is gone")
    ask = GitQuestions(root, run)
    ran = ask(git.status_argv(ask.filters(*folders), renames=True))
    if ran.code != 0:
        return _unknown_facts(root, _git_complaint(ran))
    status = git.parse_status(ran.out)
    status.changes = [c for c in status.changes if not (c.untracked and _BEING_WRITTEN.search(c.path))]
    known = {change.path for change in status.changes}
    status.changes += [git.Change(path, ".M") for path in _dirty_submodules(root, run) if path not in known]
    return _git_facts(root, status, folders, ask, before, now)


def _dirty_submodules(root: str, run: Run) -> Iterator[str]:
    """Checked-out submodules with changes of their own; each is asked with its own filters switched off."""
    paths = _SUBMODULE_PATH.findall(text_of(Path(root, ".gitmodules")).decode("utf-8", "replace"))
    for path in paths[:MAX_SUBMODULES]:
        inner = os.path.join(root, path)  # noqa: PTH118 - the path may be anything
        folders = (
            git_folders(inner) if os.path.realpath(inner).startswith(f"{os.path.realpath(root)}{os.sep}") else None
        )
        if folders is None:
            continue
        ask = GitQuestions(inner, run)
        ran = ask(git.status_argv(ask.filters(*folders)))
        if ran.code == 0 and git.parse_status(ran.out).changes:
            yield path


def _git_facts(
    root: str, status: git.Status, folders: tuple[Path, Path], ask: "GitQuestions", before: GitFacts, now: int
) -> GitFacts:
    own, common = folders
    last, unpushed_since = _commit_facts(ask, status, before)
    facts = GitFacts(
        repository=tilde_path(root),
        status="dirty" if status.changes else "clean",
        branch=status.branch or "HEAD",
        detached=not status.branch,
        head=status.head,
        upstream=status.upstream,
        ahead=status.ahead,
        behind=status.behind,
        cut=status.cut,
        stashes=status.stashes,
        doing=operation_in(str(own)),
        last=last,
        unpushed_since=unpushed_since,
        worktree=own != common,
        draft=_has_draft(own, status.head, before),
        remote=_remote_address(common),
    )
    _add_files(facts, root, status.changes, before, now)
    return facts


def tilde_path(path: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111 - a text, not a file
    return f"~{path.removeprefix(home)}" if path == home or path.startswith(f"{home}/") else path


def _unknown_facts(root: str, problem: str) -> GitFacts:
    return GitFacts(repository=tilde_path(root), status="unknown", problem=problem[:300])


def _git_complaint(ran: Ran) -> str:
    if ran.timed_out:
        return f"git did not answer within {TIMEOUT_S:.0f} s"
    lines = ran.err.decode("utf-8", "replace").strip().splitlines()
    return (lines or [f"git ended with {ran.code}"])[0].removeprefix("fatal: ")


class GitQuestions:
    """Questions to git about one worktree, with nothing of the repository's config being run."""

    def __init__(self, root: str, run: Run) -> None:
        self._root, self._run, self._env = root, run, git.git_environment(os.environ)

    def __call__(self, argv: list[str], stdin: bytes = b"") -> Ran:
        return self._run(argv, cwd=self._root, env=self._env, stdin=stdin, timeout=TIMEOUT_S)

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
    # In a linked worktree `.git` is a file that says `gitdir: PATH`.
    own = (Path(root) / text_of(dot_git).decode("utf-8", "replace").partition("gitdir:")[2].strip()).resolve()
    pointer = text_of(own / "commondir").decode("utf-8", "replace").strip()
    return own, (own / pointer).resolve() if pointer else own


def _add_files(facts: GitFacts, root: str, all_changes: list[git.Change], before: GitFacts, now: int) -> None:
    """Conflicts first, then what git knows, then what is new: the list is cut, the count is not."""
    changes = sorted(all_changes, key=lambda c: (not c.conflict, c.untracked, c.path))
    known, looked, unread = {file.path: file for file in before.files}, list[ChangedFile](), MAX_READ_BYTES
    for change in changes[:MAX_LOOKED_AT]:
        read = len(looked) < MAX_LISTED_FILES and unread > 0
        looked.append(_changed_file(root, change, known.get(shown_path(change.path)), now, read_blob=read))
        unread -= (looked[-1].size or 0) if read else 0
    times = [file.modified for file in looked if file.modified]
    facts.count, facts.files = len(changes), looked[:MAX_LISTED_FILES]
    facts.oldest_change, facts.newest_change = min(times, default=0), max(times, default=0)
    facts.conflicts = [shown_path(c.path) for c in changes if c.conflict][:MAX_LISTED_FILES]
    facts.untracked_sources = _untracked_sources(changes)


def _changed_file(
    root: str, change: git.Change, known: ChangedFile | None, now: int, *, read_blob: bool
) -> ChangedFile:
    shown, path = shown_path(change.path), os.path.join(root, change.path)  # noqa: PTH118 - two thousand of them
    try:
        seen = os.lstat(path)
    except (OSError, ValueError):
        # It is gone: its time is the moment it was first missed.
        gone = known.modified if known and known.size is None else now
        return ChangedFile(path=shown, code=change.code, modified=gone, changed=gone)
    size = seen.st_size if stat.S_ISREG(seen.st_mode) else None
    modified, inode_changed = seen.st_mtime_ns // 1_000_000, seen.st_ctime_ns // 1_000_000
    # A file that was moved here keeps its time of modification; the inode's own time is the kernel's.
    changed = max(modified, inode_changed)
    blob = shared_fingerprinter().blob_of(path) if read_blob and seen.st_size < MAX_READ_BYTES else ""
    if known and blob and blob == known.blob:
        # It was written again with the same content, or touched.
        modified, changed = known.modified, known.changed
    return ChangedFile(path=shown, code=change.code, modified=modified, changed=changed, size=size, blob=blob)


def shown_path(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")[:500]


def _untracked_sources(changes: Iterable[git.Change]) -> list[str]:
    new = (shown_path(change.path) for change in changes if change.untracked)
    return [path for path in new if Path(path).suffix.lower() in SOURCES][:MAX_SOURCES]


def _commit_facts(ask: GitQuestions, status: git.Status, before: GitFacts) -> tuple[CommitFacts | None, int]:
    """Asked again only when there is another commit, or another upstream to compare it with."""
    same = before.head == status.head and before.last is not None
    last = before.last if same else _read_last_commit(ask, status.head)
    same = same and (before.upstream, before.ahead) == (status.upstream, status.ahead)
    return last, before.unpushed_since if same else _unpushed_since(ask, status)


def _read_last_commit(ask: GitQuestions, head: str) -> CommitFacts | None:
    commit = git.parse_commit(ask(git.last_commit(head)).out) if head else None
    if commit is None:
        return None
    return CommitFacts(hash=commit.hash, subject=commit.subject, at=commit.at, author=commit.author)


def _unpushed_since(ask: GitQuestions, status: git.Status) -> int:
    if not status.ahead:
        return 0
    # A branch may be thousands of commits ahead: the oldest of the newest thousand will do.
    commits = git.parse_commits(ask(git.log_argv("@{upstream}..HEAD", min(status.ahead, 1000))).out)
    return min((commit.at for commit in commits), default=0)


def _has_draft(own: Path, head: str, before: GitFacts) -> bool:
    """A commit message newer than the last commit; git leaves the used one where it was."""
    try:
        written = (own / "COMMIT_EDITMSG").stat().st_mtime_ns // 1_000_000
    except OSError:
        return False
    last = before.last
    # Two seconds, because git writes the message a moment before or after the commit's own time.
    return last is not None and last.hash == head and written > last.at + 2_000


def _remote_address(common: Path) -> str:
    """`origin`'s address from the config file, without the part before an `@`."""
    section = url = ""
    for line in text_of(common / "config").decode("utf-8", "replace").splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text
        elif section.startswith("[remote ") and text.replace(" ", "").startswith("url="):
            address = text.partition("=")[2].strip().rpartition("@")[2]
            url = address if section == '[remote "origin"]' or not url else url
    return url[:300]
