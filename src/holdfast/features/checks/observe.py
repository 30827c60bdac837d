"""The one impure step: what a shell call did, and what the worktree shows, written into the event before it is stored."""

import os
import threading
import time
from collections.abc import Iterable, Sequence
from importlib import import_module

from holdfast.core.checks import CommandJudgement
from holdfast.core.event import Event
from holdfast.core.feature import ContentParts, Settings
from holdfast.core.fingerprint import Fingerprint, Fingerprinter, content_key
from holdfast.core.job import run_briefly
from holdfast.core.kinds import TOOL_ENDS, HookPayload, ToolEndPayload, ToolPayload
from holdfast.core.kinds.agent_events import UNKNOWN_VERB
from holdfast.features.checks.git_watch import GitWatch, Place, find_place
from holdfast.features.checks.running import RunningCall, RunningCalls
from holdfast.features.checks.settings import DEFAULTS
from holdfast.features.checks.shell_result import read_shell_result

OBSERVED_KINDS = frozenset(
    ("tool.started", "tool.finished", "tool.failed", "turn.ended", "session.started", "prompt.submitted")
)
PROVING_VERBS = frozenset(("commit", "push", "merge", UNKNOWN_VERB))
"""Git acts before which somebody may want to compare the content with what was checked."""
LATE_MS = 3_000
"""An event that comes later than this, e.g. from the spool, says nothing of the content as it is now."""
MAX_PARTS = 20
ACTING = frozenset(("shell", "mcp", "other"))
"""Tools that may do something in git."""


class Observer:
    """Looks at worktrees when an event comes. Remembers looks, and which calls are running."""

    def __init__(self) -> None:
        self._fingerprints = Fingerprinter(run_briefly, os.environ)
        self._git = GitWatch()
        self._running = RunningCalls()

    def enrich(self, event: Event, settings: Settings, parts: ContentParts) -> bool:
        data = event.data
        if not isinstance(data, HookPayload) or data.imported or data.paused:
            return False
        if isinstance(data, ToolEndPayload) and event.kind in TOOL_ENDS:
            if data.action in ACTING:
                self._see_end(event, data, settings or DEFAULTS, parts)
        elif isinstance(data, ToolPayload):
            if data.action == "shell":
                self._see_start(event, data, settings or DEFAULTS, parts)
        else:
            self._see_moment(event, data, settings or DEFAULTS, parts)
        return data.git is not None or (isinstance(data, ToolEndPayload) and data.judgement is not None)

    # ── moments ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _see_moment(self, event: Event, data: HookPayload, settings: Settings, parts: ContentParts) -> None:
        if event.kind == "session.started":
            threading.Thread(target=_load_judge, daemon=True).start()
        if not data.lane:
            self._running.forget(event.session)
        place = _place_of(event, data)
        if place is None:
            return
        self._look_at_git(event, data, place, outside=True)
        if event.kind != "prompt.submitted":
            self._take_content(event, data, place, settings, parts)

    def _see_start(self, event: Event, data: ToolPayload, settings: Settings, parts: ContentParts) -> None:
        from holdfast.features.checks.judging import git_verbs_of

        place = _place_of(event, data)
        if place is not None:
            self._look_at_git(event, data, place, outside=True)
        if data.command:
            data.git_verbs = git_verbs_of(data.command, data.cwd, place.root if place else "")
        if place is not None and PROVING_VERBS.intersection(data.git_verbs):
            self._take_content(event, data, place, settings, parts)
        self._running.add(
            RunningCall(event.session, data.lane, data.call, place.root if place else "", data.cwd, event.at)
        )

    def _see_end(self, event: Event, data: ToolEndPayload, settings: Settings, parts: ContentParts) -> None:
        started = self._running.end(event.session, data.lane, data.call)
        cwd = started.cwd if started else data.cwd
        judged = None
        if data.action == "shell" and data.command:
            judged = self._judge(event, data, cwd, started, settings)
        place = find_place(judged.worktree) if judged and judged.worktree else _place_of(event, data)
        if place is None:
            return
        acts = bool(judged and judged.git)
        if acts or not self._running.any_in(place.root, event.at):
            self._look_at_git(event, data, place, outside=False)
        if judged and judged.checks:
            self._take_content(event, data, place, settings, parts)

    def _judge(
        self, event: Event, data: ToolEndPayload, cwd: str, started: RunningCall | None, settings: Settings
    ) -> CommandJudgement | None:
        from holdfast.features.checks.judging import judge_result

        began = started.at if started else event.at - int(data.ms) if data.ms else 0
        judged = judge_result(read_shell_result(event), cwd, began if settings.reports else 0)
        data.judgement = judged if judged.checks or judged.git or judged.writes else None
        if data.ms is None and started is not None:
            data.ms = max(0, event.at - started.at)
        return judged

    # ── looks ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _look_at_git(self, event: Event, data: HookPayload, place: Place, *, outside: bool) -> None:
        """While a call runs in the worktree, what happened is seen at its end: only then is it clear who did it."""
        if outside and self._running.any_in(place.root, event.at):
            return
        data.git = self._git.look(place, outside=outside)

    def _take_content(
        self, event: Event, data: HookPayload, place: Place, settings: Settings, parts: ContentParts
    ) -> None:
        if time.time() * 1000 - event.at > LATE_MS:
            return
        wanted = [(), *_distinct(parts())]
        taken = self._fingerprints.take_parts(place.root, wanted, settings.look_ms / 1000)
        if event.kind in TOOL_ENDS and taken[0].newest > event.at:
            return  # The hook was answered first, and somebody has written since: that is not what was checked.
        data.content = _by_part(wanted, taken)


def _by_part(parts: Sequence[Sequence[str]], taken: Sequence[Fingerprint]) -> dict[str, str]:
    return {content_key(part): found.content for part, found in zip(parts, taken, strict=True) if found.known}


def _distinct(parts: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(sorted(set(part))) for part in parts if part))[:MAX_PARTS]


def _place_of(event: Event, data: HookPayload) -> Place | None:
    """Without a repository there is nothing to look at; the intake has found that out already."""
    return find_place(data.worktree or event.project) if data.repo else None


def _load_judge() -> None:
    """The shell parser takes a moment to load: it is there before the first command comes."""
    import_module("holdfast.features.checks.judging")


OBSERVER = Observer()
