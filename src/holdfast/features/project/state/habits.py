"""The activity of a project, and habits learned from it: open sessions, edits, tokens."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from holdfast.analysis.shell.analysis import Ran, analyse_command
from holdfast.core.event import Event
from holdfast.core.kinds import SESSION_ENDS, TOOL_ENDS, HookPayload, ToolPayload
from holdfast.core.kinds.agent_events import ModelAnswered, PromptSubmitted
from holdfast.core.kinds.check_events import GitActed
from holdfast.core.kinds.project_events import ActivityFacts, CommitSeen, HabitFacts, TokenFacts, TurnSummed
from holdfast.core.text import sanitise_line
from holdfast.core.times import DAY, HOUR
from holdfast.features.project.document.text import format_time
from holdfast.features.project.settings import Tokens
from holdfast.features.project.state import Activity, CommitWork, Edit, Habit, Habits, HabitTable, OpenSession, TurnWork

# What a shell command is called when habits are counted: `cd x && FOO=1 uv run pytest -q tests` is `pytest`.

MAX_CHARACTERS = 4_000
# Words as in `npm run lint`: a name with other characters is an argument, or a path.
_NAME = re.compile(r"^[\w.:+-]+( [\w.:+-]+)*$")
_PLAIN_WORD = re.compile(r"^[a-z][a-z0-9:_-]{0,30}$")
# Options that take the next word as their value.
_VALUES = frozenset(("-C", "--prefix", "-f", "-c"))
_WITH_SUBCOMMAND = frozenset(
    "git npm pnpm yarn bun cargo go make just chezmoi docker kubectl terraform ruff mvn gradle gradlew mvnw dotnet mix "
    "rake rails composer gh helm holdfast tox nox pre-commit deno swift bazel zig task rush nx turbo invoke".split()
)
_WITH_TWO = frozenset(("npm run", "pnpm run", "yarn run", "bun run", "docker compose"))
_UNREMARKABLE = frozenset(
    "cd ls cat echo pwd grep rg find sed awk head tail wc sort true false test [ which type sleep export set source . "
    "mkdir touch cp mv rm ln chmod kill ps date printf tee xargs diff tree stat file du df less python python3 node "
    "bash sh zsh jq curl wget vim nano man git".split()
)
_HABITUAL_GIT = frozenset(("git push", "git pull", "git rebase", "git merge", "git tag"))


@lru_cache(2_000)
def habit_names(command: str) -> tuple[str, ...]:
    """Names of the commands that say something about how somebody works; looking around says nothing."""
    if len(command) > MAX_CHARACTERS:
        return ()
    # Judged as if it ended with 0: what counts is what was meant to run.
    analysis = analyse_command(command, 0)
    names = filter(None, (_name_of(one.words) for one in analysis.commands if one.ran is not Ran.NO))
    habitual = (name for name in names if name.partition(" ")[0] not in _UNREMARKABLE or name in _HABITUAL_GIT)
    return tuple(dict.fromkeys(habitual))


def _name_of(words: list[str]) -> str:
    """Program, and its verb where that matters: `npm run lint`, `chezmoi apply`, `pytest`."""
    name = words[0].rpartition("/")[2]
    # Two further words at most, from the first five that follow the program.
    for following in _without_options(words[1:6])[:2]:
        takes_more = name in _WITH_SUBCOMMAND or name in _WITH_TWO
        if not takes_more or not _PLAIN_WORD.match(following):
            break
        name = f"{name} {following}"
    return name[:80] if _NAME.match(name) else ""


def _without_options(words: list[str]) -> list[str]:
    """`git -C x commit`, `make -j4 test`: what comes before the subcommand."""
    remaining, skip = [], False
    for word in words:
        if not skip and not word.startswith("-"):
            remaining.append(word)
        skip = word in _VALUES
    return remaining


# What is going on in a project right now: who edits what, what each turn changed and ran, what was spent. Small.

MAX_EDITS, MAX_SESSIONS = 60, 30
MAX_AREAS, MAX_COMMANDS = 10, 15
MAX_DOING = 80
MAX_DAYS, MAX_ENDED, MAX_COMMITS = 62, 50, 20
PAUSE = 2 * HOUR
"""After so long without an edit the next one begins another activity."""


class OtherEditor(NamedTuple):
    session: str
    editor: OpenSession
    at: int


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
    # Imported events may be older than what is known already.
    doc = replace(doc, at=max(doc.at, event.at))
    return _OF_ACTIVITY.get(event.kind, _note_session)(doc, event)


def _note_session(doc: Activity, event: Event) -> Activity:
    return _with_session(doc, event, _open_session(doc, event))


def _end_turn(doc: Activity, event: Event) -> Activity:
    session = _open_session(doc, event)
    # An agent may end a turn twice (a refused stop): it is summed up once.
    turn = replace(session.turn, over=session.turn.over or event.seq)
    # Commits that were summed up before are dropped.
    commits = [replace(commit, over=event.seq) for commit in doc.commits if not commit.over]
    return _with_session(replace(doc, commits=commits), event, replace(session, turn=turn))


def _end_call(doc: Activity, event: Event) -> Activity:
    return _apply_edit(doc, event) if event.data.action == "edit" else _run_command(doc, event)


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _open_session(doc: Activity, event: Event) -> OpenSession:
    return doc.sessions.get(event.session) or OpenSession(began=event.at)


def _with_session(doc: Activity, event: Event, session: OpenSession) -> Activity:
    if not event.session:
        return doc
    session = replace(session, at=event.at)
    if isinstance(event.data, HookPayload):
        if event.data.pid:
            session = replace(session, pid=event.data.pid, start=event.data.pid_start)
        session = replace(session, project_name=event.data.project_name[:80] or session.project_name, agent=event.agent)
    if isinstance(event.data, PromptSubmitted) and not event.data.synthetic and not event.data.lane:
        session = replace(session, doing=sanitise_line(event.data.prompt[:400], MAX_DOING))
    sessions = {**doc.sessions, event.session: session}
    if len(sessions) > MAX_SESSIONS:
        # The session that was silent longest goes.
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


@lru_cache(64)
def _day_name(day: int) -> str:
    """Many calls of a model are of one day."""
    return format_time(day * DAY)[:10]


def _count_tokens(doc: Activity, event: Event) -> Activity:
    data: ModelAnswered = event.data
    spent = sum(n for kind, n in data.tokens.items() if kind in COUNTED_TOKENS)
    if spent <= 0:
        return doc
    doc = replace(doc, tokens_by_day=_add_to_day(doc.tokens_by_day, _day_name(event.at // DAY), spent))
    if event.session in doc.sessions:
        session = _open_session(doc, event)
        return _with_session(doc, event, replace(session, tokens=session.tokens + spent))
    # Read after its session ended: it belongs to the last one.
    ended = [*doc.ended[:-1], doc.ended[-1] + spent] if doc.ended else [spent]
    return replace(doc, ended=ended)


def _add_to_day(days: dict[str, int], day: str, spent: int) -> dict[str, int]:
    """In the order of the days. Most calls of a model are of a day that is there."""
    added = {**days, day: days.get(day, 0) + spent}
    return added if day in days else dict(sorted(added.items())[-MAX_DAYS:])


# ── what a turn changes and runs ─────────────────────────────────────────────────────────────────────────────────────


def _apply_edit(doc: Activity, event: Event) -> Activity:
    data: ToolPayload = event.data
    session = _open_session(doc, event)
    if event.kind == "tool.failed" or not data.paths:
        return _with_session(doc, event, session)
    edits = [edit for edit in doc.edits if edit.path not in data.paths or edit.session != event.session]
    edits += [Edit(path, event.session, event.at) for path in data.paths]
    resumed = event.at - doc.last_edit > PAUSE
    doc = replace(
        doc,
        edits=edits[-MAX_EDITS:],
        last_edit=event.at,
        work_began=event.at if resumed else doc.work_began or event.at,
        first_edit=doc.first_edit or event.at,
    )
    folders = (_folder_of(path, event.project) for path in data.paths)
    areas = list(dict.fromkeys([*_open_turn(session).areas, *folders]))[:MAX_AREAS]
    # What ran before an edit does not follow from it.
    return _with_session(doc, event, replace(session, turn=TurnWork(areas=areas)))


def _run_command(doc: Activity, event: Event) -> Activity:
    session = _open_session(doc, event)
    names = habit_names(event.data.command) if event.kind == "tool.finished" else ()
    if not names:
        return _with_session(doc, event, session)
    turn = _open_turn(session)
    ran = list(dict.fromkeys([*turn.commands, *names]))[-MAX_COMMANDS:]
    since = list(dict.fromkeys([*doc.since_commit, *names]))[-MAX_COMMANDS:]
    return _with_session(replace(doc, since_commit=since), event, replace(session, turn=replace(turn, commands=ran)))


def _apply_commit(doc: Activity, event: Event) -> Activity:
    """One made outside of the sessions says nothing about what is run in them before a commit."""
    act: GitActed = event.data
    if act.verb != "commit" or act.outside:
        return doc
    work = CommitWork(at=event.at, commands=list(doc.since_commit), first_edit=doc.first_edit)
    commits = [*doc.commits, work][-MAX_COMMITS:]
    return _with_session(replace(doc, commits=commits, since_commit=[], first_edit=0), event, _open_session(doc, event))


def _open_turn(session: OpenSession) -> TurnWork:
    """The current turn; after one that is over, the next event begins a new one."""
    return TurnWork() if session.turn.over else session.turn


def _folder_of(path: str, project: str) -> str:
    """The folder a file is in, coarse enough that habits show: the first two levels."""
    inside = path.removeprefix(f"{project.rstrip('/')}/")
    folders = inside.split("/")[:-1][:2] if not inside.startswith("/") else ["elsewhere"]
    return "/".join(folders)[:100] + "/" if folders else "./"


_OF_ACTIVITY: dict[str, Callable[[Activity, Event], Activity]] = {
    **dict.fromkeys(SESSION_ENDS, _end_session),
    **dict.fromkeys(TOOL_ENDS, _end_call),
    ModelAnswered.KIND: _count_tokens,
    GitActed.KIND: _apply_commit,
    "turn.ended": _end_turn,
}


# ── what others want to know of it ───────────────────────────────────────────────────────────────────────────────────


def summarise_activity(doc: Activity | None, now: int) -> ActivityFacts:
    """For the project's document: only what changes rarely, so that looking again is not news."""
    if not doc:
        return ActivityFacts()
    live = [one for one in doc.sessions.values() if now - one.at < DAY]
    # Whole minutes: every edit would make a new event otherwise.
    last_edit = doc.last_edit // 60_000 * 60_000
    return ActivityFacts(
        began=doc.work_began, last_edit=last_edit, sessions=len(live), folders=_busiest_folders(doc, now)
    )  # fmt: skip


