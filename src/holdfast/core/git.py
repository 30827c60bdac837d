"""Calls git so that a repository cannot run code, and parses its answers."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

NEUTRAL = (
    "core.fsmonitor=",
    "core.hooksPath=/dev/null",
    "core.checkStat=default",
    "core.trustctime=true",
    "core.ignoreStat=false",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.alternateRefsCommand=",
    "diff.external=",
    "log.showSignature=false",
    "protocol.allow=never",
    "submodule.recurse=false",
)
"""Settings by which a repository could make a read run a program, use the network, or overlook a change."""

KEPT_VARIABLES = ("PATH", "HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "TMPDIR", "SYSTEMROOT")
# Among others: no lock on the index, which the agent's own git may need.
FIXED_VARIABLES = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_ASKPASS": "false",
    "LC_ALL": "C.UTF-8",
}
"""The repository's config cannot override the environment."""

# Group 1 is the name of the filter.
_FILTER_PROGRAM = re.compile(r"^filter\.(.+)\.(?:clean|smudge|process|required)$", re.IGNORECASE | re.DOTALL)
# An included file may name filters as well.
_MAY_NAME_FILTERS = re.compile(rb"\[\s*(?:filter|include)", re.IGNORECASE)
# Scopes of git settings that belong to the repository, not the user.
THEIRS = ("local", "worktree")


def git_argv(*words: str, filters: Iterable[str] = ()) -> list[str]:
    """Build the command line; `filters` (see `own_filters`) are switched off for this call."""
    off = [f"filter.{name}.{what}=" for name in filters for what in ("clean", "smudge", "process")]
    off += [f"filter.{name}.required=false" for name in filters]
    settings = [part for setting in (*NEUTRAL, *off) for part in ("-c", setting)]
    return ["git", "--no-optional-locks", "--no-pager", *settings, *words]


def git_environment(base: Mapping[str, str]) -> dict[str, str]:
    """The environment for git, without GIT_DIR, askpass or editor of the process that started the daemon."""
    return {name: base[name] for name in KEPT_VARIABLES if name in base} | FIXED_VARIABLES


# ── the repository's own filters ─────────────────────────────────────────────────────────────────────────────────────


def may_name_filters(config: bytes) -> bool:
    """Return whether git must be asked: most `.git/config` files name no filter and include nothing."""
    return bool(_MAY_NAME_FILTERS.search(config))


def config_names() -> list[str]:
    return git_argv("config", "--list", "--includes", "--show-scope", "--name-only", "-z")


def own_filters(listed: bytes) -> list[str]:
    """Filter drivers defined by the repository, from the output of `config_names`."""
    parts = _decode_names(listed.split(b"\0"))
    named = (
        match[1]
        # Scope and name alternate.
        for scope, name in zip(parts[::2], parts[1::2], strict=False)
        if scope in THEIRS and (match := _FILTER_PROGRAM.match(name))
    )
    return list(dict.fromkeys(named))


# ── status ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Change(msgspec.Struct, frozen=True):
    """One line of `git status`. `code` has two letters (`??` untracked, `UU` conflict); `was` is the old name after a
    rename."""

    path: str
    code: str
    was: str = ""

    @property
    def untracked(self) -> bool:
        return self.code == "??"

    @property
    def conflict(self) -> bool:
        return "U" in self.code or self.code in ("AA", "DD")


class Status(msgspec.Struct, kw_only=True):
    head: str = ""
    """The full commit hash; empty before the first commit."""
    branch: str = ""
    """Empty if detached."""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    stashes: int = 0
    changes: list[Change] = []
    cut: bool = False
    """The output was cut, so there are more changes."""


def status_argv(filters: Iterable[str] = (), *, renames: bool = False) -> list[str]:
    """Submodules are not entered, because each has a config of its own."""
    how = ("--porcelain=v2", "-z", "--branch", "--show-stash", "--ignore-submodules=dirty", "--untracked-files=all")
    return git_argv("status", *how, "--find-renames" if renames else "--no-renames", filters=filters)


