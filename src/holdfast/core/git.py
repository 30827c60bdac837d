"""Git without surprises: how the program is called so that a repository runs nothing, and how its answers are read.

Pure: an argument list and an environment in, parsed values out. Whoever has a `Run` port starts the program:
`run(git.argv("status", …), cwd=root, env=git.environment(os.environ))`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

NEUTRAL = (
    "core.fsmonitor=",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.alternateRefsCommand=",
    "diff.external=",
    "log.showSignature=false",
    "protocol.allow=never",
    "submodule.recurse=false",
)
"""Settings by which a repository could make a mere look run a program or reach the network."""

KEPT_VARIABLES = ("PATH", "HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "TMPDIR", "SYSTEMROOT")
# Among others: no lock on the index, which the agent's own git may need at this moment.
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
"""Config of the repository cannot override the environment."""

# Group 1: the name of the filter.
_FILTER_PROGRAM = re.compile(r"^filter\.(.+)\.(?:clean|smudge|process|required)$", re.IGNORECASE | re.DOTALL)
# An included file may name filters as well.
_MAY_NAME_FILTERS = re.compile(rb"\[\s*(?:filter|include)", re.IGNORECASE)
# Scopes of git's settings that belong to the repository, not to the user.
THEIRS = ("local", "worktree")


def git_argv(*words: str, filters: Iterable[str] = ()) -> list[str]:
    """`filters`: those the repository's own config names (`own_filters`); they are switched off for this call."""
    off = [f"filter.{name}.{what}=" for name in filters for what in ("clean", "smudge", "process")]
    off += [f"filter.{name}.required=false" for name in filters]
    settings = [part for setting in (*NEUTRAL, *off) for part in ("-c", setting)]
    return ["git", "--no-optional-locks", "--no-pager", *settings, *words]


def git_environment(base: Mapping[str, str]) -> dict[str, str]:
    """What the program may see: no GIT_DIR of whoever started the daemon, no askpass, no editor."""
    return {name: base[name] for name in KEPT_VARIABLES if name in base} | FIXED_VARIABLES


# ── the repository's own filters ─────────────────────────────────────────────────────────────────────────────────────


def may_name_filters(config: bytes) -> bool:
    """Whether it is worth asking git: most `.git/config` files name no filter and include nothing."""
    return bool(_MAY_NAME_FILTERS.search(config))


def config_names() -> list[str]:
    return git_argv("config", "--list", "--includes", "--show-scope", "--name-only", "-z")


def own_filters(listed: bytes) -> list[str]:
    """From `config_names`: filter drivers of the repository's own making. Those of the user are the user's."""
    parts = _decode_names(listed.split(b"\0"))
    named = (
        match[1]
        # Scope and name come in turn.
        for scope, name in zip(parts[::2], parts[1::2], strict=False)
        if scope in THEIRS and (match := _FILTER_PROGRAM.match(name))
    )
    return list(dict.fromkeys(named))


# ── status ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Change(msgspec.Struct, frozen=True):
    """One line of `git status`. `code` is the two-letter form (`??` untracked, `UU` conflict); `was` after a rename."""

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
    """The commit's full hash; empty before the first commit."""
    branch: str = ""
    """Empty when detached."""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    stashes: int = 0
    changes: list[Change] = []
    cut: bool = False
    """The answer was longer than what was kept: there are more changes than these."""


def status_argv(untracked: str = "all", filters: Iterable[str] = ()) -> list[str]:
    """Submodules are not entered: each has a config of its own."""
    how = ("--porcelain=v2", "-z", "--branch", "--show-stash", "--ignore-submodules=dirty", "--no-renames")
    return git_argv("status", *how, f"--untracked-files={untracked}", filters=filters)


def parse_status(out: bytes) -> Status:
    # With `-z` every entry ends with a null byte: without one at the end, the output was cut.
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
    # How many fields stand before the path: of a change, a rename, a conflict. The path may hold blanks.
    fields = line.split(" ", {"1": 8, "2": 9, "u": 10}.get(kind, 0))
    if kind == "1" and len(fields) == 9:
        return Change(fields[8], fields[1])
    if kind == "2" and len(fields) == 10:
        # With `-z` the old name is an entry of its own.
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
    """Milliseconds."""
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
    # The fields of all commits are separated by the same byte, four for each.
    groups = ("\0".join(fields[n : n + 4]) for n in range(0, len(fields) - 3, 4))
    return [commit for group in groups if (commit := parse_commit(group.encode()))]


# ── counts and lists ─────────────────────────────────────────────────────────────────────────────────────────────────


def list_files_argv(*pathspecs: str, others: bool = False) -> list[str]:
    """Tracked files; with `others` also those that are new and not ignored."""
    more = ("--others", "--exclude-standard") if others else ()
    return git_argv("ls-files", "-z", "--cached", *more, "--", *pathspecs)


def parse_names(out: bytes) -> list[str]:
    """Of any `-z` list of names. A name cut off at the end is not a name."""
    return _decode_names(out.split(b"\0")[:-1])


def diff_argv(*words: str, filters: Iterable[str] = ()) -> list[str]:
    """No external program, no conversion, no colours, no prefix of the user's choosing; paths mean what they say."""
    how = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/")
    return git_argv("--literal-pathspecs", "diff", *how, "--ignore-submodules=all", *words, filters=filters)


def merge_base(one: str, other: str) -> list[str]:
    return git_argv("merge-base", one, other)


def _decode_names(parts: Sequence[bytes]) -> list[str]:
    """Names are bytes; those that are not UTF-8 are kept in the way Python keeps file names."""
    return [part.decode("utf-8", "surrogateescape") for part in parts]


def _parse_count(text: str) -> int:
    digits = text.lstrip("+-")
    # A bound, so that no damaged output becomes a number too large for the store.
    return int(digits) if digits.isdecimal() and len(digits) < 16 else 0
