"""Derives events about checks and git acts from other events."""

# Pure: observations are in the event.

from collections.abc import Iterator

import msgspec

from holdfast.core.checks import Check, CheckKind, CommandJudgement, GitLogEntry, GitLook, Verdict
from holdfast.core.event import Event, derived_event
from holdfast.core.feature import Settings, State
from holdfast.core.job import Job
from holdfast.core.kinds import HookPayload, ToolEndPayload
from holdfast.core.kinds.check_events import CheckFinished, GitActed, GitNoticed, GitRef
from holdfast.features.checks.observe import OBSERVED_KINDS
from holdfast.features.checks.state import GIT_SEEN, SEES_GIT, GitSeen

MAX_FAILURES = 50
EXIT_READ = "tool.exit_read"
JUDGE_LATE = "checks.judge_late"
SUBSCRIBED_KINDS = OBSERVED_KINDS | {CheckFinished.KIND, GitNoticed.KIND, EXIT_READ}
# In characters.
MAX_COMMAND = 500
# Verbs after which the new head is a commit of this act.
COMMITTING = frozenset(("commit", "merge", "cherry-pick", "revert", "am", "rebase", "pull"))


def derive(state: State, event: Event, _settings: Settings) -> Iterator[Event]:
    data = event.data
    if isinstance(data, ToolEndPayload) and data.judgement is not None:
        for check in data.judgement.checks:
            yield derived_event(event, check_finished(event, data, data.judgement, check))
    if isinstance(data, SEES_GIT) and data.git is not None:
        yield from _git_acts(event, data.git, GIT_SEEN.get(state, data.git.worktree) or GitSeen())
    if isinstance(data, ToolEndPayload) and data.judgement is not None:
        yield from _pushes_without_trace(event, data, data.judgement)


def enqueue(_state: State, event: Event, _settings: Settings) -> Iterator[Job]:
    """How a command ended may become known only later: then it is judged again."""
    if event.kind == EXIT_READ and event.data.get("of"):
        of = int(event.data["of"])
        payload = {"of": of, "exit_code": event.data.get("exit_code")}
        yield Job(kind=JUDGE_LATE, dedupe=str(of), run_at=event.at, payload=payload)


def check_finished(event: Event, data: ToolEndPayload, judged: CommandJudgement, check: Check) -> CheckFinished:
    names = {"kind": check.kind.value, "selection": check.selection.value, "verdict": check.verdict.value}
    return CheckFinished(
        **{**msgspec.structs.asdict(check), **names},
        of=event.seq,
        call=data.call,
        lane=data.lane,
        failures=_failed_tests(data, check),
        command=data.command[:MAX_COMMAND],
        ms=data.ms,
        worktree=judged.worktree or data.worktree or event.project,
        repo=judged.repo or data.repo,
        branch=judged.branch if judged.worktree else data.branch,
        commit=judged.commit,
        content=data.content,
        imported=data.imported,
    )


def _failed_tests(data: ToolEndPayload, check: Check) -> list[str]:
    failed = check.kind is CheckKind.TEST and check.verdict is Verdict.FAILED
    return read_failures(check.runner, f"{data.output}\n{data.error}") if failed else []


def read_failures(runner: str, output: str) -> list[str]:
    """Names of failed tests, in the order they are printed, each once."""
    # Here, because a daemon's start should not wait for the patterns.
    from holdfast.features.checks.runners.table import failure_patterns

    names = (" ".join(name.split())[:300] for pattern in failure_patterns(runner) for name in pattern.findall(output))
    return list(dict.fromkeys(filter(None, names)))[:MAX_FAILURES]


# ── git ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _git_acts(event: Event, look: GitLook, seen: GitSeen) -> Iterator[Event]:
    """What is new since the look before. Where there was none, nothing is known to be new."""
    if seen.before_log_size < 0:
        return
    branch = seen.before_branch
    for act in look.acts:
        # `at` is where the line ends in the reflog; acts before the earlier end were reported already.
        if act.at and act.at <= seen.before_log_size:
            continue
        after = _branch_after(act, branch, look.branch)
        yield derived_event(event, _git_acted(event, look, act, branch, after))
        branch = after


def _branch_after(act: GitLogEntry, branch: str, last: str) -> str:
    """A checkout names where it went; whatever else happens stays on its branch."""
    if act.verb != "checkout":
        return branch or last
    target = act.detail.rpartition(" to ")[2].strip()
    # After `checkout <commit>` the target is the beginning of that commit: HEAD is detached, on no branch.
    return target if target and not act.new.startswith(target) else ""


def _git_acted(event: Event, look: GitLook, act: GitLogEntry, before: str, after: str) -> GitActed:
    data: HookPayload | GitNoticed = event.data
    return GitActed(
        of=event.seq,
        verb=act.verb,
        worktree=look.worktree,
        repo=data.repo,
        before=GitRef(head=act.old, branch=before),
        after=GitRef(head=act.new, branch=after),
        commits=[act.new] if act.verb in COMMITTING and act.new and act.new != act.old else [],
        outside=look.outside,
    )


def _pushes_without_trace(event: Event, data: ToolEndPayload, judged: CommandJudgement) -> Iterator[Event]:
    """A push to an address moves no ref of ours: there git's own answer is all there is."""
    pushed = any(act.verb == "push" and act.effective for act in judged.git)
    if pushed and not (data.git and any(act.verb == "push" for act in data.git.acts)):
        here = GitRef(head=judged.commit, branch=judged.branch)
        yield derived_event(
            event,
            GitActed(of=event.seq, verb="push", worktree=judged.worktree, repo=judged.repo, before=here, after=here),
        )