def parse_status(out: bytes) -> Status:
    # With `-z` every entry ends with a null byte; otherwise the output was cut.
    found = Status(cut=bool(out) and not out.endswith(b"\0"), changes=[])
    lines = iter(_decode_names(out.split(b"\0")[:-1]))
    for line in lines:
        if line.startswith("# "):
            _read_header(found, line[2:])
        elif change := _parse_change(line, lines):
            found.changes.append(change)
    return found


def _read_header(found: Status, line: str) -> None:
    name, _, value = line.partition(" ")
    if name == "branch.oid":
        found.head = "" if value == "(initial)" else value
    elif name == "branch.head":
        found.branch = "" if value == "(detached)" else value
    elif name == "branch.upstream":
        found.upstream = value
    elif name == "branch.ab":
        ahead, _, behind = value.partition(" ")
        found.ahead, found.behind = _parse_count(ahead), _parse_count(behind)
    elif name == "stash":
        found.stashes = _parse_count(value)


def _parse_change(line: str, following: Iterator[str]) -> Change | None:
    kind = line[:1]
    if kind == "?":
        return Change(line[2:], "??")
    # The number of fields before the path, for a change, a rename, a conflict. The path may contain spaces.
    fields = line.split(" ", {"1": 8, "2": 9, "u": 10}.get(kind, 0))
    if kind == "1" and len(fields) == 9:
        return Change(fields[8], fields[1])
    if kind == "2" and len(fields) == 10:
        # With `-z` the old name is a separate entry.
        return Change(fields[9], fields[1], was=next(following, ""))
    if kind == "u" and len(fields) == 11:
        return Change(fields[10], fields[1])
    return None


# ── commits ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# Hash, time in seconds, author, subject.
_COMMIT = "%H%x00%ct%x00%an <%ae>%x00%s"


class Commit(msgspec.Struct, frozen=True):
    hash: str
    at: int
    """In milliseconds."""
    author: str
    subject: str


def last_commit(what: str = "HEAD") -> list[str]:
    return git_argv("log", "-1", "--no-show-signature", f"--format={_COMMIT}", what, "--")


def log_argv(between: str, limit: int) -> list[str]:
    """`between`: a range such as `@{upstream}..HEAD`; newest first."""
    return git_argv("log", f"--max-count={limit}", "--no-show-signature", "-z", f"--format={_COMMIT}", between, "--")


def parse_commit(out: bytes) -> Commit | None:
    parts = out.decode("utf-8", "replace").rstrip("\n").split("\0", 3)
    if len(parts) != 4 or not parts[1].isdecimal():
        return None
    return Commit(parts[0], int(parts[1]) * 1000, parts[2][:300], parts[3][:500])


def parse_commits(out: bytes) -> list[Commit]:
    fields = out.decode("utf-8", "replace").split("\0")
    # All fields of all commits are separated by the same byte, four per commit.
    groups = ("\0".join(fields[n : n + 4]) for n in range(0, len(fields) - 3, 4))
    return [commit for group in groups if (commit := parse_commit(group.encode()))]


# ── counts and lists ─────────────────────────────────────────────────────────────────────────────────────────────────


def list_files_argv(*pathspecs: str, others: bool = False) -> list[str]:
    """List tracked files; with `others` also new files that are not ignored."""
    more = ("--others", "--exclude-standard") if others else ()
    return git_argv("ls-files", "-z", "--cached", *more, "--", *pathspecs)


def parse_names(out: bytes) -> list[str]:
    """Parse a `-z` list of names and drop a name that was cut."""
    return _decode_names(out.split(b"\0")[:-1])


def diff_argv(*words: str, filters: Iterable[str] = ()) -> list[str]:
    """No external program, conversion, colours or custom prefixes: paths are literal."""
    how = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/")
    return git_argv("--literal-pathspecs", "diff", *how, "--ignore-submodules=all", *words, filters=filters)


def merge_base(one: str, other: str) -> list[str]:
    return git_argv("merge-base", one, other)


def _decode_names(parts: Sequence[bytes]) -> list[str]:
    """Decode names as Python decodes file names, so that invalid UTF-8 survives."""
    return [part.decode("utf-8", "surrogateescape") for part in parts]


def _parse_count(text: str) -> int:
    digits = text.lstrip("+-")
    # A bound, so that damaged output gives no number too large for the store.
    return int(digits) if digits.isdecimal() and len(digits) < 16 else 0
