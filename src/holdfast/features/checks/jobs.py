"""Work outside the hooks: checks whose exit status comes late, and git acts without a hook."""

import hashlib
import os
import time
from collections.abc import Iterable

import msgspec

from holdfast.core import git
from holdfast.core.checks import Check
from holdfast.core.event import Event, derived_event
from holdfast.core.feature import JobCall, WatchCall
from holdfast.core.job import run_briefly
from holdfast.core.kinds import ToolEndPayload
from holdfast.features.checks.git_watch import Worktree
from holdfast.features.checks.observe import OBSERVER, read_shell_result
from holdfast.features.checks.policy import check_finished

STEP_MS, DEBOUNCE_MS = 250, 500
"""How often the watch checks whether to stop; how long it gathers changes."""
# FIRST_MS: how long a watch waits before it comes back without a change; IDLE_S and INDEX_S are seconds.
FIRST_MS, IDLE_S = 2_000, 60.0
INDEX_S = 2.0
# The files in a git folder whose change says that something happened; locks and objects change all the time.
TELLING = frozenset(("HEAD", "index", "ORIG_HEAD", "MERGE_HEAD"))


def judge_late(call: JobCall) -> list[Event]:
    """Reports a check again whose verdict changed, with the content as it was when the call ended."""
    from holdfast.features.checks.judge import judge_result

    payload = call.job.payload
    ended = call.reader.event(int(payload["of"]))
    code = payload.get("exit_code")
    # Without an exit status there is nothing new to judge by.
    if ended is None or not isinstance(ended.data, ToolEndPayload) or not isinstance(code, int):
        return []
    before = ended.data.judgement
    if before is None or not before.checks:
        return []
    result = msgspec.structs.replace(read_shell_result(ended), exit_code=code)
    judged = judge_result(result, before.cwd or ended.data.cwd)
    # The worktree of today is another one: place, branch and commit stay as they were when the call ended.
    where = {"worktree": before.worktree, "repo": before.repo, "branch": before.branch, "commit": before.commit}
    judged = msgspec.structs.replace(judged, checks=[_as_it_ran(one, before.checks) for one in judged.checks], **where)
    changed = [check for check in judged.checks if not _is_known(check, before.checks)]
    return [
        _told_late(derived_event(ended, check_finished(ended, ended.data, judged, check)), number)
        for number, check in enumerate(changed)
    ]


def _as_it_ran(check: Check, known_checks: list[Check]) -> Check:
    """With what was seen of its surroundings when it ended."""
    same = next((one for one in known_checks if (one.runner, one.dir) == (check.runner, check.dir)), None)
    return msgspec.structs.replace(check, bent=same.bent, ran_with=same.ran_with) if same else check


def _is_known(check: Check, known_checks: list[Check]) -> bool:
    # Another wording of the reason alone is no news.
    return any(msgspec.structs.replace(one, why=check.why) == check for one in known_checks)


def _told_late(event: Event, number: int) -> Event:
    # A key of its own, because an event whose key is known already is taken for a repetition.
    return msgspec.structs.replace(event, key=f"{event.key}.late.{number}")


# ── git acts without a hook ──────────────────────────────────────────────────────────────────────────────────────────


class _Until:
    """Ends a watch when the daemon stops, or when other worktrees are to be watched."""

    def __init__(self, call: WatchCall, roots: Iterable[str]) -> None:
        self._stopping, self._roots = call.stopping, set(roots)

    def is_set(self) -> bool:
        return self._stopping.is_set() or _live_places().keys() != self._roots


def watch_worktrees(call: WatchCall) -> None:
    """HEAD, its reflog and the index of each worktree in which an agent works."""
    while not call.stopping.is_set():
        worktrees = _live_places()
        if worktrees:
            _watch_places(call, worktrees)
        else:
            # With a limit, so that the daemon can stop.
            OBSERVER.became_live.wait(IDLE_S)
            OBSERVER.became_live.clear()


def _watch_places(call: WatchCall, worktrees: dict[str, Worktree]) -> None:
    from watchfiles import watch

    staged = {root: _staged_digest(worktree) for root, worktree in worktrees.items()}
    changes = watch(
        *_watched_folders(worktrees.values()), watch_filter=lambda _change, path: os.path.basename(path) in TELLING,
        stop_event=_Until(call, worktrees), step=STEP_MS, debounce=DEBOUNCE_MS, rust_timeout=FIRST_MS,
        yield_on_timeout=True, recursive=False, raise_interrupt=False,
    )  # fmt: skip
    waiting = set(
        worktrees
    )  # Something may have happened before the watch was set up: each is looked at once in any case.
    for changed in changes:
        touched = {os.path.dirname(path) for _change, path in changed}
        for root, worktree in worktrees.items():
            if root in waiting or touched & set(_watched_folders([worktree])):
                _notice_change(call, worktree, staged)
        waiting.clear()
        OBSERVER.remember_folders()


def _notice_change(call: WatchCall, worktree: Worktree, staged: dict[str, str]) -> None:
    """`git status` in an editor rewrites the index too: only what is staged counts."""
    before, now = staged.get(worktree.root, ""), _staged_digest(worktree)
    staged[worktree.root] = now
    at = time.time_ns() // 1_000_000
    try:
        # Without a digest before or now nothing can be said of what is staged.
        call.handle(lambda: OBSERVER.notice(worktree.root, at, staged=bool(before and now and before != now)))
    except Exception as error:  # The writer is busy or gone: the next hook sees what is in git.
        call.report(error)


def _live_places() -> dict[str, Worktree]:
    now = time.time_ns() // 1_000_000
    return {root: live.worktree for root, live in OBSERVER.live_worktrees(now).items()}


def _watched_folders(worktrees: Iterable[Worktree]) -> list[str]:
    folders = [folder for worktree in worktrees for folder in (worktree.own, os.path.join(worktree.own, "logs"))]
    # A fresh repository has no reflog yet, and watching a folder that is missing fails.
    return [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder)]


def _staged_digest(worktree: Worktree) -> str:
    """Digest of every path, mode and content in the index; empty where git does not answer in time."""
    argv = git.git_argv("ls-files", "-z", "--stage")
    try:
        ran = run_briefly(argv, cwd=worktree.root, env=git.git_environment(os.environ), timeout=INDEX_S)
    except OSError:
        return ""
    return hashlib.blake2b(ran.out, digest_size=16).hexdigest() if ran.code == 0 and not ran.timed_out else ""
