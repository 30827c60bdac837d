"""All sessions as a table: filtered, sorted and paged; and how many there are of each agent."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from holdfast.core.feature import Call
from holdfast.core.ports import Reader
from holdfast.features.sessions.state.documents import SESSION, Session
from holdfast.features.sessions.views import row_of
from holdfast.features.sessions.views.figures import figures_of, shown_state

# Sessions on a page; read from the store at a time; looked at in all.
PAGE, LARGEST_PAGE = 100, 500
READ_AT_ONCE = 500
MOST_READ = 20_000
CHOICES = ("project", "agent", "branch", "model")
STATES = ("waiting", "working", "idle", "ended")

SORTS: dict[str, Callable[[Session], Any]] = {
    "last": lambda session: session.at,
    "started": lambda session: session.started_at,
    "project": lambda session: session.project.lower(),
    "agent": lambda session: session.agent,
    "title": lambda session: session.title.lower(),
    "events": lambda session: session.events,
    "tools": lambda session: session.tools,
    "turns": lambda session: session.turn.n if session.turn else 0,
    "duration": lambda session: session.at - session.started_at,
    "failed": lambda session: session.failed,
}
"""Columns of the document. Tokens and money are read for each session."""


class Filters(msgspec.Struct, kw_only=True, frozen=True):
    """Empty means all. Text is looked for in title, id, branch and the latest prompt."""

    project: str = ""
    agent: str = ""
    state: str = ""
    branch: str = ""
    model: str = ""
    text: str = ""
    since: int = 0
    until: int = 0
    min_tokens: int = 0
    min_cost: int = 0
    costs: dict[str, int] = {}
    """Micro-dollars by session, from the caller: this feature does not know them."""
    sort: str = "last"
    reverse: bool = False
    offset: int = 0
    limit: int = PAGE


def table(call: Call) -> dict[str, Any]:
    """One page of the sessions that fit, how many fit, and what there is to choose from."""
    filters = msgspec.convert(call.args, Filters, strict=False)
    everything = list(_all_sessions(call.reader))
    fitting = [session for session in everything if _matches_filters(session, filters, call)]
    ordered = _sort_sessions(fitting, filters, call)
    limit = max(1, min(filters.limit, LARGEST_PAGE))
    page = ordered[max(0, filters.offset) : max(0, filters.offset) + limit]
    return {
        "sessions": [{**row_of(session, call), "model": session.model, "events": session.events} for session in page],
        "total": len(ordered), "all": len(everything), "offset": filters.offset, "limit": limit, "now": call.now,
        "choices": _filter_choices(everything),
    }  # fmt: skip


def agents(call: Call) -> dict[str, Any]:
    """Of each agent: how many sessions are on record, and when the last one did something."""
    by_agent: dict[str, dict[str, int]] = {}
    for session in _all_sessions(call.reader):
        one = by_agent.setdefault(session.agent, {"sessions": 0, "last": 0})
        one["sessions"] += 1
        one["last"] = max(one["last"], session.at)
    return by_agent


def _all_sessions(reader: Reader) -> Iterator[Session]:
    before: tuple[int, str] | None = None
    for _ in range(MOST_READ // READ_AT_ONCE):
        page = SESSION.list(reader, limit=READ_AT_ONCE, before=before)
        yield from (session for _, session in page)
        if len(page) < READ_AT_ONCE:
            return
        last = page[-1][1]
        before = (last.at, last.id)


def _matches_filters(session: Session, filters: Filters, call: Call) -> bool:
    wanted = {name: getattr(filters, name) for name in CHOICES}
    if any(value and getattr(session, name) != value for name, value in wanted.items()):
        return False
    if session.at < filters.since or (filters.until and session.started_at > filters.until):
        return False
    # The cheap comparisons come first, those that read more documents last.
    return _has_text(session, filters.text.lower()) and _fits_figures(session, filters, call)


def _fits_figures(session: Session, filters: Filters, call: Call) -> bool:
    if filters.state and shown_state(session, call.now, call.settings) != filters.state:
        return False
    if filters.min_cost and filters.costs.get(session.id, 0) < filters.min_cost:
        return False
    return not filters.min_tokens or _session_tokens(session, call) >= filters.min_tokens


def _has_text(session: Session, text_filter: str) -> bool:
    if not text_filter:
        return True
    prompt = session.turn.prompt if session.turn else ""
    return any(
        text_filter in text.lower() for text in (session.title, session.id, session.branch, session.project, prompt)
    )


def _session_tokens(session: Session, call: Call) -> int:
    return figures_of(session, call.reader, call.now, call.settings).spent.total_tokens or 0


def _sort_sessions(sessions: list[Session], filters: Filters, call: Call) -> list[Session]:
    """The largest and the latest first; names from A to Z. `reverse` turns it round."""
    by_name = filters.sort in ("project", "agent", "title")
    return sorted(sessions, key=_sort_key(filters, call), reverse=by_name == filters.reverse)


def _sort_key(filters: Filters, call: Call) -> Callable[[Session], Any]:
    sort = filters.sort
    if sort == "cost":
        return lambda session: filters.costs.get(session.id, 0)
    if sort == "tokens":
        return lambda session: _session_tokens(session, call)
    return SORTS.get(sort, SORTS["last"])


def _filter_choices(sessions: list[Session]) -> dict[str, list[str]]:
    def named(field: str, most: int = 200) -> list[str]:
        counted: dict[str, int] = {}
        for session in sessions:
            if value := getattr(session, field):
                counted[value] = counted.get(value, 0) + 1
        return sorted(counted, key=lambda value: (-counted[value], value))[:most]

    return {name: named(name) for name in CHOICES} | {"state": list(STATES)}
