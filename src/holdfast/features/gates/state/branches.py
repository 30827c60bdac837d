"""Who is satisfied on a branch, and which sessions are alive."""

import msgspec

from holdfast.core.document import map_values, with_newest, without_keys
from holdfast.core.event import Event
from holdfast.core.kinds import HookPayload, JsonObject
from holdfast.core.kinds.gates_events import GatesApproved, GatesCleared, SatisfiedPayload, SatisfiedRequirement
from holdfast.features.gates.events import SESSION_OVER, branch_of, repo_of, repo_or_project

# What the documents of the gates have in common.


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field at its default is not stored."""


replace = msgspec.structs.replace


SHARED = frozenset({"branch", "permanent"})
# Bounds of one document; the oldest entries go first.
MOST_REQUIREMENTS, MOST_SESSIONS, MOST_LIVE = 100, 1_000, 200
MOST_OVER, MOST_USED = 50, 20


class Entry(Document, frozen=True):
    """One requirement satisfied, by whom and until when."""

    at: int
    by: str = ""
    seq: int = 0
    until: int = 0
    """In ms; 0: as its scope says."""
    approved: bool = False
    metadata: JsonObject = {}
    ended: int = 0
    """When its session ended: what `carry_over` counts from."""

    def counts(self, now: int) -> bool:
        return not self.until or now < self.until


class UsedEntry(Document, frozen=True):
    """What a call used up before its end was known; given back if the call failed."""

    entry: Entry
    of: int
    """The event of the call."""


class RequirementEntries(Document, frozen=True):
    scope: str = "session"
    sessions: dict[str, Entry] = {}
    everyone: Entry | None = None
    used: dict[str, UsedEntry] = {}
    """By session: the last one."""


NO_ENTRIES = RequirementEntries()


class BranchState(Document, frozen=True):
    place: str
    repo: str = ""
    branch: str = ""
    project: str = ""
    created: int = 0
    at: int = 0
    status: str = ""
    requirements: dict[str, RequirementEntries] = {}

    def own_entry(self, name: str, session: str, now: int) -> Entry | None:
        entry = self.requirements.get(name, NO_ENTRIES).sessions.get(session)
        return entry if entry and entry.counts(now) else None

    def entry_for(self, name: str, session: str, now: int) -> Entry | None:
        """What counts for this session: its own entry, or the branch's. Expired ones do not (S2-15)."""
        shared = self.requirements.get(name, NO_ENTRIES).everyone
        return self.own_entry(name, session, now) or (shared if shared and shared.counts(now) else None)

    def recent_of_others(self, name: str, session: str, since: int) -> tuple[str, Entry] | None:
        """The newest entry of another session that was satisfied, or ended, since then (`carry_over`)."""
        candidates = [
            (max(entry.at, entry.ended), sid, entry)
            for sid, entry in self.requirements.get(name, NO_ENTRIES).sessions.items()
            # What was carried over, or approved for one session, is not handed on a second time.
            if sid != session and not entry.approved and entry.by != "carry_over"
        ]
        at, sid, newest = max(candidates, default=(0, "", None), key=lambda one: one[:2])
        return (sid, newest) if newest and at >= since else None


def reduce_branch(doc: BranchState | None, event: Event) -> BranchState | None:
    doc = doc or BranchState(
        place=repo_or_project(event),
        repo=repo_of(event),
        branch=branch_of(event),
        project=event.project,
        created=event.at,
    )
    data = event.data
    if isinstance(data, GatesCleared):
        return _clear_entries(doc, data, event)
    if event.kind == "gates.pruned":
        return replace(doc, requirements={}, status="pruned", at=event.at)
    if event.kind in SESSION_OVER:
        return _mark_ended(doc, event)
    if not isinstance(data, SatisfiedPayload):
        return None
    requirements = doc.requirements
    for one in data.requirements:
        requirements = _with_requirement(requirements, one, data, event)
    return replace(doc, requirements=requirements, status="", at=event.at, project=event.project)