def _busiest_folders(doc: Activity, now: int) -> list[str]:
    counts: dict[str, int] = {}
    for edit in doc.edits:
        # Only the present stretch of work counts.
        if now - edit.at < PAUSE:
            folder = _folder_of(edit.path, doc.project)
            counts[folder] = counts.get(folder, 0) + 1
    return sorted(counts, key=lambda folder: (-counts[folder], folder))[:3]


def recent_paths(doc: Activity | None, now: int, within: int) -> list[str]:
    return [edit.path for edit in doc.edits if now - edit.at <= within] if doc else []


def other_editors(doc: Activity | None, path: str, session: str, now: int, within: int) -> list[OtherEditor]:
    """The other open sessions that edited this file lately and after this one did, the latest first."""
    if doc is None:
        return []
    edits = [edit for edit in reversed(doc.edits) if edit.path == path]
    since = max([now - within, *(edit.at for edit in edits if edit.session == session)])
    lately = [edit for edit in edits if edit.session != session and edit.at >= since]
    return [OtherEditor(edit.session, editor, edit.at) for edit in lately if (editor := doc.sessions.get(edit.session))]


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


# Habits mined from the log: what runs after changes in a folder, what runs before a commit, how long work waits.

KEPT_OUTCOMES = 50
MAX_HABIT_AREAS, MAX_HABIT_COMMANDS = 12, 12
FORGET_AFTER = 90 * DAY
SHOWN_FROM, FEWEST = 0.5, 5
CERTAINTY = 0.95
WAITS = (1, 2, 4, 8, 24)
"""Hours within which changes are usually committed: the smallest that holds is shown."""

