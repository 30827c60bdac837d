"""Finds where the content of files went that are no longer uncommitted: a commit, a stash, another file, or nowhere."""

from collections.abc import Iterator, Sequence

from holdfast.core import git
from holdfast.core.fingerprint import shared_fingerprinter
from holdfast.core.kinds.project_events import ChangedFile, GitFacts
from holdfast.features.project.jobs.git_status import GitQuestions

COMMITTED, STASHED, MOVED, DISCARDED = "committed", "stashed", "moved", "discarded"
MAX_STASHES, MAX_COMMITS = 3, 10


def find_fates(ask: GitQuestions, root: str, before: GitFacts, now: GitFacts, commits: Sequence[str]) -> dict[str, str]:
    """By path. `commits`: those made in this worktree, the newest last."""
    left = {file.path for file in now.files}
    gone = [file for file in before.files if file.path not in left and "\n" not in file.path]
    if not gone or not now.head or now.problem:
        return {}
    made = commits[commits.index(before.head) + 1 :] if before.head in commits else commits
    objects = _Objects(ask, root, before, now, made[-MAX_COMMITS:], gone)
    return {file.path: fate for file in gone if (fate := objects.fate_of(file))}


class _Objects:
    """Git's ids of the same files in the commits and stashes that they may be in."""

    def __init__(
        self, ask: GitQuestions, root: str, before: GitFacts, now: GitFacts, made: Sequence[str],
        gone: Sequence[ChangedFile],
    ) -> None:  # fmt: skip
        self._root, self._base = root, before.head
        self._made = [commit for commit in made if commit != before.head]
        self._commits = list(dict.fromkeys([now.head, *self._made]))
        self._stashes = [f"stash@{{{n}}}" for n in range(min(now.stashes, MAX_STASHES))]
        self._is_stashed = now.stashes > before.stashes
        stashed = [f"{stash}{of}" for stash in self._stashes for of in ("", "^1", "^3")]
        places = dict.fromkeys([self._base, *self._commits, *stashed])
        asked = [f"{place}:{file.path}" for place in places if place for file in gone]
        argv = git.git_argv("cat-file", "--batch-check=%(objectname)")
        lines = ask(argv, "".join(f"{name}\n" for name in asked).encode("utf-8", "surrogateescape")).out.splitlines()
        found = dict(zip(asked, lines, strict=False))
        self._found = {name: oid.decode() for name, oid in found.items() if not oid.endswith(b" missing")}
        self._elsewhere = {file.blob for file in now.files} | set(self._new_in(ask, now))

    def _new_in(self, ask: GitQuestions, now: GitFacts) -> Iterator[str]:
        """What the commit that is checked out has and the one before had not, under any name."""
        if self._base and self._base != now.head:
            argv = git.git_argv("diff-tree", "-r", "--raw", "--no-renames", "--no-abbrev", self._base, now.head)
            yield from (line.split(b" ")[3].decode() for line in ask(argv).out.splitlines() if line.startswith(b":"))

    def _at(self, place: str, file: ChangedFile) -> str:
        return self._found.get(f"{place}:{file.path}", "")

    def fate_of(self, file: ChangedFile) -> str:
        """The file's own content first; then whether its file went on to another one that was kept."""
        is_known = bool(file.blob) or "D" in file.code
        if is_known and self._is_there(file):
            return ""  # It still differs: it is only out of the list.
        return (self._place_of(file) if is_known else "") or self._what_became_of(file)

    def _is_there(self, file: ChangedFile) -> bool:
        on_disk = shared_fingerprinter().blob_of(f"{self._root}/{file.path}")
        return on_disk == file.blob not in ("", self._at(self._commits[0], file))

    def _place_of(self, file: ChangedFile) -> str:
        if file.blob == self._at(self._base, file):
            return ""
        if any(self._at(commit, file) == file.blob for commit in self._commits):
            return COMMITTED
        if any(file.blob in self._in_stash(stash, file) for stash in self._stashes):
            return STASHED
        return MOVED if file.blob in self._elsewhere - {""} else ""

    def _what_became_of(self, file: ChangedFile) -> str:
        """It may have been written once more before the commit or the stash."""
        base = self._at(self._base, file)
        if any(self._at(commit, file) != base for commit in self._made):
            return COMMITTED
        stashes = self._stashes[:1] if self._is_stashed else []
        return STASHED if any(self._in_stash(stash, file) for stash in stashes) else DISCARDED

    def _in_stash(self, stash: str, file: ChangedFile) -> set[str]:
        """What a stash has of a file beyond the commit it was made on; untracked files are in a commit of their own."""
        base, kept, untracked = (self._at(f"{stash}{of}", file) for of in ("^1", "", "^3"))
        return ({kept} if kept != base else set()) | ({untracked} if untracked else set())
