"""What git knows of a worktree's files: which differ from HEAD, the content of the others, and what is ignored."""

import fnmatch
import hashlib
import os
import re
import stat
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakValueDictionary

import msgspec

from holdfast.core import git
from holdfast.core.git_context import detached_head, locate
from holdfast.core.git_state import read_refs
from holdfast.core.job import run_briefly

GIT_S, BLOB_S, BLOBS_S = 5.0, 10.0, 60.0
MOST_ASKED, LIST_TRIES, SHORT = 200, 3, 12
_LFS_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*oid sha256:([0-9a-f]{64})\nsize \d+\n\Z"
)


PLAIN = ".plain"
"""Ends the name of the git folder used for a folder that has none."""


class Place(msgspec.Struct, frozen=True):
    """A worktree and the git folder it shares with others; or a plain folder and an empty git folder of ours."""

    root: str
    shared: str

    @property
    def is_plain(self) -> bool:
        return self.shared.endswith(PLAIN)

    def environment(self) -> dict[str, str]:
        """For git in this folder."""
        found = git.git_environment(os.environ)
        return {**found, "GIT_DIR": self.shared, "GIT_WORK_TREE": self.root} if self.is_plain else found


def plain_place(root: str, store_folder: str) -> Place:
    """A folder outside of git is looked at like a repository without a commit; its git folder is ours and stays empty."""
    shared = os.path.join(store_folder, hashlib.sha256(os.fsencode(root)).hexdigest()[:16] + PLAIN)
    for part in ("objects", "refs"):
        os.makedirs(os.path.join(shared, part), mode=0o700, exist_ok=True)
    for name, text in (("HEAD", "ref: refs/heads/none\n"), ("config", "[core]\n\trepositoryformatversion = 0\n")):
        with open(os.path.join(shared, name), "w", encoding="ascii") as file:
            file.write(text)
    return Place(root, shared)


class Tracked(msgspec.Struct, frozen=True):
    mode: int
    oid: str


class Commit:
    """The files of a commit, listed when they are first needed: in front of a call there is no time for it."""

    def __init__(self, place: Place, oid: str) -> None:
        self._place, self.oid = place, oid
        self._files: dict[str, Tracked] = {}
        self._tries = LIST_TRIES if oid else 0

    def files(self) -> dict[str, Tracked]:
        while not self._files and self._tries:
            self._tries -= 1
            self._files = head_objects(self._place, head=self.oid)
        return self._files

    def some(self, paths: Sequence[str]) -> dict[str, Tracked]:
        if not paths or not self.oid:
            return {}
        if self._files or len(paths) > MOST_ASKED:
            files = self.files()
            return {path: files[path] for path in paths if path in files}
        return head_objects(self._place, paths, self.oid)


_commits: WeakValueDictionary[tuple[str, str], Commit] = WeakValueDictionary()


def commit_of(place: Place, oid: str) -> Commit:
    """One object for all who ask for the same commit at the same time."""
    found = _commits.get((place.shared, oid))
    if found is None:
        found = _commits[place.shared, oid] = Commit(place, oid)
    return found


class Look(msgspec.Struct):
    """The paths that differ from HEAD or are new; every other one is as in HEAD."""

    commit: Commit
    changed: dict[str, None] = {}
    problem: str = ""


def filters_of(place: Place) -> list[str]:
    """Filters that the repository defines: they are programs, and are not run."""
    try:
        with open(os.path.join(place.shared, "config"), "rb") as file:
            if not git.may_name_filters(file.read(1 << 20)):
                return []
    except OSError:
        return []
    return git.own_filters(_run(place, git.config_names()))


def look(place: Place, extra: Sequence[str] = ()) -> Look:
    """`extra`: globs of ignored files that are kept all the same."""
    nothing = commit_of(place, "")
    if not os.path.lexists(place.root if place.is_plain else os.path.join(place.root, ".git")):
        return Look(nothing, problem="it is no git worktree any more")
    argv = git.status_argv(filters_of(place))
    try:
        status = run_briefly(argv, cwd=place.root, env=place.environment(), timeout=GIT_S)
    except OSError:
        return Look(nothing, problem="git cannot be started")
    if status.code:
        return Look(nothing, problem="git does not answer in time" if status.timed_out else "git status failed")
    # A folder (of another repository) ends in a slash.
    found = git.parse_status(status.out)
    changed = [one.path for one in found.changes if not one.path.endswith("/")]
    return Look(commit_of(place, found.head), dict.fromkeys([*changed, *_extra_files(place, extra)]))


Moved = tuple[str, Tracked | None, Tracked | None]
"""A path, and what two commits have of it."""


def compare_files(before: Commit, now: Commit) -> list[Moved]:
    """For commits that git itself does not have any more."""
    one, other = before.files(), now.files()
    return [(path, one.get(path), other.get(path)) for path in one.keys() | other.keys()
            if one.get(path) != other.get(path)]  # fmt: skip