V = TypeVar("V")


def reduce_habits(doc: Habits | None, event: Event) -> Habits:
    doc = doc or Habits(project=event.project)
    data = event.data
    if isinstance(data, TurnSummed):
        return replace(doc, at=event.at, after=_habits_after_turn(doc.after, data, event.at))
    if isinstance(data, CommitSeen):
        before_commit = _count_occasion(doc.before_commit, data.commands, event.at)
        return replace(
            doc,
            at=event.at,
            before_commit=before_commit,
            waits=_count_waits(doc.waits, data, data.committed_at or event.at),
        )
    return doc


def _habits_after_turn(folders: Mapping[str, HabitTable], turn: TurnSummed, at: int) -> dict[str, HabitTable]:
    changed = {area: _count_occasion(folders.get(area) or {}, turn.commands, at) for area in turn.areas}
    return _newest_entries(
        {**folders, **changed}, MAX_HABIT_AREAS, lambda table: max((h.at for h in table.values()), default=0)
    )


def _count_occasion(table: HabitTable, ran: list[str], at: int) -> HabitTable:
    """One more occasion for every command known here. The occasion on which one is first seen proves nothing yet."""
    counted = {
        name: _with_outcome(habit, name in ran, at) for name, habit in table.items() if at - habit.at < FORGET_AFTER
    }
    fresh = {name: Habit(at=at) for name in ran if name not in counted}
    return _newest_entries({**counted, **fresh}, MAX_HABIT_COMMANDS, lambda habit: habit.at)


