"""What leaves a machine: as which project, which fields of which events, and the log of what left."""

import contextlib
import hashlib
import os
import posixpath
import re
import secrets
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec

from holdfast.analysis.redact import redact
from holdfast.core import git
from holdfast.core.erase import INSTEAD
from holdfast.core.event import Event
from holdfast.core.git_context import locate
from holdfast.core.kinds import HOOK_KINDS, SESSION_ENDS, TEAM_KINDS, TURN_ENDS
from holdfast.paths import private_folder, write_atomically
from holdfast_team.core import project_id
from holdfast_team.membership import TeamConnection, TeamFiles
from holdfast_team.protocol import LEVELS, Batch, Level, SharedEvent, SharedProject

T = TypeVar("T")

# What a project is to a team: its remote address in normal form and its first commit, the same in every clone.

GIT_S = 20.0
# Hosts through which large providers offer the same repositories by SSH.
_SSH_HOST = re.compile(r"^(?:alt)?ssh\.(?=[^.]+\.[^.]+)")
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
    home: str = ""
    """The main checkout of its repository; `root` itself, where it is no worktree."""


def normalise_remote(address: str) -> str:
    """`host/path`, whatever the protocol, the user or a password in it; empty where no other machine could reach it.

    It may leave out what tells two repositories apart only in theory (ports, capital letters): an identity has the first
    commit as well.
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
    """Looks at the repository of a folder; git runs nothing of the repository's and reaches no network."""
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


