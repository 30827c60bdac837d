"""What was done per day, from events: turns that are still open, and imported ones, too."""

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from holdfast.core.feature import Call
from holdfast.core.ports import Reader
from holdfast.features.sessions.state.documents import DAY, TURN, YEAR, YearActivity, turn_key
from holdfast.features.sessions.state.reducer import SUMS as DAY_SUMS
from holdfast.features.sessions.state.reducer import TOKEN_SUMS, add_sums, growth_of, live_sessions, local_day

MAX_LIVE = 200
DETAILED_DAYS = 30


def daily_activity(call: Call) -> dict[str, Any]:
    """A sum per day for so many days, and for the last ones who did it where."""
    today = date.fromisoformat(local_day(call.now))
    days = [today - timedelta(n) for n in range(max(1, min(int(call.args.get("days") or 371), 730)))][::-1]
    years = {year: YEAR.load(call.reader, str(year)) for year in {day.year for day in days}}
    under_way = list(work_under_way(call.reader))
    sums = [{"day": day.isoformat(), **_full_sums(_sums_of(years[day.year], day, under_way))} for day in days]
    detailed = max(1, min(int(call.args.get("detailed") or DETAILED_DAYS), len(days)))
    return {
        "days": sums,
        "today": sums[-1],
        "detailed": detailed,
        "rows": _by_project_and_agent(call.reader, days[-detailed:], under_way),
        "now": call.now,
    }


class UnderWay(NamedTuple):
    """What a turn adds to its day that no event summed up yet."""

    day: str
    project: str
    agent: str
    sums: dict[str, int]


def work_under_way(reader: Reader) -> Iterator[UnderWay]:
    """Of turns that are open, or closed a moment ago."""
    for session in islice(live_sessions(reader), MAX_LIVE):
        for turn in (session.previous, session.turn):
            if turn and (turn.is_open or turn.is_unprocessed):
                stored = TURN.load(reader, turn_key(session.id, turn.n))
                until = msgspec.structs.replace(turn, end=turn.end or session.at)
                sums = growth_of(until, stored.as_turn() if stored else None)
                yield UnderWay(local_day(turn.at), session.project, session.agent, sums)


def _sums_of(year: YearActivity | None, day: date, under_way: list[UnderWay]) -> dict[str, int]:
    sums = dict(year.days.get(day.isoformat()[5:], {})) if year else {}
    for one in under_way:
        sums = add_sums(sums, one.sums) if one.day == day.isoformat() else sums
    return sums


def _by_project_and_agent(reader: Reader, days: list[date], under_way: list[UnderWay]) -> list[dict[str, Any]]:
    shown = {day.isoformat() for day in days}
    parts = [(one.project, one.agent, one.sums) for one in under_way if one.day in shown]
    for day in days:
        doc = DAY.load(reader, day.isoformat())
        for project, agents in doc.by.items() if doc else ():
            parts += [(project, agent, sums) for agent, sums in agents.items()]
    totals: dict[tuple[str, str], dict[str, int]] = {}
    for project, agent, sums in parts:
        totals[project, agent] = add_sums(totals.get((project, agent), {}), sums)
    rows = [{"project": project, "agent": agent, **_full_sums(sums)} for (project, agent), sums in totals.items()]
    return sorted(rows, key=lambda row: (-row["ms"], row["project"], row["agent"]))


def _full_sums(sums: dict[str, int]) -> dict[str, Any]:
    """`tokens` is None where none were reported, which does not mean that none were used."""
    every = {name: sums.get(name, 0) for name in DAY_SUMS}
    # 0 is a figure, absent is unknown.
    token_sums = [sums[name] for name in TOKEN_SUMS if name in sums]
    return {**every, "tokens": sum(token_sums) if token_sums else None}