def differing(place: Place, before: str, now: str) -> list[Moved] | None:
    """What differs between two commits; None if git does not know."""
    if before == now:
        return []
    if not before or not now:
        return None
    argv = git.git_argv("diff-tree", "-r", "-z", "--raw", "--no-renames", before, now)
    environment = {**git.git_environment(os.environ), "GIT_DIR": place.shared}
    try:
        ran = run_briefly(argv, cwd=place.shared, env=environment, timeout=GIT_S)
    except OSError:
        return None
    if ran.code:
        return None
    facts = iter(ran.out.split(b"\0")[:-1])
    found = []
    for fact, name in zip(facts, facts, strict=True):
        modes = fact.lstrip(b":").split(b" ")
        found.append((os.fsdecode(name), _as_tracked(modes[0], modes[2]), _as_tracked(modes[1], modes[3])))
    return found


def _as_tracked(mode: bytes, oid: bytes) -> Tracked | None:
    """None if the commit has no such file; a submodule is none."""
    return Tracked(int(mode, 8), oid.decode()) if mode not in (b"000000", b"160000") else None


def _extra_files(place: Place, extra: Sequence[str]) -> list[str]:
    if not extra:
        return []
    specs = [f":(glob)**/{one}" if "/" not in one else f":(glob){one}" for one in extra]
    argv = git.git_argv("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *specs)
    return git.parse_names(_run(place, argv))


def _run(place: Place, argv: Sequence[str]) -> bytes:
    ran = run_briefly(argv, cwd=place.root, env=place.environment(), timeout=GIT_S)
    return b"" if ran.code else ran.out


def linked_worktrees(shared: str) -> list[str]:
    """The roots of worktrees that share this git folder."""
    roots = [os.path.dirname(shared)] if os.path.basename(shared) == ".git" else []
    folder = os.path.join(shared, "worktrees")
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            with open(os.path.join(folder, name, "gitdir"), encoding="utf-8", errors="surrogateescape") as file:
                roots.append(os.path.dirname(file.readline().strip()))
        except OSError:
            continue
    return [root for root in roots if os.path.lexists(os.path.join(root, ".git"))]


def read_blob(shared: str, oid: str) -> bytes | None:
    """What a clean file had: git's object, or what Git LFS keeps for it. No filter is run; files that a filter or an end
    of line made different from git's object are kept as they are (`find_converted`)."""
    try:
        raw = _read_object(shared, oid)
    except OSError:
        return None
    pointer = _LFS_POINTER.match(raw) if raw is not None else None
    return _read_lfs(shared, pointer[1].decode()) if pointer else raw


def _read_object(shared: str, oid: str) -> bytes | None:
    process = _blob_process.get()
    if process and process.shared == shared:
        try:
            return process.read(oid)
        except (OSError, ValueError):
            pass  # It ended: git is asked by itself.
    argv = git.git_argv("cat-file", "blob", oid)
    ran = run_briefly(argv, cwd=shared, env=_object_environment(shared), timeout=BLOB_S)
    return None if ran.code or ran.timed_out else ran.out


def _object_environment(shared: str) -> dict[str, str]:
    return {**git.git_environment(os.environ), "GIT_DIR": shared}


class _BlobProcess:
    """One git process for many objects, started by the first."""

    def __init__(self, shared: str) -> None:
        self.shared = shared
        self._git: subprocess.Popen[bytes] | None = None
        self._watchdog = threading.Timer(BLOBS_S, self.close)

    def read(self, oid: str) -> bytes | None:
        if self._git is None:
            self._git = subprocess.Popen(
                git.git_argv("cat-file", "--batch"), cwd=self.shared, env=_object_environment(self.shared),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            self._watchdog.start()
        assert self._git.stdin and self._git.stdout
        self._git.stdin.write(oid.encode() + b"\n")
        self._git.stdin.flush()
        facts = self._git.stdout.readline().split()
        if facts[1:] == [b"missing"]:
            return None
        if len(facts) != 3:
            raise ValueError("git cat-file ended")
        content = self._git.stdout.read(int(facts[2]) + 1)
        if len(content) != int(facts[2]) + 1:
            raise ValueError("git cat-file ended")
        return content[:-1] if facts[1] == b"blob" else None

    def close(self) -> None:
        self._watchdog.cancel()
        if self._git:
            self._git.kill()
            self._git.communicate()


_blob_process: ContextVar[_BlobProcess | None] = ContextVar("_blob_process", default=None)


@contextmanager
def many_blobs(shared: str) -> Iterator[None]:
    """Within it `read_blob` starts one process instead of one for each object, which took 10 ms."""
    process = _BlobProcess(shared)
    before = _blob_process.set(process)
    try:
        yield
    finally:
        _blob_process.reset(before)
        process.close()


def _read_lfs(shared: str, name: str) -> bytes | None:
    try:
        with open(os.path.join(shared, "lfs", "objects", name[:2], name[2:4], name), "rb") as file:
            content = file.read()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == name else None


def find_converted(place: Place, commit: Commit) -> tuple[list[str], list[str]]:
    """Of a commit's files, those whose size on disk is not that of git's object, and those that are not on disk."""
    argv = git.git_argv("ls-tree", "-r", "-l", "-z", commit.oid)
    converted, missing = [], []
    for entry in _run(place, argv).split(b"\0")[:-1] if commit.oid else ():
        facts, _, name = entry.partition(b"\t")
        size, path = facts.split()[3], os.fsdecode(name)
        try:
            found = os.lstat(os.path.join(place.root, path))
        except OSError:
            missing.append(path)
            continue
        if size.isdigit() and stat.S_ISREG(found.st_mode) and found.st_size != int(size):
            converted.append(path)
    return converted, missing


def read_head(place: Place) -> str:
    """The branch and the commit: `main 1a2b3c4d5e6f`; empty if there is none yet."""
    branch = locate(place.root).get("branch", "")
    commit = read_refs(place.shared, [branch]).get(branch, "") if branch else detached_head(place.root)
    return f"{branch or 'no branch'} {commit[:SHORT]}" if commit else ""


def head_objects(place: Place, paths: Sequence[str] = (), head: str = "HEAD") -> dict[str, Tracked]:
    """What a commit has of these paths, or of all."""
    every = () if paths else ("-r",)
    argv = git.git_argv("--literal-pathspecs", "ls-tree", "-z", *every, head, "--", *paths)
    # By its git folder: the worktree itself may be gone; its own HEAD is needed only while it is there.
    where, environment = place.root, place.environment()
    if head != "HEAD":
        where, environment = place.shared, {**environment, "GIT_DIR": place.shared}
    try:
        ran = run_briefly(argv, cwd=where, env=environment, timeout=GIT_S)
    except OSError:
        return {}
    tracked, asked = {}, set(paths)
    for entry in ran.out.split(b"\0")[:-1] if ran.code == 0 else ():
        facts, _, name = entry.partition(b"\t")
        mode, kind, oid = facts.split(b" ")
        path = os.fsdecode(name)
        # Asked for a folder and for a file below it, git names other files of the folder too.
        if kind == b"blob" and (not asked or path in asked):
            tracked[path] = Tracked(int(mode, 8), oid.decode())
    return tracked


def known_objects(shared: str, oids: Iterable[str]) -> set[str]:
    """Which of these objects the repository has."""
    environment = {**git.git_environment(os.environ), "GIT_DIR": shared}
    asked = "\n".join(oids).encode() + b"\n"
    ran = run_briefly(
        git.git_argv("cat-file", "--batch-check"), cwd=shared, env=environment, stdin=asked, timeout=GIT_S
    )
    return {line.split(b" ")[0].decode() for line in ran.out.splitlines() if not line.endswith(b" missing")}


def object_id(content: bytes, like: str = "") -> str:
    """The id that git gives a file's content; repositories with SHA-256 have longer ones."""
    make = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return make(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


class IgnoreAsker:
    """Asks one git process of the worktree which names are ignored; a question takes a tenth of a millisecond."""

    def __init__(self, place: Place, extra: Callable[[], Sequence[str]]) -> None:
        self._place, self._extra = place, extra
        self._git: subprocess.Popen[bytes] | None = None
        self._known: dict[str, bool] = {}

    def is_ignored(self, path: str) -> bool:
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._ask(path) and not self._is_extra(path)
        return known

    def forget(self) -> None:
        """A `.gitignore` changed."""
        self._known.clear()
        if self._git:
            self._git.kill()
            self._git.communicate()
            self._git = None

    def _is_extra(self, path: str) -> bool:
        name = os.path.basename(path)
        return any(fnmatch.fnmatch(path if "/" in one else name, one) for one in self._extra())

    def _ask(self, path: str) -> bool:
        for _attempt in range(2):
            try:
                return self._exchange(path)
            except (OSError, ValueError):
                self.forget()
        # Rather kept than lost.
        return False

    def _exchange(self, path: str) -> bool:
        if self._git is None:
            self._git = subprocess.Popen(
                git.git_argv("check-ignore", "-z", "--stdin", "--verbose", "--non-matching"),
                cwd=self._place.root, env=self._place.environment(), bufsize=0,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        assert self._git.stdin and self._git.stdout
        # Without `./` a name such as `:(glob)x` would be magic.
        self._git.stdin.write(os.fsencode(f"./{path}") + b"\0")
        answer = b""
        # Four fields, each with its end: source, line, pattern, path.
        while answer.count(b"\0") < 4:
            piece = self._git.stdout.read(65536)
            if not piece:
                raise ValueError("git check-ignore ended")
            answer += piece
        pattern = answer.split(b"\0")[2]
        return bool(pattern) and not pattern.startswith(b"!")