def _spell_out(address: str) -> str:
    """With the abbreviations of the person's own git settings (`url.….insteadOf`): another machine has others, or none."""
    try:
        done = subprocess.run(
            git.git_argv("config", "--global", "--includes", "-z", "--get-regexp", r"^url\..*\.insteadof$"),
            env=git.git_environment(os.environ), capture_output=True, timeout=GIT_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return address
    settings = (line.partition("\n") for line in done.stdout.decode("utf-8", "replace").split("\0"))
    spelled = [(short, name[4:-10]) for name, _, short in settings if short and address.startswith(short)]
    # As git does it: the longest abbreviation counts.
    short, base = max(spelled, key=lambda one: len(one[0]), default=("", ""))
    return base + address[len(short) :]


def _first_commit(root: str) -> str:
    """Where the line of the default branch, or else of HEAD, began: joining another repository's history to it, and a
    branch that begins anew, change nothing."""
    for start in ("refs/remotes/origin/HEAD", "HEAD"):
        if first := _beginning_of(root, start):
            return first
    return ""


def _beginning_of(root: str, start: str) -> str:
    command = git.git_argv("rev-list", "--first-parent", "--max-parents=0", start, "--")
    try:
        done = subprocess.run(
            command, cwd=root, env=git.git_environment(os.environ), capture_output=True, timeout=GIT_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    hashes = [line for line in done.stdout.decode("ascii", "replace").split() if re.fullmatch(r"[0-9a-f]{40,64}", line)]
    return min(hashes, default="") if done.returncode == 0 else ""


# What leaves this machine: an allow-list of fields by kind and level. What is not listed does not leave.
#
# `presence` that and where somebody works · `facts` tools, files, verdicts, tokens, no text · `summaries` also what
# sessions
# came to, in words · `full` every field of every event of a session. Bodies, transcripts and paths outside of the
# project never leave
# below `full`; bodies and process ids never leave at all.

Fields = Mapping[str, frozenset[str]]
"""Kind → the fields of its payload that may leave."""

_WHERE = ("branch",)
_TOOL_FACTS = ("branch", "action", "paths", "ok", "exit_code", "ms", "lane_type", "interrupted")


def _fields_by_kind(kinds: Iterable[str], *names: str) -> dict[str, frozenset[str]]:
    return dict.fromkeys(kinds, frozenset(names))


PRESENCE: Fields = {
    **_fields_by_kind(("session.started", "prompt.submitted", "permission.requested", "notification", "elicitation.requested"), *_WHERE),
    **_fields_by_kind((*SESSION_ENDS, *TURN_ENDS), *_WHERE),
}  # fmt: skip
FACTS: Fields = {
    **PRESENCE,
    **_fields_by_kind(("session.started",), "branch", "source", "model"),
    **_fields_by_kind(("tool.finished", "tool.failed"), *_TOOL_FACTS),
    **_fields_by_kind(("subagent.started", "subagent.ended"), "branch", "lane_type"),
    **_fields_by_kind(("compact.ended",), "trigger"),
    **_fields_by_kind(
        ("check.finished",),
        "kind", "runner", "selection", "verdict", "passed", "failed", "skipped", "ms", "branch", "commit",
    ),
    **_fields_by_kind(("git.acted",), "verb", "commits", "outside"),
    **_fields_by_kind(("model.answered",), "branch", "model", "tokens", "reported", "summed", "day", "compaction"),
    **_fields_by_kind(("decision.made",), "of_kind", "verdict", "branch"),
    **_fields_by_kind(("gates.triggered", "gates.bypassed"), "branch", "requirements"),
    **_fields_by_kind(("gates.satisfied", "gates.approved"), "branch", "requirements", "method"),
}  # fmt: skip
SUMMARIES: Fields = {
    **FACTS,
    **_fields_by_kind(
        ("session.summarised",), "title", "text", "prompts", "tools", "failed", "denied", "edits", "ms", "files",
        "commits", "outcome", "end",
    ),
    **_fields_by_kind(("check.finished",), *FACTS["check.finished"], "failures"),
    **_fields_by_kind(("decision.made",), *FACTS["decision.made"], "reasons"),
}  # fmt: skip
BY_LEVEL: Mapping[Level, Fields] = {"presence": PRESENCE, "facts": FACTS, "summaries": SUMMARIES}

FULL_KINDS = frozenset(HOOK_KINDS) | SUMMARIES.keys() | {"turn.processed", "memory.observed", "session.linked"}
NEVER = frozenset(
    "process pid pid_start transcript lane_transcript settings_at left_running same dedupe_key cwd repo worktree content git refs"
    " touches written".split()
)
"""Fields that mean nothing on another machine."""
PATH_FIELDS = frozenset(("paths", "files"))
LEVEL_TEXT: Mapping[Level, str] = {
    "presence": "that you work, in which project and branch, and whether an agent waits for you",
    "facts": "also which tools ran, which files they wrote (names only), verdicts of checks and gates, tokens and models",
    "summaries": "also what each session came to in words, names of failed tests, reasons of refusals",
    "full": "also prompts, answers, commands and their output, after redaction",
}


def share_event(event: Event, level: Level, project: str, root: str) -> SharedEvent | None:
    """The event as it leaves, or None where nothing of it does. `root` is the local folder of the project."""
    allowed = _allowed_fields(event.kind, level)
    # Events of the team came from the server: they are not sent back.
    if allowed is None or event.kind in TEAM_KINDS or not event.session:
        return None
    whole = event.data.as_dict()
    data = {name: value for name, value in whole.items() if name not in NEVER and (level == "full" or name in allowed)}
    # A worktree of the same repository: a file has the same name in each of them.
    tree = whole.get("worktree") if whole.get("repo") == f"{root}/.git" else ""
    for name in PATH_FIELDS & data.keys():
        data[name] = inside_paths(data[name], root, tree or root)
    return SharedEvent(
        seq=event.seq, key=event.key, at=event.at, kind=event.kind, session=event.session, project=project,
        agent=event.agent, tool=event.tool if level != "presence" else "", data=clean_text(data),
    )  # fmt: skip


def _allowed_fields(kind: str, level: Level) -> frozenset[str] | None:
    if level == "full":
        # At `full` every field may leave that is not in NEVER, so there is no list of fields.
        return frozenset() if kind in FULL_KINDS else None
    return BY_LEVEL[level].get(kind)


def inside_paths(paths: Any, root: str, tree: str) -> list[str]:
    """Relative to the worktree or else to the project; what lies outside of both does not leave."""
    texts = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    # Made normal before the test: `src/../../secret` lies outside.
    within = (path.removeprefix(f"{tree}/" if path.startswith(f"{tree}/") else f"{root}/") for path in texts)
    relative = (posixpath.normpath(path) for path in within)
    return [path for path in relative if not path.startswith(("/", "../", "~")) and path not in (".", "..")]


def clean_text(value: Any) -> Any:
    """Text that JSON can carry: half of a surrogate pair becomes a question mark."""
    try:
        msgspec.json.encode(value)  # Nearly always so, and many times quicker than looking at every text.
        return value
    except UnicodeEncodeError:
        return _replace_surrogates(value)


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_replace_surrogates(str(name)): _replace_surrogates(one) for name, one in value.items()}
    return [_replace_surrogates(one) for one in value] if isinstance(value, list | tuple) else value


def level_named(text: str) -> Level | None:
    return next((level for level in LEVELS if level == text), None)


# What left this machine, word for word; and an index by which is found what of it was erased here since.

MOST_BYTES = 64 << 20
"""Then the file becomes `sent.1.jsonl`, and the one before that goes."""


class SentEvent(msgspec.Struct, array_like=True, frozen=True):
    """One event that was sent: which, at which level, and a digest of what left. No text."""

    stream: int
    seq: int
    key: str
    level: str
    digest: str
    session: str


def digest_of(event: SharedEvent) -> str:
    # `level` is only set where it differs from the batch's, so the digest of an event leaves it out.
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(event, level=""))).hexdigest()[:20]


