"""What git knows of a worktree's files: which differ from HEAD, the content of the others, and what is ignored."""

import fnmatch
import hashlib
import os
import stat
import subprocess
from collections.abc import Callable, Iterable, Sequence

import msgspec

from holdfast.core import git
from holdfast.core.job import run_briefly

GIT_S, BLOB_S = 5.0, 10.0
_SUBMODULE = "160000"


class Place(msgspec.Struct, frozen=True):
    """A worktree and the git folder it shares with others."""

    root: str
    shared: str


class Tracked(msgspec.Struct, frozen=True):
    mode: int
    oid: str


class Look(msgspec.Struct):
    """The paths that differ from HEAD or are new, and git's object for every other one."""

    changed: list[str]
    listed: bytes
    head: str = ""
    problem: str = ""

    def tracked(self) -> dict[str, Tracked]:
        return _parse_listed(self.listed, 1)

    def unchanged(self) -> dict[str, Tracked]:
        """Parsed only when needed: a large repository has many."""
        tracked = self.tracked()
        for path in self.changed:
            tracked.pop(path, None)
        return tracked


def _parse_listed(listed: bytes, oid_at: int) -> dict[str, Tracked]:
    """The output of `ls-files --stage` (mode, oid, stage) or `ls-tree` (mode, kind, oid)."""
    tracked = {}
    for entry in listed.split(b"\0")[:-1]:
        facts, _, name = entry.partition(b"\t")
        fields = facts.decode().split(" ")
        if fields[0] != _SUBMODULE:
            tracked[os.fsdecode(name)] = Tracked(int(fields[0], 8), fields[oid_at])
    return tracked


def filters_of(place: Place) -> list[str]:
    """Filters that the repository defines: they are programs, and are not run."""
    try:
        with open(os.path.join(place.shared, "config"), "rb") as file:
            if not git.may_name_filters(file.read(1 << 20)):
                return []
    except OSError:
        return []
    return git.own_filters(_run(place.root, git.config_names()))


def look(place: Place, extra: Sequence[str] = ()) -> Look:
    """Ask git for both lists at the same time. `extra`: globs of ignored files that are kept all the same."""
    environment = git.git_environment(os.environ)
    if not os.path.lexists(os.path.join(place.root, ".git")):
        return Look([], b"", problem="it is no git worktree any more")
    listing = subprocess.Popen(
        git.git_argv("ls-files", "-z", "--stage"), cwd=place.root, env=environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        status = run_briefly(git.status_argv(filters_of(place)), cwd=place.root, env=environment, timeout=GIT_S)
        listed = listing.communicate(timeout=GIT_S)[0]
    except (subprocess.TimeoutExpired, OSError):
        listing.kill()
        listing.wait()
        return Look([], b"", problem="git does not answer in time")
    if status.code:
        return Look([], b"", problem="git status failed")
    # A folder (of another repository) ends in a slash.
    found = git.parse_status(status.out)
    changed = [one.path for one in found.changes if not one.path.endswith("/")]
    return Look([*changed, *_extra_files(place, extra)], listed, found.head)


def _extra_files(place: Place, extra: Sequence[str]) -> list[str]:
    if not extra:
        return []
    specs = [f":(glob)**/{one}" if "/" not in one else f":(glob){one}" for one in extra]
    argv = git.git_argv("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *specs)
    return git.parse_names(_run(place.root, argv))


def _run(root: str, argv: Sequence[str]) -> bytes:
    ran = run_briefly(argv, cwd=root, env=git.git_environment(os.environ), timeout=GIT_S)
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


def read_blob(shared: str, oid: str, path: str) -> bytes | None:
    """The bytes that a checkout of this object at this path writes."""
    environment = {**git.git_environment(os.environ), "GIT_DIR": shared}
    for argv in (("cat-file", "--filters", f"--path={path}", oid), ("cat-file", "blob", oid)):
        try:
            ran = run_briefly(git.git_argv(*argv), cwd=shared, env=environment, timeout=BLOB_S)
        except OSError:
            return None
        if ran.code == 0 and not ran.timed_out:
            return ran.out
    return None


def head_objects(place: Place, paths: Sequence[str] = (), head: str = "HEAD") -> dict[str, Tracked]:
    """What a commit has of these paths, or of all."""
    every = () if paths else ("-r",)
    argv = git.git_argv("--literal-pathspecs", "ls-tree", "-z", *every, head, "--", *paths)
    # By its git folder: the worktree itself may be gone; its own HEAD is needed only while it is there.
    where, environment = place.root, git.git_environment(os.environ)
    if head != "HEAD":
        where, environment = place.shared, {**environment, "GIT_DIR": place.shared}
    try:
        ran = run_briefly(argv, cwd=where, env=environment, timeout=GIT_S)
    except OSError:
        return {}
    listed = _parse_listed(ran.out, 2) if ran.code == 0 else {}
    return {path: one for path, one in listed.items() if stat.S_IFMT(one.mode) != stat.S_IFDIR}


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
                cwd=self._place.root, env=git.git_environment(os.environ), bufsize=0,
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
