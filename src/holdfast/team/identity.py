"""What a project is to a team: its remote address in normal form and its first commit, the same in every clone."""

import hashlib
import os
import re
import subprocess
from pathlib import Path

import msgspec

from holdfast.core import git
from holdfast.git_context import locate
from holdfast.team.protocol import SharedProject

GIT_S = 20.0
# A port that is the default of its protocol is left out, so that all addresses of a repository become one.
DEFAULT_PORTS = {"ssh": "22", "https": "443", "http": "80", "git": "9418"}
# scheme://[user@]host[:port]/path, where the host may be an IPv6 address in brackets.
_URL = re.compile(
    r"^(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^@/]*@)?(?P<host>\[[^\]]+\]|[^:/]+)(?::(?P<port>\d+))?/(?P<path>.*)$", re.I
)
# git's short form [user@]host:path; a path that begins with // is an address of another kind.
_SCP = re.compile(r"^(?:[^@/:]+@)?(?P<host>[^:/]+):(?P<path>(?!//).+)$")
_REMOTE_LINE = re.compile(r'^\[remote "(?P<name>[^"]*)"\]$')


class ProjectIdentity(msgspec.Struct, frozen=True):
    """`problem` says why a folder has none; it is then not shared."""

    root: str = ""
    shared: SharedProject | None = None
    problem: str = ""


def normalise_remote(address: str) -> str:
    """`host/path`, whatever the protocol, the user or a password in it; empty where no other machine could reach it."""
    text = address.strip()
    match = _URL.match(text) or (None if text.startswith((".", "/", "~")) else _SCP.match(text))
    if not match or len(match["host"]) < 2:  # `C:\path` is no host
        return ""
    parts = match.groupdict()
    scheme = (parts.get("scheme") or "ssh").lower()
    if scheme == "file":
        return ""
    port = parts.get("port") or ""
    host = parts["host"].lower() + (f":{port}" if port and port != DEFAULT_PORTS.get(scheme) else "")
    path = re.split(r"[?#]", parts["path"])[0].strip("/")
    path = re.sub(r"/{2,}", "/", path).removesuffix(".git").strip("/")
    return f"{host}/{path}" if path else ""


def identify_project(folder: str) -> ProjectIdentity:
    """Looks at the repository of a folder; git runs nothing of the repository's and reaches no network."""
    git_context = locate(folder)
    if not git_context:
        return ProjectIdentity(problem="it is not in a git repository")
    root, common = git_context["root"], git_context["repo"]
    remote = normalise_remote(_remote_of(Path(common) / "config"))
    if not remote:
        return ProjectIdentity(root, problem="it has no remote address that others could know")
    if (Path(common) / "shallow").exists():
        return ProjectIdentity(root, problem="it is a shallow clone: its first commit is not known")
    first = _first_commit(root)
    if not first:
        return ProjectIdentity(root, problem="it has no commit yet")
    digest = hashlib.sha256(f"{remote}\n{first}".encode()).hexdigest()[:32]
    return ProjectIdentity(root, SharedProject(id=digest, remote=remote, root=first))


def _remote_of(config: Path) -> str:
    """The address of `origin`, else of the first remote, from the repository's own file."""
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


def _first_commit(root: str) -> str:
    """Of several beginnings the smallest hash: the same choice everywhere. Of the history of HEAD."""
    command = git.git_argv("rev-list", "--max-parents=0", "HEAD")
    try:
        done = subprocess.run(
            command, cwd=root, env=git.git_environment(os.environ), capture_output=True, timeout=GIT_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    hashes = [line for line in done.stdout.decode("ascii", "replace").split() if re.fullmatch(r"[0-9a-f]{40,64}", line)]
    return min(hashes, default="") if done.returncode == 0 else ""
