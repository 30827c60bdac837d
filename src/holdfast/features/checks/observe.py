"""The one impure step: what a shell call did, and what the worktree shows, written into the event before it is stored."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import msgspec

from holdfast.core.caller import find_agent
from holdfast.core.checks import Check, CommandJudgement
from holdfast.core.event import Event, own_event
from holdfast.core.feature import ContentParts, Settings
from holdfast.core.fingerprint import Fingerprint, content_key, shared_fingerprinter
from holdfast.core.kinds import TOOL_ENDS, HookPayload, ToolEndPayload, ToolPayload
from holdfast.core.kinds.agent_events import UNKNOWN_VERB
from holdfast.core.kinds.check_events import GitNoticed
from holdfast.core.machine import environment_of, process_start_ms
from holdfast.core.text import CUT_MARK
from holdfast.features.checks.git_watch import GitWatch, Worktree, find_place
from holdfast.features.checks.settings import DEFAULTS

# Running shell calls, according to hooks: where each began, and which may have changed git.

# Bounds the memory of the daemon; LONGEST_MS is an hour, in milliseconds.
MAX_CALLS = 500
LONGEST_MS = 3_600_000


class RunningCall(msgspec.Struct, frozen=True):
    session: str
    lane: str
    call: str
    worktree: str
    cwd: str
    """Where it began; the hook at its end may name the folder that it changed to."""
    at: int


class RunningCalls:
    """Kept in the daemon's memory only: after a restart nothing is known, and nothing is guessed."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str, str], RunningCall] = {}

    def add(self, call: RunningCall) -> None:
        # Dictionaries keep their order: the first one is the oldest.
        if len(self._calls) >= MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        self._calls[(call.session, call.lane, call.call)] = call

    def end(self, session: str, lane: str, call: str) -> RunningCall | None:
        return self._calls.pop((session, lane, call), None)

    def forget(self, session: str) -> None:
        """Ends the calls of a turn that is over: they were refused, or no hook reported their end."""
        for key in [key for key in self._calls if key[0] == session]:
            del self._calls[key]

    def any_in(self, worktree: str, now: int) -> bool:
        """Whether a call runs there. The agent of one that began very long ago is gone."""
        return any(call.worktree == worktree and now - call.at < LONGEST_MS for call in self._calls.values())


# What is known of a finished shell call: its command, exit status and output, as whole as the event still has them.


class ShellResult(msgspec.Struct, frozen=True):
    command: str
    exit_code: int | None
    stdout: str | None
    """None when the agent does not report it."""
    stderr: str | None = None
    why_unknown: str = ""
    """Why nothing can be said of how it ended."""


def read_shell_result(event: Event) -> ShellResult:
    data: ToolEndPayload = event.data
    stdout, stderr = _output_streams(event, data)
    # What an agent reports for a call in the background is the status of the start, not of the run.
    code = None if data.interrupted or data.detached else data.exit_code
    return ShellResult(data.command, code, stdout, stderr, _why_unknown(data))


def _why_unknown(data: ToolEndPayload) -> str:
    if CUT_MARK in data.command:
        return "the command is longer than what is kept of it"
    if data.detached:
        return "it runs on in the background; how it ended is not known"
    if data.interrupted:
        return "it was interrupted"
    return ""


def _output_streams(event: Event, data: ToolEndPayload) -> tuple[str | None, str | None]:
    """The normalised output is cut after some thousand characters; the body has more of it."""
    # Without the mark nothing was cut off, and the body need not be decoded.
    text = data.output or data.error
    if text and CUT_MARK not in text:
        return text, None
    streams = _from_body(event.body)
    return streams if streams != (None, None) else (text or None, None)


def _from_body(body: bytes) -> tuple[str | None, str | None]:
    try:
        payload: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None, None
    if not isinstance(payload, dict):
        return None, None
    response = payload.get("tool_response", payload.get("error"))
    if isinstance(response, str):  # An empty one is as often left out as empty.
        return response or None, None
    if not isinstance(response, dict):
        return None, None
    stdout, stderr = response.get("stdout"), response.get("stderr")
    return stdout if isinstance(stdout, str) else None, stderr if isinstance(stderr, str) else None


OBSERVED_KINDS = frozenset(
    ("tool.started", "tool.finished", "tool.failed", "turn.ended", "session.started", "prompt.submitted")
)
PROVING_VERBS = frozenset(("commit", "push", "merge", UNKNOWN_VERB))
"""Git acts before which somebody may want to compare the content with what was checked."""
LATE_MS = 3_000
"""An event that comes later than this, e.g. from the spool, says nothing of the content as it is now."""
MAX_PARTS = 20
LIVE_MS, MAX_LIVE = 1_800_000, 30
"""How long after its last hook a worktree is watched, and how many are."""
ACTING = frozenset(("shell", "mcp", "other"))
"""Tools that may do something in git."""


