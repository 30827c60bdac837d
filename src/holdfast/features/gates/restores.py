"""What gates end after a restore: approvals, single uses and pauses that the lost events may have ended."""

from collections.abc import Callable, Iterable, Iterator

from holdfast.core.event import Event, own_event
from holdfast.core.kinds.gates_events import GatesCleared, GatesResumed
from holdfast.core.ports import Reader
from holdfast.features.gates.settings import GateSettings
from holdfast.features.gates.state import BRANCHES, PAUSES, SESSIONS, GateSession, every_document
from holdfast.features.gates.state.branches import BranchState, RequirementEntries

METHOD = "restore"


def after_restore(reader: Reader, settings: Callable[[str], GateSettings], restored: int, now: int) -> Iterator[Event]:
    for branch in every_document(reader, BRANCHES):
        yield from _cleared(branch, restored, now)
    for session in every_document(reader, SESSIONS):
        if session.status == "live" and session.started <= restored:
            yield from _used_up(session, settings(session.project), restored, now)
    for pause in every_document(reader, PAUSES):
        if pause.at <= restored and pause.holds(now):
            yield own_event(GatesResumed(where=pause.where), now)


def _cleared(branch: BranchState, restored: int, now: int) -> Iterable[Event]:
    names = [name for name, entries in branch.requirements.items() if _is_older(entries, restored)]
    if names:
        cleared = GatesCleared(requirements=names, everyone=True, branch=branch.branch, repo=branch.repo, method=METHOD)
        yield own_event(cleared, now, project=branch.project if branch.repo else branch.place)


def _is_older(entries: RequirementEntries, restored: int) -> bool:
    found = [*entries.sessions.values(), *(used.entry for used in entries.used.values())]
    found += [entries.everyone] if entries.everyone else []
    return any(entry.at <= restored for entry in found)


def _used_up(session: GateSession, settings: GateSettings, restored: int, now: int) -> Iterable[Event]:
    """A fact from before the restore may have been used for an action that is lost."""
    single = [rule.name for rule in settings.rules if rule.scope == "single_use"]
    if single and session.at <= restored:
        cleared = GatesCleared(requirements=single, branch=session.branch, repo=session.place, method="used")
        yield own_event(cleared, now, session=session.session, project=session.project)
