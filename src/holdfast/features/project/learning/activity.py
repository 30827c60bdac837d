"""What is going on in a project right now: who edits what, what each turn changed and ran, what was spent. Small.

This is the only document of the feature that ordinary tool calls touch, so it holds little and is written to no file.
"""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.core.kinds import SESSION_ENDS, TOOL_ENDS, HookPayload, ToolPayload
from holdfast.core.kinds.agent_events import ModelAnswered
from holdfast.core.kinds.check_events import GitActed
from holdfast.core.kinds.project_events import ActivityFacts, TokenFacts
from holdfast.features.project.document.text import DAY, HOUR, format_time
from holdfast.features.project.learning.command_names import habit_names
from holdfast.features.project.settings import Tokens
from holdfast.features.project.state import Activity, CommitWork, Edit, OpenSession, TurnWork

MAX_EDITS, MAX_SESSIONS = 60, 30
MAX_AREAS, MAX_COMMANDS = 10, 15
MAX_DAYS, MAX_ENDED, MAX_COMMITS = 62, 50, 20
PAUSE = 2 * HOUR
"""After so long without an edit the next one begins another activity."""

SESSION_KINDS = frozenset(("session.started", "prompt.submitted", "turn.ended"))
SUBSCRIBED_KINDS = SESSION_KINDS | SESSION_ENDS | TOOL_ENDS | {GitActed.KIND, ModelAnswered.KIND}
COUNTED_TOKENS = ("input", "output", "cache_write_5m", "cache_write_1h")
"""What is read from the cache again and again is not counted: it would drown the rest."""


def concerns_activity(event: Event) -> bool:
    if event.kind in TOOL_ENDS:
        return event.data.action in ("edit", "shell")
    return event.kind in SUBSCRIBED_KINDS


def reduce_activity(doc: Activity | None, event: Event) -> Activity:
    doc = doc or Activity(project=event.project)
    doc = replace(doc, at=max(doc.at, event.at))
    if event.kind in SESSION_ENDS:
        return _end_session(doc, event)
    if event.kind == ModelAnswered.KIND:
        return _count_tokens(doc, event)
    if event.kind == GitActed.KIND:
        return _commit(doc, event)
    if event.kind in TOOL_ENDS:
        return _edit(doc, event) if event.data.action == "edit" else _run_command(doc, event)
    session = _session(doc, event)
    turn = session.turn
    if event.kind == "turn.ended":
        turn, doc = _end_turn(turn, event), replace(doc, commits=_end_commits(doc, event))
    return _with_session(doc, event, replace(session, turn=turn))


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _session(doc: Activity, event: Event) -> OpenSession:
    return doc.sessions.get(event.session) or OpenSession(began=event.at)


def _with_session(doc: Activity, event: Event, session: OpenSession) -> Activity:
    if not event.session:
        return doc
    data = event.data
    if isinstance(data, HookPayload):
        if data.pid:
            session = replace(session, pid=data.pid, start=data.pid_start)
        session = replace(session, project_name=data.project_name[:80] or session.project_name)
    sessions = {**doc.sessions, event.session: replace(session, at=event.at)}
    if len(sessions) > MAX_SESSIONS:
        del sessions[min(sessions, key=lambda name: sessions[name].at)]
    return replace(doc, sessions=sessions)


def _end_session(doc: Activity, event: Event) -> Activity:
    gone = doc.sessions.get(event.session)
    if gone is None:
        return doc
    sessions = {name: one for name, one in doc.sessions.items() if name != event.session}
    ended = [*doc.ended, gone.tokens][-MAX_ENDED:] if gone.tokens else doc.ended
    edits = [replace(edit, session="") if edit.session == event.session else edit for edit in doc.edits]
    return replace(doc, sessions=sessions, ended=ended, edits=edits)


def _count_tokens(doc: Activity, event: Event) -> Activity:
    data: ModelAnswered = event.data
    spent = sum(n for kind, n in data.tokens.items() if kind in COUNTED_TOKENS)
    if spent <= 0:
        return doc
    day = format_time(event.at)[:10]
    days = sorted({**doc.tokens_by_day, day: doc.tokens_by_day.get(day, 0) + spent}.items())[-MAX_DAYS:]
    doc = replace(doc, tokens_by_day=dict(days))
    if event.session in doc.sessions:
        session = _session(doc, event)
        return _with_session(doc, event, replace(session, tokens=session.tokens + spent))
    # Read after its session ended: it belongs to the last one.
    ended = [*doc.ended[:-1], doc.ended[-1] + spent] if doc.ended else [spent]
    return replace(doc, ended=ended)


# ── what a turn changes and runs ─────────────────────────────────────────────────────────────────────────────────────


