"""Identifies a project equally on every machine."""

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import msgspec

from holdfast.core import git
from holdfast.core.git_context import locate
from holdfast_team.core import project_id
from holdfast_team.protocol import SharedProject

GIT_S = 20.0
# Hosts through which large providers offer the same repositories by SSH.
_SSH_HOST = re.compile(r"^(?:alt)?ssh\.(?=[^.]+\.[^.]+)")
# scheme://[user@]host[:port]/path, where the host may be a bracketed IPv6 address.
_URL = re.compile(
    r"^(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^@/]*@)?(?P<host>\[[^\]]+\]|[^:/]+)(?::(?P<port>\d+))?/(?P<path>.*)$", re.I
)
# git's short form [user@]host:path; a path that begins with // is another kind of address.
_SCP = re.compile(r"^(?:[^@/:]+@)?(?P<host>[^:/]+):(?P<path>(?!//).+)$")
_REMOTE_LINE = re.compile(r'^\[remote "(?P<name>[^"]*)"\]$')


class ProjectIdentity(msgspec.Struct, frozen=True):
    """`problem` says why a folder has none; it is then not shared."""

    root: str = ""
    shared: SharedProject | None = None
    problem: str = ""
    home: str = ""
    """The main checkout of its repository; `root` itself if it is no worktree."""


def normalise_remote(address: str) -> str:
    """`host/path`, without protocol, user or password; empty if no other machine could reach it.

    Ports and case may be dropped, because an identity includes the first commit as well.
    """
    text = address.strip()
    match = _URL.match(text) or (None if text.startswith((".", "/", "~")) else _SCP.match(text))
    if not match or len(match["host"]) < 2:  # `C:\path` is no host
        return ""
    parts = match.groupdict()
    scheme = (parts.get("scheme") or "ssh").lower()
    if scheme == "file":
        return ""
    host = _SSH_HOST.sub("", parts["host"].lower().rstrip("."))
    path = unquote(re.split(r"[?#]", parts["path"])[0]).lower().strip("/")
    path = re.sub(r"/{2,}", "/", path).removesuffix(".git").strip("/")
    if host.endswith("dev.azure.com"):
        # The one large host whose paths differ by protocol: v3/ORG/PROJECT/REPO and ORG/PROJECT/_git/REPO.
        path = path.removeprefix("v3/").replace("/_git/", "/")
    return f"{host}/{path}" if path else ""


def identify_project(folder: str) -> ProjectIdentity:
    """Inspect a folder's repository; git runs nothing of the repository and uses no network."""
    git_context = locate(folder)
    if not git_context:
        return ProjectIdentity(problem="it is not in a git repository")
    root, common = git_context["root"], Path(git_context["repo"])
    here = ProjectIdentity(root, home=str(common.parent) if common.name == ".git" else root)
    remote = normalise_remote(_spell_out(_remote_of(common / "config")))
    if not remote:
        return msgspec.structs.replace(here, problem="it has no remote address that others could know")
    if (common / "shallow").exists():
        return msgspec.structs.replace(here, problem="it is a shallow clone: its first commit is not known")
    first = _first_commit(root)
    if not first:
        return msgspec.structs.replace(here, problem="it has no commit yet")
    return msgspec.structs.replace(here, shared=SharedProject(id=project_id(remote, first), remote=remote, root=first))


def _remote_of(config: Path) -> str:
    """The address of `origin`, else of the first remote, from the repository's own config."""
    addresses: dict[str, str] = {}
    section = ""
    try:
        lines = config.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    for line in map(str.strip, lines):
        if line.startswith("["):
            match = _REMOTE_LINE.match(line)
            section = match["name"] if match else ""
        elif section and (value := re.match(r"url\s*=\s*(.+)$", line)):
            addresses.setdefault(section, value[1].strip('"'))
    return addresses.get("origin") or next(iter(addresses.values()), "")


def _spell_out(address: str) -> str:
    """Expand the person's own git abbreviations (`url.….insteadOf`), which other machines lack."""
    listed = _run_git("config", "--global", "--includes", "-z", "--get-regexp", r"^url\..*\.insteadof$")
    settings = (line.partition("\n") for line in listed.decode("utf-8", "replace").split("\0"))
    spelled = [(short, name[4:-10]) for name, _, short in settings if short and address.startswith(short)]
    # As in git, the longest abbreviation wins.
    short, base = max(spelled, key=lambda one: len(one[0]), default=("", ""))
    return base + address[len(short) :]


def _first_commit(root: str) -> str:
    """The root commit of the default branch, or else of HEAD: merging another history or an orphan branch changes
    nothing."""
    for start in ("refs/remotes/origin/HEAD", "HEAD"):
        if first := _beginning_of(root, start):
            return first
    return ""


def _beginning_of(root: str, start: str) -> str:
    listed = _run_git("rev-list", "--first-parent", "--max-parents=0", start, "--", cwd=root).decode("ascii", "replace")
    return min((line for line in listed.split() if re.fullmatch(r"[0-9a-f]{40,64}", line)), default="")


def _run_git(*words: str, cwd: str | None = None) -> bytes:
    """The output; empty if git failed."""
    try:
        done = subprocess.run(
            git.git_argv(*words), cwd=cwd, env=git.git_environment(os.environ), capture_output=True, timeout=GIT_S,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""