def _with_outcome(habit: Habit, holds: bool, at: int) -> Habit:
    outcomes = (habit.outcomes + ("1" if holds else "0"))[-KEPT_OUTCOMES:]
    return Habit(outcomes, at if holds else habit.at)


def _newest_entries(table: Mapping[str, V], most: int, at: Callable[[V], int]) -> dict[str, V]:
    if len(table) <= most:
        return dict(table)
    newest_names = set(sorted(table, key=lambda name: (at(table[name]), name))[-most:])
    return {name: value for name, value in table.items() if name in newest_names}


def _count_waits(waits: HabitTable, commit: CommitSeen, at: int) -> HabitTable:
    if not commit.first_edit:
        return dict(waits)
    took = at - commit.first_edit
    by_hours = {str(hours): waits.get(str(hours)) or Habit() for hours in WAITS}
    return {hours: _with_outcome(habit, took < int(hours) * HOUR, at) for hours, habit in by_hours.items()}


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────────


def shown_habits(doc: Habits | None, now: int) -> list[HabitFacts]:
    """The habits worth showing, the surest first."""
    if not doc:
        return []
    habits = [
        *(_habit_facts(f"Always run {name} before commit", h) for name, h in doc.before_commit.items()),
        *(_habit_facts(f"{name} after changes in {area}", h) for area, t in doc.after.items() for name, h in t.items()),
        *_shown_waits(doc.waits),
    ]
    worth = [h for h in habits if h.seen >= FEWEST and now - h.last_observed < FORGET_AFTER]
    worth = [h for h in worth if habit_confidence(h.held, h.seen) >= SHOWN_FROM]
    return sorted(worth, key=lambda h: (-habit_confidence(h.held, h.seen), -h.seen, h.pattern))


def _habit_facts(pattern: str, habit: Habit) -> HabitFacts:
    held = habit.outcomes.count("1")
    return HabitFacts(pattern=pattern, held=held, seen=len(habit.outcomes), last_observed=habit.at)


def _shown_waits(waits: HabitTable) -> Iterator[HabitFacts]:
    for hours in WAITS:
        habit = _habit_facts(f"Uncommitted files normal for <{hours} hours", waits.get(str(hours)) or Habit())
        if habit.seen >= FEWEST and habit_confidence(habit.held, habit.seen) >= SHOWN_FROM:
            yield habit
            return


def shared_habits(by_project: Mapping[str, Iterable[HabitFacts]], now: int) -> list[HabitFacts]:
    """Habits that several projects have, their occasions counted together."""
    merged: dict[str, HabitFacts] = {}
    for name, habits in by_project.items():
        for habit in habits:
            if now - habit.last_observed < FORGET_AFTER:
                merged[habit.pattern] = _join_habits(merged.get(habit.pattern), habit, name)
    several = [h for h in merged.values() if len(h.projects) > 1]
    return sorted(several, key=lambda h: (-habit_confidence(h.held, h.seen), h.pattern))


def _join_habits(total: HabitFacts | None, habit: HabitFacts, project: str) -> HabitFacts:
    total = total or HabitFacts(pattern=habit.pattern)
    return replace(
        total,
        held=total.held + habit.held,
        seen=total.seen + habit.seen,
        last_observed=max(total.last_observed, habit.last_observed),
        projects=[*total.projects, project],
    )


@lru_cache(10_000)
def habit_confidence(held: int, seen: int, certainty: float = CERTAINTY) -> float:
    """The true share is lower only one time in twenty. Found by halving; rounded down."""
    # The lower end of a one-sided binomial interval (Clopper and Pearson).
    if held <= 0 or seen <= 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        # Fewer than one in twenty would see it hold so often: the true share is higher.
        if _at_least(held, seen, middle) < 1 - certainty:
            low = middle
        else:
            high = middle
    return int(low * 1000) / 1000


def _at_least(held: int, seen: int, share: float) -> float:
    """How likely it is to see it hold so often, were that its true share. In logarithms: powers of it underflow."""
    if not 0 < share < 1:
        return float(share >= 1)
    yes, no, ways = math.log(share), math.log1p(-share), math.lgamma(seen + 1)
    return sum(
        math.exp(ways - math.lgamma(k + 1) - math.lgamma(seen - k + 1) + k * yes + (seen - k) * no)
        for k in range(held, seen + 1)
    )
