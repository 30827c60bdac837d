"""What was done per day, project and agent: summed when a turn is gone through or a call of a model is read, never while a
hook waits."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import ModelAnswered
from holdfast.core.kinds.session_events import TurnFacts, TurnProcessed
from holdfast.core.ports import Ref
from holdfast.features.sessions.state.documents import DAY, YEAR, DayActivity, Turn, YearActivity

TOKEN_SUMS = ("input", "output", "cache_read", "cache_write")
SUMS = ("turns", "ms", "tools", "failed", "sessions", *TOKEN_SUMS)
MAX_PROJECTS = 60
OTHER_PROJECTS = "…"
LONGEST_TURN_MS = 12 * 3_600_000
"""A turn that was left open overnight is not a night's work."""


def local_day(at: int) -> str:
    """In the time zone of this machine: said by the job that sees the turn, so that replay needs no time zone."""
    try:
        return datetime.fromtimestamp(at / 1000).astimezone().date().isoformat()
    except (ValueError, OverflowError, OSError):
        return "1970-01-01"


def growth_of(turn: Turn, before: Turn | None) -> dict[str, int]:
    """What a turn adds to its day: the whole of it the first time, later only what grew."""
    earlier = before or Turn(n=turn.n)
    return {
        "tools": max(0, turn.tools - earlier.tools),
        "failed": max(0, turn.failed - earlier.failed),
        "ms": max(0, _turn_duration_ms(turn) - _turn_duration_ms(earlier)),
        "turns": int(before is None),
        "sessions": int(before is None and turn.n == 1),
    }


def _turn_duration_ms(turn: Turn) -> int:
    return min(max(0, turn.end - turn.at), LONGEST_TURN_MS)


def activity_keys(event: Event) -> Iterable[Ref]:
    day = _day_of_event(event)
    return (DAY.ref(day), YEAR.ref(day[:4]))


def _day_of_event(event: Event) -> str:
    data: TurnProcessed | ModelAnswered = event.data
    if data.day:
        return data.day
    at = (data.facts.at if isinstance(data, TurnProcessed) else 0) or event.at
    return datetime.fromtimestamp(max(0, min(at, 1 << 45)) / 1000, UTC).date().isoformat()


def _added_sums(event: Event) -> Mapping[str, int]:
    data: TurnProcessed | ModelAnswered = event.data
    if isinstance(data, ModelAnswered):
        return _token_sums(data)
    return data.more or growth_of(_turn_from_facts(data.n, data.facts), None)


def _token_sums(data: ModelAnswered) -> dict[str, int]:
    """Both tiers of cache writes as one; reasoning is part of the output."""
    tokens: dict[str, int] = {}
    for kind, n in data.tokens.items():
        name = "cache_write" if kind.startswith("cache_write") else kind
        tokens[name] = tokens.get(name, 0) + n
    return tokens


def _turn_from_facts(n: int, facts: TurnFacts) -> Turn:
    return Turn(n=n, at=facts.at, end=facts.end, tools=facts.tools, failed=facts.failed)


def reduce_day(doc: DayActivity | None, event: Event, ref: Ref) -> DayActivity:
    by = doc.by if doc else {}
    project = event.project if event.project in by or len(by) < MAX_PROJECTS else OTHER_PROJECTS
    agent = event.agent or event.get("agent", "")
    agents = by.get(project, {})
    sums = add_sums(agents.get(agent, {}), _added_sums(event))
    return DayActivity(day=ref.key, at=event.at, by={**by, project: {**agents, agent: sums}})


def reduce_year(doc: YearActivity | None, event: Event, ref: Ref) -> YearActivity:
    days = doc.days if doc else {}
    day = _day_of_event(event)[5:]
    return YearActivity(year=ref.key, at=event.at, days={**days, day: add_sums(days.get(day, {}), _added_sums(event))})


def add_sums(sums: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Names that count nothing are left out: most days have few."""
    return {name: n for name in SUMS if (n := sums.get(name, 0) + more.get(name, 0))}
