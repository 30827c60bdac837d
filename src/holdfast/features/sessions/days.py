"""What was done per day, project and agent: summed when a turn is gone through, never while a hook waits."""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ports import Doc, Reader, Ref

DAY, YEAR = "day", "year"
SUMS = ("turns", "ms", "tools", "failed", "sessions", "input", "output", "cache_read", "cache_write")
MOST_PROJECTS = 60
OTHERS = "…"
LONGEST_TURN_MS = 12 * 3_600_000
"""A turn that was left open overnight is not a night's work."""
DETAILED_DAYS = 30


def local_day(at: int) -> str:
    """In the time zone of this machine: said by the job that sees the turn, so that replay needs no time zone."""
    try:
        return datetime.fromtimestamp(at / 1000).astimezone().date().isoformat()
    except (ValueError, OverflowError, OSError):
        return "1970-01-01"


def more_of(turn: Doc, before: Doc | None) -> dict[str, int]:
    """What a turn adds to its day: the whole of it the first time, later only what grew."""
    told = before if before and "first" in before else None
    grown = {name: max(0, turn[name] - (told or {}).get(name, 0)) for name in ("tools", "failed")}
    lasted = _lasted(turn) - (_lasted(told) if told else 0)
    return {**grown, "ms": max(0, lasted), "turns": int(not told), "sessions": int(not told and turn["n"] == 1)}


def _lasted(turn: Mapping[str, Any]) -> int:
    return min(max(0, turn.get("end", 0) - turn.get("at", 0)), LONGEST_TURN_MS)


def keys(event: Event) -> Iterable[Ref]:
    day = _day(event)
    return (Ref(DAY, day), Ref(YEAR, day[:4]))


def _day(event: Event) -> str:
    said = event.get("day")
    if said:
        return str(said)
    at = event.get("facts", {}).get("at") or event.at
    return datetime.fromtimestamp(max(0, min(at, 1 << 45)) / 1000, UTC).date().isoformat()


def _added(event: Event) -> Mapping[str, int]:
    if event.kind == "tokens.read":
        return event.get("total", {})
    facts = event.get("facts", {})
    return event.get("more") or more_of({"n": event.get("n", 0), "tools": 0, "failed": 0, **facts}, None)


def reduce_day(doc: Doc | None, event: Event, ref: Ref) -> Doc:
    by: dict[str, dict[str, dict[str, int]]] = doc["by"] if doc else {}
    project = event.project if event.project in by or len(by) < MOST_PROJECTS else OTHERS
    agent = str(event.get("agent") or event.agent)
    agents = by.get(project, {})
    sums = summed(agents.get(agent, {}), _added(event))
    return {"day": ref.key, "at": event.at, "by": {**by, project: {**agents, agent: sums}}}


def reduce_year(doc: Doc | None, event: Event, ref: Ref) -> Doc:
    days = doc["days"] if doc else {}
    day = _day(event)[5:]
    return {"year": ref.key, "at": event.at, "days": {**days, day: summed(days.get(day, {}), _added(event))}}


def summed(sums: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Names that count nothing are left out: most days have few."""
    return {name: n for name in SUMS if (n := sums.get(name, 0) + more.get(name, 0))}


# ── the read side ─────────────────────────────────────────────────────────────────────────────────────────────────────


def activity(call: Call) -> dict[str, Any]:
    """A sum per day for so many days, and for the last ones who did it where."""
    today = date.fromisoformat(local_day(call.now))
    days = [today - timedelta(n) for n in range(max(1, min(int(call.args.get("days") or 371), 730)))][::-1]
    years = {year: (call.reader.state(Ref(YEAR, str(year))) or {}).get("days", {}) for year in {d.year for d in days}}
    sums = [{"day": d.isoformat(), **full(years[d.year].get(d.isoformat()[5:], {}))} for d in days]
    detailed = max(1, min(int(call.args.get("detailed") or DETAILED_DAYS), len(days)))
    return {
        "days": sums,
        "today": sums[-1],
        "detailed": detailed,
        "rows": _rows(call.reader, days[-detailed:]),
        "now": call.now,
    }


def _rows(reader: Reader, days: list[date]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, int]] = {}
    for day in days:
        doc = reader.state(Ref(DAY, day.isoformat())) or {"by": {}}
        for project, agents in doc["by"].items():
            for agent, sums in agents.items():
                found[project, agent] = summed(found.get((project, agent), {}), sums)
    rows = [{"project": project, "agent": agent, **full(sums)} for (project, agent), sums in found.items()]
    return sorted(rows, key=lambda row: (-row["ms"], row["project"], row["agent"]))


def full(sums: Mapping[str, int]) -> dict[str, int]:
    every = {name: sums.get(name, 0) for name in SUMS}
    return {**every, "tokens": sum(every[name] for name in ("input", "output", "cache_read", "cache_write"))}
