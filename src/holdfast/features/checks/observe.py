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
from holdfast.core.kinds import TOOL_ENDS, HookPayload, ToolEndPayload, ToolPayload
from holdfast.core.process import run_briefly
from holdfast.features.checks.git_watch import GitWatch, Place, find_place
from holdfast.features.checks.running import RunningCall, RunningCalls
from holdfast.features.checks.settings import DEFAULTS
from holdfast.features.checks.shell_result import read_shell_result

OBSERVED_KINDS = frozenset(
    ("tool.started", "tool.finished", "tool.failed", "turn.ended", "session.started", "prompt.submitted")
)
PROVING_VERBS = frozenset(("commit", "push", "merge"))
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

    def enrich(self, event: Event, settings: Settings, parts: ContentParts) -> None:
        data = event.data
        if not isinstance(data, HookPayload) or data.imported:
            return
        if isinstance(data, ToolEndPayload) and event.kind in TOOL_ENDS:
            if data.action in ACTING:
                self._see_end(event, data, settings or DEFAULTS, parts)
        elif isinstance(data, ToolPayload):
            if data.action == "shell":
                self._see_start(event, data, settings or DEFAULTS, parts)
        else:
            self._see_moment(event, data, settings or DEFAULTS, parts)

    # ── moments ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _see_moment(self, event: Event, data: HookPayload, settings: Settings, parts: ContentParts) -> None:
        if event.kind == "session.started":
            threading.Thread(target=_load_judge, daemon=True).start()
        if event.kind == "turn.ended":
            self._running.forget(event.session, data.lane)
        place = _place_of(event, data)
        if place is None:
            return
        self._look_at_git(data, place, outside=True)
        if event.kind != "prompt.submitted":
            self._take_content(event, data, place, settings, parts)

    def _see_start(self, event: Event, data: ToolPayload, settings: Settings, parts: ContentParts) -> None:
        from holdfast.features.checks.judging import git_verbs_of

        place = _place_of(event, data)
        if place is not None:
            self._look_at_git(data, place, outside=True)
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
        if acts or not self._running.any_in(place.root):
            self._look_at_git(data, place, outside=False)
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

    def _look_at_git(self, data: HookPayload, place: Place, *, outside: bool) -> None:
        """While a call runs in the worktree, what happened is seen at its end: only then is it clear who did it."""
        if outside and self._running.any_in(place.root):
            return
        data.git = self._git.look(place, outside=outside)

    def _take_content(
        self, event: Event, data: HookPayload, place: Place, settings: Settings, parts: ContentParts
    ) -> None:
        if time.time() * 1000 - event.at > LATE_MS:
            return
        wanted = [(), *_distinct(parts())]
        taken = self._fingerprints.take_parts(place.root, wanted, settings.look_ms / 1000)
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