class LiveWorktree(msgspec.Struct, frozen=True):
    """A worktree in which an agent works, according to hooks."""

    worktree: Worktree
    project: str
    at: int


class Observer:
    """Looks at worktrees when an event comes. Remembers looks, and which calls are running."""

    def __init__(self) -> None:
        self._fingerprints = shared_fingerprinter()
        self._git = GitWatch()
        self._running = RunningCalls()
        self._live: dict[str, LiveWorktree] = {}
        self._since: dict[str, int] = {}
        """When a session was first seen."""
        # Wakes the watcher, which otherwise sleeps while no worktree is live.
        self.became_live = threading.Event()

    def enrich(self, event: Event, settings: Settings, parts: ContentParts) -> bool:
        data = event.data
        # What an agent's own command reports of itself is a claim: it is kept, and judged as nothing.
        if not isinstance(data, HookPayload) or data.imported or data.paused or data.claimed:
            return False
        self._note_session(event)
        self._look(event, data)(event, data, settings or DEFAULTS, parts)
        return data.git is not None or getattr(data, "judgement", None) is not None

    def _note_session(self, event: Event) -> None:
        if event.session not in self._since:
            if len(self._since) >= MAX_CALLS:
                del self._since[next(iter(self._since))]
            self._since[event.session] = event.at

    def _look(self, event: Event, data: HookPayload) -> Callable[..., None]:
        if not isinstance(data, ToolPayload):
            return self._see_moment
        if event.kind in TOOL_ENDS:
            return self._see_end if data.action in ACTING else _see_nothing
        return self._see_start if data.action == "shell" else _see_nothing

    # ── moments ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _see_moment(self, event: Event, data: HookPayload, settings: Settings, parts: ContentParts) -> None:
        if event.kind == "session.started":
            # In a thread: the hook at the start of a session is not to wait for an import.
            threading.Thread(target=_load_judge, daemon=True).start()
        # The end of a subagent's turn says nothing of the calls of the others.
        if not data.lane:
            self._running.forget(event.session)
        worktree = _place_of(event, data)
        if worktree is None:
            return
        self._look_at_git(event, data, worktree, outside=True)
        if event.kind != "prompt.submitted":
            self._take_content(event, data, worktree, settings, parts)

    def _see_start(self, event: Event, data: ToolPayload, settings: Settings, parts: ContentParts) -> None:
        from holdfast.features.checks.judge import git_verbs_of

        worktree = _place_of(event, data)
        if worktree is not None:
            self._look_at_git(event, data, worktree, outside=True)
        if data.command:
            # Read from the command alone, before it runs; what took effect is seen at its end.
            data.git_verbs = git_verbs_of(data.command, data.cwd, worktree.root if worktree else "")
        if worktree is not None and PROVING_VERBS.intersection(data.git_verbs):
            self._take_content(event, data, worktree, settings, parts)
        self._running.add(
            RunningCall(event.session, data.lane, data.call, worktree.root if worktree else "", data.cwd, event.at)
        )

    def _see_end(self, event: Event, data: ToolEndPayload, settings: Settings, parts: ContentParts) -> None:
        started = self._running.end(event.session, data.lane, data.call)
        # The command may have changed the folder; what it names is relative to where it began.
        cwd = started.cwd if started else data.cwd
        judged = CommandJudgement()
        if data.action == "shell" and data.command:
            judged = self._judge(event, data, cwd, started, settings)
        worktree = find_place(judged.worktree) if judged.worktree else _place_of(event, data)
        if worktree is None:
            return
        # Another call that still runs may be the one that changed git; this one counts only if it names git.
        if judged.git or not self._running.any_in(worktree.root, event.at):
            self._look_at_git(event, data, worktree, outside=False)
        if judged.checks:
            self._take_content(event, data, worktree, settings, parts)

    def _judge(
        self, event: Event, data: ToolEndPayload, cwd: str, started: RunningCall | None, settings: Settings
    ) -> CommandJudgement:
        from holdfast.features.checks.judge import is_uneventful, judge_result

        judged = CommandJudgement()
        # Asked first: most commands only look at something, and then their output need not be gone through.
        if not is_uneventful(data.command):
            # Reports older than the call are of an earlier run; 0 means that none is read.
            began = started.at if started else event.at - int(data.ms) if data.ms else 0
            judged = judge_result(read_shell_result(event), cwd, began if settings.reports else 0)
        if judged.checks:
            judged = msgspec.structs.replace(judged, checks=self._with_bends(event, data, judged))
        data.judgement = _worth_keeping(judged)
        if data.ms is None and started is not None:
            data.ms = max(0, event.at - started.at)
        return judged

    def _with_bends(self, event: Event, data: ToolEndPayload, judged: CommandJudgement) -> list[Check]:
        from holdfast.features.checks.bending import Before, add_bends, commit_at

        worktree = find_place(judged.worktree) if judged.worktree else _place_of(event, data)
        agent = find_agent(data.pid) or data.pid
        if worktree is None or time.time() * 1000 - event.at > LATE_MS:
            return judged.checks
        since = min(self._since.get(event.session, event.at), process_start_ms(agent) or event.at)
        state = Before(since, commit_at(worktree, since), environment_of(agent))
        # Of some agents the exit code is read later, from the transcript.
        return add_bends(judged.checks, worktree, state, undecided=data.exit_code is None)

    # ── without a hook ───────────────────────────────────────────────────────────────────────────────────────────────

    def live_worktrees(self, now: int) -> dict[str, LiveWorktree]:
        """Worktrees with a recent hook. The watcher's thread calls it, so it works on a copy."""
        return {root: one for root, one in dict(self._live).items() if now - one.at < LIVE_MS}

    def notice(self, root: str, now: int, *, staged: bool) -> list[Event]:
        """Reports what changed in git without a hook. While a call runs in the worktree, its end shows who changed it."""
        live = self._live.get(root)
        if live is None or self._running.any_in(root, now):
            return []
        look = self._git.look(live.worktree, outside=True)
        if not staged and not (look and look.acts):
            return []
        noticed = GitNoticed(worktree=root, repo=live.worktree.shared, git=look, staged=staged)
        return [own_event(noticed, now, project=live.project)]

    def remember_folders(self) -> None:
        """For the watcher's thread: later looks at large worktrees cost less."""
        self._fingerprints.remember_folders()

    # ── looks ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _look_at_git(self, event: Event, data: HookPayload, worktree: Worktree, *, outside: bool) -> None:
        """While a call runs in the worktree, what happened is seen at its end: only then is it clear who did it."""
        self._note_live(LiveWorktree(worktree, event.project, event.at))
        if outside and self._running.any_in(worktree.root, event.at):
            return
        data.git = self._git.look(worktree, outside=outside)

    def _note_live(self, live: LiveWorktree) -> None:
        # The one without hooks for longest is dropped.
        if live.worktree.root not in self._live and len(self._live) >= MAX_LIVE:
            del self._live[min(self._live, key=lambda root: self._live[root].at)]
        if live.worktree.root not in self._live:
            self.became_live.set()
        self._live[live.worktree.root] = live

    def _take_content(
        self, event: Event, data: HookPayload, worktree: Worktree, settings: Settings, parts: ContentParts
    ) -> None:
        # A longer limit for looks, as on a loaded machine, also allows later events.
        if time.time() * 1000 - event.at > max(LATE_MS, settings.look_ms):
            return
        path_sets = [(), *_distinct_parts(parts())]
        taken = self._fingerprints.take_patiently(worktree.root, path_sets, settings.look_ms / 1000)
        if event.kind in TOOL_ENDS and taken[0].newest > event.at:
            return  # The hook was answered first, and somebody has written since: that is not what was checked.
        data.content = _by_part(path_sets, taken)