def _with_requirement(
    requirements: dict[str, RequirementEntries], one: SatisfiedRequirement, data: SatisfiedPayload, event: Event
) -> dict[str, RequirementEntries]:
    entries = requirements.get(one.name, NO_ENTRIES)
    approved = isinstance(data, GatesApproved)
    entry = Entry(
        at=event.at, seq=event.seq, by=data.method, until=one.until, approved=approved, metadata=data.metadata
    )
    # Without a session it can only be meant for all.
    if one.scope in SHARED or data.everyone or not event.session:
        entries = replace(entries, scope=one.scope, everyone=entry)
    else:
        sessions = with_newest(entries.sessions, event.session, entry, MOST_SESSIONS)
        entries = replace(entries, scope=one.scope, sessions=sessions)
    return with_newest(requirements, one.name, entries, MOST_REQUIREMENTS)


def _clear_entries(doc: BranchState, data: GatesCleared, event: Event) -> BranchState:
    """Only the session's own entry (D7), unless everybody's is asked for."""

    def cut(entries: RequirementEntries) -> RequirementEntries:
        if data.everyone:
            return RequirementEntries(scope=entries.scope)
        mine = entries.sessions.get(event.session)
        # Kept until it is known that the call succeeded, because `_give_back` may need it.
        spent = mine is not None and data.method == "used"
        used = {**entries.used, event.session: UsedEntry(entry=mine, of=data.of)} if mine and spent else entries.used
        return replace(entries, sessions=without_keys(entries.sessions, [event.session]), used=_newest_used(used))

    named = set(data.requirements)
    requirements = {name: cut(entries) if name in named else entries for name, entries in doc.requirements.items()}
    return replace(doc, requirements=requirements, at=event.at)


def _newest_used(used: dict[str, UsedEntry]) -> dict[str, UsedEntry]:
    return dict(list(used.items())[-MOST_USED:])


def _mark_ended(doc: BranchState, event: Event) -> BranchState | None:
    # None means that the document stays as it is, and nothing is written.
    if not any(event.session in entries.sessions for entries in doc.requirements.values()):
        return None

    def mark(entries: RequirementEntries) -> RequirementEntries:
        mine = entries.sessions.get(event.session)
        if mine is None:
            return entries
        return replace(entries, sessions={**entries.sessions, event.session: replace(mine, ended=event.at)})

    return replace(doc, requirements=map_values(doc.requirements, mark))


# ── who is alive ─────────────────────────────────────────────────────────────────────────────────────────────────────


class LiveSession(Document, frozen=True):
    started: int = 0
    active: int = 0
    agent: str = ""
    project: str = ""
    place: str = ""
    branch: str = ""
    pid: int = 0
    pid_start: int = 0


class LiveSessions(Document, frozen=True):
    sessions: dict[str, LiveSession] = {}
    at: int = 0
    over: dict[str, int] = {}
    """Sessions that ended recently, and when: their last changes are not a person's."""

    def others(self, session: str, project: str) -> list[str]:
        """Other live sessions in this very checkout."""
        return [sid for sid, one in self.sessions.items() if sid != session and one.project == project]


def reduce_registry(doc: LiveSessions | None, event: Event) -> LiveSessions | None:
    data, doc = event.data, doc or LiveSessions()
    if isinstance(data, HookPayload) and data.claimed:
        return None
    known = doc.sessions.get(event.session)
    if event.kind in SESSION_OVER:
        # Never seen alive, or ended already.
        if known is None:
            return None
        over = with_newest(doc.over, event.session, event.at, MOST_OVER)
        return LiveSessions(sessions=without_keys(doc.sessions, [event.session]), at=event.at, over=over)
    entry = _live_entry(known or LiveSession(started=event.at), event)
    # An entry that is replaced keeps its place; only a new one pushes the oldest out.
    sessions = {**doc.sessions, event.session: entry}
    if known is None and len(doc.sessions) >= MOST_LIVE:
        sessions = with_newest(doc.sessions, event.session, entry, MOST_LIVE)
    return LiveSessions(sessions=sessions, at=event.at, over=doc.over)


def _live_entry(entry: LiveSession, event: Event) -> LiveSession:
    entry = replace(
        entry, agent=event.agent, active=event.at, project=event.project, place=repo_or_project(event), branch=branch_of(event)
    )  # fmt: skip
    data = event.data
    return (
        replace(entry, pid=data.pid, pid_start=data.pid_start) if isinstance(data, HookPayload) and data.pid else entry
    )