def _edit(doc: Activity, event: Event) -> Activity:
    data: ToolPayload = event.data
    session = _session(doc, event)
    if event.kind == "tool.failed" or not data.paths:
        return _with_session(doc, event, session)
    kept = [edit for edit in doc.edits if edit.path not in data.paths]
    edits = [*kept, *(Edit(path, event.session, event.at) for path in data.paths)][-MAX_EDITS:]
    resumed = event.at - doc.last_edit > PAUSE
    began = event.at if resumed else doc.work_began or event.at
    turn = _open_turn(session)
    areas = list(dict.fromkeys([*turn.areas, *(_folder_of(path, event.project) for path in data.paths)]))[:MAX_AREAS]
    doc = replace(
        doc, edits=edits, last_edit=event.at, work_began=began, first_edit=doc.first_edit or event.at
    )  # fmt: skip
    # What ran before an edit does not follow from it.
    return _with_session(doc, event, replace(session, turn=TurnWork(areas=areas)))


def _run_command(doc: Activity, event: Event) -> Activity:
    session = _session(doc, event)
    names = habit_names(event.data.command) if event.kind == "tool.finished" else ()
    if not names:
        return _with_session(doc, event, session)
    turn = _open_turn(session)
    ran = list(dict.fromkeys([*turn.commands, *names]))[-MAX_COMMANDS:]
    since = list(dict.fromkeys([*doc.since_commit, *names]))[-MAX_COMMANDS:]
    return _with_session(replace(doc, since_commit=since), event, replace(session, turn=replace(turn, commands=ran)))


def _commit(doc: Activity, event: Event) -> Activity:
    """One made outside of the sessions says nothing about what is run in them before a commit."""
    act: GitActed = event.data
    if act.verb != "commit" or act.outside:
        return doc
    work = CommitWork(at=event.at, commands=list(doc.since_commit), first_edit=doc.first_edit)
    commits = [*doc.commits, work][-MAX_COMMITS:]
    return _with_session(replace(doc, commits=commits, since_commit=[], first_edit=0), event, _session(doc, event))


def _open_turn(session: OpenSession) -> TurnWork:
    """The turn going on; one that is over is begun anew by the first thing after it."""
    return TurnWork() if session.turn.over else session.turn


def _end_turn(turn: TurnWork, event: Event) -> TurnWork:
    """An agent may end a turn twice (a refused stop): it is summed up once."""
    return replace(turn, over=event.seq) if not turn.over else turn


def _end_commits(doc: Activity, event: Event) -> list[CommitWork]:
    """Those of this turn are summed up with it; what was summed up before is dropped."""
    return [replace(commit, over=event.seq) for commit in doc.commits if not commit.over]


def _folder_of(path: str, project: str) -> str:
    """The folder a file is in, coarse enough that habits show: the first two levels."""
    inside = path.removeprefix(f"{project.rstrip('/')}/")
    folders = inside.split("/")[:-1][:2] if not inside.startswith("/") else ["elsewhere"]
    return "/".join(folders)[:100] + "/" if folders else "./"


# ── what others want to know of it ───────────────────────────────────────────────────────────────────────────────────


def summarise_activity(doc: Activity | None, now: int) -> ActivityFacts:
    """For the project's document: only what changes rarely, so that looking again is not news."""
    if not doc:
        return ActivityFacts()
    live = [one for one in doc.sessions.values() if now - one.at < DAY]
    last_edit = doc.last_edit // 60_000 * 60_000
    return ActivityFacts(
        began=doc.work_began, last_edit=last_edit, sessions=len(live), folders=_busiest_folders(doc, now)
    )  # fmt: skip


def _busiest_folders(doc: Activity, now: int) -> list[str]:
    counts: dict[str, int] = {}
    for edit in doc.edits:
        if now - edit.at < PAUSE:
            folder = _folder_of(edit.path, doc.project)
            counts[folder] = counts.get(folder, 0) + 1
    return sorted(counts, key=lambda folder: (-counts[folder], folder))[:3]


def recent_paths(doc: Activity | None, now: int, within: int) -> list[str]:
    return [edit.path for edit in doc.edits if now - edit.at <= within] if doc else []


def other_editor(doc: Activity | None, path: str, session: str, now: int, within: int) -> tuple[int, int] | None:
    """(pid, when) of another session that is still open and edited this file lately."""
    for edit in reversed(doc.edits) if doc else ():
        if edit.path == path and edit.session and edit.session != session and now - edit.at <= within:
            editor = doc.sessions.get(edit.session) if doc else None
            if editor:
                return editor.pid, edit.at
    return None


def token_budget(doc: Activity | None, settings: Tokens, now: int) -> TokenFacts:
    """What this project's sessions used in the present period, and what one of them usually costs."""
    if not doc:
        return TokenFacts(limit=settings.limit)
    first = _first_day(settings.period, now)
    used = sum(spent for day, spent in doc.tokens_by_day.items() if day >= first)
    typical = round(sum(doc.ended) / len(doc.ended), 1) if doc.ended else 0.0
    return TokenFacts(used=used, limit=settings.limit, per_session=typical)


def _first_day(period: str, now: int) -> str:
    today = datetime.fromtimestamp(now / 1000, UTC).date()
    if period == "week":
        return (today - timedelta(days=today.weekday())).isoformat()
    return today.replace(day=1).isoformat() if period == "month" else today.isoformat()
