"""What is kept: the latest run of each check in a worktree and branch, and how far git's reflog was seen."""

import hashlib
from collections.abc import Iterator

import msgspec

from holdfast.core.checks import GitLook, Verdict
from holdfast.core.document import DocumentType
from holdfast.core.event import Event
from holdfast.core.kinds import HookPayload
from holdfast.core.kinds.check_events import CheckFinished, GitNoticed
from holdfast.core.ports import Doc, Ref

# In one document; the others are bounds in characters, and of operands.
MAX_RUNS = 60
MAX_COMMAND, MAX_WHY, MAX_OPERANDS = 300, 300, 20


class CheckRun(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The latest run of one check by one session. `content` is the fingerprint it ended on, by part."""

    seq: int
    of: int = 0
    at: int = 0
    session: str = ""
    agent: str = ""
    kind: str = ""
    runner: str = ""
    dir: str = ""
    selection: str = ""
    operands: list[str] = []
    verdict: str = ""
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    why: str = ""
    command: str = ""
    ms: float | int | None = None
    commit: str = ""
    content: dict[str, str] = {}
    bent: list[str] = []


class BranchChecks(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The runs in one worktree while one branch was checked out."""

    project: str = ""
    worktree: str = ""
    repo: str = ""
    branch: str = ""
    at: int = 0
    runs: dict[str, CheckRun] = {}
    """By session and what ran, so that no session's run erases another's. The oldest go first."""


class GitSeen(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How git was seen last in one worktree, and how it had been seen before that."""

    project: str = ""
    at: int = 0
    head: str = ""
    branch: str = ""
    log_size: int = -1
    """Length of HEAD's reflog; -1 when it was never seen."""
    before_head: str = ""
    before_branch: str = ""
    before_log_size: int = -1


CHECKS = DocumentType("checks", BranchChecks)
GIT_SEEN = DocumentType("checks_git", GitSeen)


def checks_key(worktree: str, branch: str) -> str:
    return f"{worktree}\n{branch}"


def run_key(session: str, data: CheckFinished) -> str:
    """One that did not run (`pytest --version`, a usage error) or whose end is not known says nothing of the one that
    did: it has its own row."""
    ran = "" if data.verdict in (Verdict.PASSED, Verdict.FAILED) else data.verdict
    parts = (session, data.kind, data.runner, data.dir, data.selection, ran, *data.operands)
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=9).hexdigest()


SEES_GIT = (HookPayload, GitNoticed)
"""The payloads that may carry a look at git."""


def keys(event: Event) -> Iterator[Ref]:
    data = event.data
    if isinstance(data, CheckFinished):
        yield CHECKS.ref(checks_key(data.worktree or event.project, data.branch))
    elif isinstance(data, SEES_GIT) and data.git is not None:
        yield GIT_SEEN.ref(data.git.worktree)


def reduce(doc: Doc | None, event: Event, _ref: Ref) -> Doc | None:
    data = event.data
    if isinstance(data, CheckFinished):
        return _with_run(doc or BranchChecks(), event, data)
    if isinstance(data, SEES_GIT) and data.git is not None:
        return _with_look(doc or GitSeen(), event, data.git)
    return doc


def _with_run(doc: BranchChecks, event: Event, data: CheckFinished) -> BranchChecks:
    key = run_key(event.session, data)
    known = doc.runs.get(key)
    if known and known.at > event.at:
        return doc
    runs = {**doc.runs, key: _check_run(event, data)}
    # In the order of their times: history may come after live runs.
    runs = dict(sorted(runs.items(), key=lambda item: item[1].at)[-MAX_RUNS:])
    return BranchChecks(
        project=event.project,
        worktree=data.worktree or event.project,
        repo=data.repo,
        branch=data.branch,
        at=max(doc.at, event.at),
        runs=runs,
    )


def _check_run(event: Event, data: CheckFinished) -> CheckRun:
    run = msgspec.convert(
        msgspec.structs.asdict(data)
        | {"seq": event.seq, "at": event.at, "session": event.session, "agent": event.agent},
        CheckRun,
    )
    cut = {"operands": run.operands[:MAX_OPERANDS], "why": run.why[:MAX_WHY], "command": run.command[:MAX_COMMAND]}
    return msgspec.structs.replace(run, **cut)


def _with_look(doc: GitSeen, event: Event, look: GitLook) -> GitSeen:
    return GitSeen(
        project=event.project,
        at=event.at,
        head=look.head,
        branch=look.branch,
        log_size=look.log_size,
        before_head=doc.head,
        before_branch=doc.branch,
        before_log_size=doc.log_size,
    )