def _by_part(parts: Sequence[Sequence[str]], taken: Sequence[Fingerprint]) -> dict[str, str]:
    return {
        content_key(part): fingerprint.content
        for part, fingerprint in zip(parts, taken, strict=True)
        if fingerprint.is_known
    }


def _distinct_parts(parts: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(sorted(set(part))) for part in parts if part))[:MAX_PARTS]


def _place_of(event: Event, data: HookPayload) -> Worktree | None:
    """Without a repository there is nothing to look at; the intake has found that out already."""
    return find_place(data.worktree or event.project) if data.repo else None


def _see_nothing(*_given: Any) -> None:
    """Of a tool that runs no checks and changes nothing in git."""


def _worth_keeping(judged: CommandJudgement) -> CommandJudgement | None:
    return judged if judged.checks or judged.git or judged.writes else None


def _load_judge() -> None:
    """Loads the shell parser before the first command comes."""
    import_module("holdfast.features.checks.judge")


def judge_imported(event: Event) -> None:
    """By the command and its output alone: the worktree is no longer what it was."""
    from holdfast.features.checks.judge import judge_recorded

    data = event.data
    if isinstance(data, ToolEndPayload) and data.action == "shell" and data.command:
        judged = judge_recorded(read_shell_result(event), data.cwd, event.project)
        data.judgement = _worth_keeping(judged)


OBSERVER = Observer()
