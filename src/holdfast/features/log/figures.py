"""What happened in the last days, over all projects: sessions, checks, and the errors met most."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.analysis.error_text import first_error, signature
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ports import EventQuery, Reader

DAY_MS = 86_400_000
PAGE = 2_000
MOST_ERRORS = 5
FEWEST = 2
"""An error met once is no pattern."""


def recent_figures(call: Call) -> dict[str, Any]:
    """Of the last `days` (30); if nothing happened in them, of as many before the last prompt."""
    length = max(1, min(int(call.args.get("days") or 30), 366)) * DAY_MS
    since, until = call.now - length, call.now
    prompts = list(_events(call.reader, "prompt.submitted", since))
    if not prompts and (last := _last_prompt(call.reader)):
        since, until = last - length, last
        prompts = list(_events(call.reader, "prompt.submitted", since))
    checks = list(_events(call.reader, "check.finished", since, until))
    # A failing test is counted with the checks.
    judged = {(event.session, event.data.get("call")) for event in checks}
    failed = _events(call.reader, "tool.failed", since, until)
    errors = ErrorCounts(one for one in failed if (one.session, one.data.get("call")) not in judged)
    return {
        "since": since, "until": until, "now": call.now, "prompts": sum(not event.data.get("synthetic") for event in prompts),
        "sessions": len({event.session for event in prompts}),
        "agents": _counted_sessions((event.agent, event.session) for event in prompts),
        "projects": _counted_sessions((event.project, event.session) for event in prompts if event.project),
        "checks": _check_counts(checks),
        "failed_calls": errors.total, "errors": errors.most_frequent(),
    }  # fmt: skip


def _events(reader: Reader, kind: str, since: int, until: int = 1 << 62) -> Iterator[Event]:
    after = 0
    while page := reader.events(EventQuery(kinds=(kind,), since=since, after=after, limit=PAGE)):
        yield from (event for event in page if event.at <= until)
        after = page[-1].seq


def _last_prompt(reader: Reader) -> int:
    return max((event.at for event in _events(reader, "prompt.submitted", 0)), default=0)


def _counted_sessions(pairs: Iterator[tuple[str, str]]) -> dict[str, int]:
    """Sessions of each, most first."""
    return dict(Counter(name for name, _ in set(pairs)).most_common())


def _check_counts(checks: Iterable[Event]) -> dict[str, dict[str, int]]:
    """Of each kind, runs by verdict."""
    counts: dict[str, Counter[str]] = {}
    for event in checks:
        counts.setdefault(str(event.data.get("kind")), Counter())[str(event.data.get("verdict"))] += 1
    return {kind: dict(found) for kind, found in sorted(counts.items(), key=lambda one: -one[1].total())}


class ErrorCounts:
    """Failed calls, the same error with other paths and numbers counted as one."""

    def __init__(self, failed: Iterable[Event]) -> None:
        self.total = 0
        self._sessions: dict[str, set[str]] = {}
        self._times: Counter[str] = Counter()
        self._shown: dict[str, str] = {}
        for event in failed:
            self.total += 1
            line = first_error(str(event.data.get("error") or ""))
            if sign := signature(line):
                self._times[sign] += 1
                self._shown.setdefault(sign, line)
                self._sessions.setdefault(sign, set()).add(event.session)

    def most_frequent(self) -> list[dict[str, Any]]:
        """Those of most sessions first: one session that repeats itself is no pattern."""
        order = sorted(self._times, key=lambda sign: (-len(self._sessions[sign]), -self._times[sign], sign))
        return [
            {"text": self._shown[sign], "times": self._times[sign], "sessions": len(self._sessions[sign])}
            for sign in order[:MOST_ERRORS]
            if self._times[sign] >= FEWEST
        ]