class SentLog:
    """Written before a batch is sent: what may have left is on record, even where no answer came."""

    def __init__(self, files: TeamFiles) -> None:
        self._files = files
        self._last: tuple[int, int, int] | None = None

    def note_batch(self, batch: Batch, encoded: bytes) -> None:
        """`encoded` is what leaves; `batch` is the same before redaction, as it can be made again from the log."""
        which = batch.stream, batch.after, batch.upto
        # A batch without an answer is sent again with the same bounds: it is noted once.
        if which == self._last or not batch.events:
            return
        private_folder(self._files.folder)
        for path in (self._files.sent_file, self._files.index_file):
            _rotate_file(path)
        _append_durably(self._files.sent_file, encoded + b"\n")
        rows = (
            SentEvent(batch.stream, e.seq, e.key, e.level or batch.level, digest_of(e), e.session) for e in batch.events
        )
        _append_durably(self._files.index_file, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        self._last = which

    def batches(self) -> Iterator[Batch]:
        """From the oldest that is kept."""
        for line in _complete_lines(self._files.sent_file):
            with contextlib.suppress(msgspec.DecodeError):
                yield msgspec.json.decode(line, type=Batch)

    def events(self) -> Iterator[SentEvent]:
        for line in _complete_lines(self._files.index_file):
            with contextlib.suppress(msgspec.DecodeError):
                yield msgspec.json.decode(line, type=SentEvent)

    def common_prefix(self, key_at: Callable[[int], str], bound: int) -> int:
        """The last number up to `bound` at which the log still has what was sent."""
        return max((one.seq for one in self.events() if one.seq <= bound and key_at(one.seq) == one.key), default=0)

    def drop_events(self, gone: frozenset[tuple[int, int]]) -> None:
        """What was forgotten is not kept here either."""
        for path in (_rotated_path(self._files.sent_file), self._files.sent_file):
            if path.exists():
                write_atomically(
                    path, b"".join(_remove_events(line, gone) for line in path.read_bytes().splitlines() if line)
                )
        for path in (_rotated_path(self._files.index_file), self._files.index_file):
            if path.exists():
                remaining = [line for line in path.read_bytes().splitlines() if _row_key(line) not in gone]
                write_atomically(path, b"".join(line + b"\n" for line in remaining))


class SentWords(msgspec.Struct, frozen=True, omit_defaults=True):
    """What somebody told the team by a command: a hand-over, a memory, a lease."""

    at: int
    path: str
    """The server's address that it went to."""
    body: dict[str, Any]
    id: str = ""
    folder: str = ""
    """Where it was said. It did not leave: it is here so that erasing the project changes this line too."""
    digest: str = ""
    """Of the body and the folder as they were: a line that differs from it was changed by erasing something."""

    def was_changed(self) -> bool:
        # Lines of the version before had no digest.
        text = msgspec.json.encode(self.body).decode()
        return self.digest != digest_of_words(self.body, self.folder) if self.digest else INSTEAD in text


def digest_of_words(body: dict[str, Any], folder: str) -> str:
    return hashlib.sha256(msgspec.json.encode((body, folder), order="deterministic")).hexdigest()[:20]


def send_words(
    files: TeamFiles, connection: TeamConnection, path: str, answer: type[T], body: Any, now: int, folder: str = ""
) -> T:
    """Redacted and on record before it leaves, as events are: it leaves whatever the level is."""
    plain = msgspec.to_builtins(body)
    # A memory has its own id.
    number = plain.get("id") or secrets.token_hex(8)
    clean, _ = redact(msgspec.json.encode({**plain, **({} if "id" in plain else {"words": number})}))
    private_folder(files.folder)
    _rotate_file(files.words_file)
    sent: dict[str, Any] = msgspec.json.decode(clean)
    words = SentWords(now, path, sent, number, folder, digest_of_words(sent, folder))
    with files.locked("words.lock"):
        _append_durably(files.words_file, msgspec.json.encode(words) + b"\n")
    return connection.request("POST", path, answer, sent)


def list_words(files: TeamFiles) -> list[SentWords]:
    """From the oldest."""
    found = []
    for line in _complete_lines(files.words_file):
        with contextlib.suppress(msgspec.DecodeError):
            found.append(msgspec.json.decode(line, type=SentWords))
    return found


def drop_words(files: TeamFiles, gone: frozenset[str]) -> None:
    """What was forgotten there is not kept here either."""
    with files.locked("words.lock"):
        for path in (_rotated_path(files.words_file), files.words_file):
            if path.exists():
                lines = [line for line in path.read_bytes().splitlines() if _words_id(line) not in gone]
                write_atomically(path, b"".join(line + b"\n" for line in lines))


def _words_id(line: bytes) -> str:
    try:
        words = msgspec.json.decode(line, type=SentWords)
    except msgspec.DecodeError:
        return ""
    return words.id or str(words.body.get("id") or "")


def describe_level(level: Level) -> str:
    """What leaves at a level, as a whole: each adds to those before it."""
    shared = "; ".join(LEVEL_TEXT[one] for one in LEVELS[: LEVELS.index(level) + 1])
    return f"{shared}; no text" if level in ("presence", "facts") else shared


def _row_key(line: bytes) -> tuple[int, int]:
    try:
        row = msgspec.json.decode(line, type=SentEvent)
    except msgspec.DecodeError:
        # No event has these numbers: a line that cannot be read is kept in the index, which has no text.
        return 0, 0
    return row.stream, row.seq


def _remove_events(line: bytes, gone: frozenset[tuple[int, int]]) -> bytes:
    try:
        batch = msgspec.json.decode(line, type=Batch)
    except msgspec.DecodeError:
        # It may hold text that is to be gone, and nobody can tell: the line is dropped.
        return b""
    remaining = tuple(event for event in batch.events if (batch.stream, event.seq) not in gone)
    return msgspec.json.encode(msgspec.structs.replace(batch, events=remaining)) + b"\n" if remaining else b""


def _rotate_file(path: Path) -> None:
    if path.exists() and path.stat().st_size > MOST_BYTES:
        path.replace(_rotated_path(path))


def _rotated_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.1{path.suffix}")


def _complete_lines(path: Path) -> Iterator[bytes]:
    """A line that was cut off by a crash left with the next attempt, and stands there again as a whole."""
    for one in (_rotated_path(path), path):
        if one.exists():
            with one.open("rb") as file:
                yield from (line for line in file if line.endswith(b"\n") and len(line) > 2)


def _append_durably(path: Path, content: bytes) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "r+b", buffering=0) as file:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":  # A crash cut the last line off.
            content = b"\n" + content
        view = memoryview(content)
        while view:
            view = view[file.write(view) or 0 :]
        os.fdatasync(fd)
