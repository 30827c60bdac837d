"""Sums token use and commits as they arrive, so that no view reads the log."""

from collections.abc import Iterable, Mapping

import msgspec

from holdfast.analysis.usage.events import usage_record
from holdfast.analysis.usage.spending import LATEST, SESSION_DAY, SessionDay, add_cell, cell_of, next_commit
from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import CompactEnded
from holdfast.core.kinds.check_events import GitActed
from holdfast.core.ports import Ref
from holdfast.core.times import DAY

MOST_COMMITS = 500


def keys(event: Event) -> Iterable[Ref]:
    if isinstance(event.data, CompactEnded) and not event.session:
        return []
    if isinstance(event.data, GitActed) and (not event.session or not _commits_of(event.data)):
        return []
    return [SESSION_DAY.ref(f"{event.session}/{_bounded_time(event) // DAY}")]


def stream(ref: Ref) -> Mapping[str, str]:
    session = ref.key.rpartition("/")[0]
    return {"session": session} if session else {}


def reduce(doc: SessionDay | None, event: Event, _ref: Ref) -> SessionDay | None:
    at, before = _bounded_time(event), doc or SessionDay(event.session)
    after = _ADDERS.get(event.kind, _add_usage)(before, event, at)
    if after is before:
        return doc
    return msgspec.structs.replace(after, project=event.project or before.project, at=max(before.at, at))


def _add_usage(doc: SessionDay, event: Event, at: int) -> SessionDay:
    record = usage_record(event)
    if record is None or record.spent.is_empty:
        return doc
    # If the commit is known already; else `cost.views` finds it on request.
    cell = cell_of(record, at, next_commit(doc.commits, at))
    return msgspec.structs.replace(doc, cells=add_cell(doc.cells, cell))


def _add_compaction(doc: SessionDay, event: Event, _at: int) -> SessionDay:
    count = doc.compactions.get(event.agent, 0) + 1
    return msgspec.structs.replace(doc, compactions={**doc.compactions, event.agent: count})


def _add_commits(doc: SessionDay, event: Event, at: int) -> SessionDay:
    act: GitActed = event.data
    commits = sorted({*doc.commits, *((at, commit) for commit in _commits_of(act))})
    return msgspec.structs.replace(doc, commits=commits[-MOST_COMMITS:])


_ADDERS = {GitActed.KIND: _add_commits, CompactEnded.KIND: _add_compaction}


def _commits_of(act: GitActed) -> list[str]:
    """The last of several commits made at once represents them; commits made outside the session don't count."""
    # Without a list of commits the new head represents it.
    made = act.commits[-1:] or [act.after.head]
    return [commit for commit in made if commit] if act.verb == "commit" and not act.outside else []


def _bounded_time(event: Event) -> int:
    return event.at if 0 <= event.at <= LATEST else 0
