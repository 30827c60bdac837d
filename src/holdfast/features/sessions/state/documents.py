"""The documents of this feature."""

# Every list is capped: the whole story is in the log.

import msgspec

from holdfast.core.document import DocumentType
from holdfast.core.event import Event, own_event
from holdfast.core.kinds import HOOK_KINDS, SESSION_ENDS, SESSION_KINDS, TURN_ENDS, Payload
from holdfast.core.kinds.agent_events import AgentProcess
from holdfast.core.kinds.session_events import SessionSummarised

# Entries kept in a session's document.
MAX_LANES = MAX_RUNNING = MAX_CHILDREN = 20
MAX_ASKS = 5
MAX_OPEN_GATES = 20
MAX_REMEMBERED_CALLS = 8
# Enough to find the turn of a late record of token use by its time.
MAX_REMEMBERED_TURNS = 8
MAX_RECENT_SESSIONS = 20
# Characters.
TEXT_LENGTH = 200
TITLE_LENGTH = 80
LATE_MS = 5_000
"""Events of one moment come in any order; what is older than this came before."""

ACTIVE, COMPLETED = "active", "completed"
WATCHED = "watched"
"""In the index only: active with a known process. There are never more of them than agents that run."""
WORKING, WAITING, IDLE, ENDED = "working", "waiting", "idle", "ended"
CLOSES_TURN = SESSION_ENDS | TURN_ENDS | {"prompt.submitted", "notification"}
TERMINAL_CLOSED = "terminal-closed"
END_REASONS = ("exit", "clear", "process-gone", "stale", "closed-by-user")


class TurnRecord(msgspec.Struct, kw_only=True):
    """What one prompt set going. Seed 004 calls it a prompt batch."""

    n: int = 0
    id: str = ""
    """The agent's own id of it."""
    origin: str = ""
    """person, agent (no person typed the prompt) or recovery (there was none)."""
    prompt: str = ""
    at: int = 0
    end: int = 0
    how: str = ""
    tools: int = 0
    failed: int = 0
    answer: str = ""
    first: int = 0
    seq: int = 0


class Turn(TurnRecord, kw_only=True):
    """A turn inside its session's document."""

    processed: int = 0
    adopted: bool = False

    @property
    def is_open(self) -> bool:
        return not self.end

    @property
    def is_unprocessed(self) -> bool:
        return bool(self.end) and self.seq > self.processed


class Lane(msgspec.Struct, kw_only=True):
    """A subagent inside its session."""

    type: str = ""
    at: int = 0
    end: int = 0
    tools: int = 0
    last: int = 0
    transcript: str = ""
    """Its own file, which has its token use."""


class RunningCall(msgspec.Struct, kw_only=True):
    tool: str
    about: str
    at: int
    lane: str


class EndedCall(msgspec.Struct, kw_only=True):
    about: str
    at: int
    started: bool = True
    """False while only its end was reported."""


class PendingQuestion(msgspec.Struct, kw_only=True):
    """What the user is asked: a permission or a question."""

    what: str
    tool: str
    about: str
    lane: str
    at: int
    shell: bool = False


class OpenGate(msgspec.Struct, kw_only=True):
    """A gate that refused something in this session and was not satisfied since."""

    blocks: str
    """The tool that was refused; `end_of_turn` for a stop."""
    about: str = ""
    at: int = 0


class Session(msgspec.Struct, kw_only=True):
    """Counters, status and the current turn; `at` is the last event of the agent itself."""

    id: str
    agent: str = ""
    project: str = ""
    branch: str = ""
    cwd: str = ""
    transcript: str = ""
    model: str = ""
    origin: str = ""
    """The source of its first start."""
    source: str = ""
    title: str = ""
    status: str = ACTIVE
    state: str = IDLE
    since: int = 0
    reason: str = ""
    detail: str = ""
    at_end: str = ""
    """What it did when it ended: `working`, `asking` its person, `answered`."""
    started_at: int = 0
    at: int = 0
    ended_at: int = 0
    first_seq: int = 0
    seq: int = 0
    events: int = 0
    prompts: int = 0
    tools: int = 0
    failed: int = 0
    denied: int = 0
    edits: int = 0
    compactions: int = 0
    restarts: int = 0
    injected: int = 0
    """Tokens of context that Holdfast gave to the agent."""
    turn: Turn | None = None
    previous: Turn | None = None
    """The turn before, while nobody has gone through it."""
    missed: int = 0
    """The first closed turn that neither `turn` nor `previous` holds and nobody has gone through; 0 when there is none."""
    recent: list[tuple[int, int]] = []
    """(number, time) of the last turns."""
    early_stop: str = ""
    running: dict[str, RunningCall] = {}
    ended_calls: dict[str, EndedCall] = {}
    """The last that ended, by lane and id: a repeated report counts once."""
    asks: list[PendingQuestion] = []
    open_gates: dict[str, OpenGate] = {}
    pull_requests: list[str] = []
    let_through: list[str] = []
    """Requirements that were open when its last stop was let through."""
    lanes: dict[str, Lane] = {}
    lanes_seen: int = 0
    hook: tuple[int, int] | None = None
    process: AgentProcess | None = None
    parent: str = ""
    parent_reason: str = ""
    children: list[str] = []
    children_seen: int = 0
    summarised: int = 0

    @property
    def is_active(self) -> bool:
        return self.status == ACTIVE

    @property
    def has_unprocessed_turns(self) -> bool:
        return bool(self.missed or self.unprocessed_turns())

    def unprocessed_turns(self) -> list[Turn]:
        """Closed turns nobody has gone through since something happened in them, as far as the document holds them."""
        return [turn for turn in (self.previous, self.turn) if turn and turn.is_unprocessed]

    @property
    def any_lane_open(self) -> bool:
        return any(not lane.end for lane in self.lanes.values())


class TurnDocument(TurnRecord, kw_only=True):
    """A turn that was processed."""

    session: str = ""
    project: str = ""
    status: str = ACTIVE

    def as_turn(self) -> Turn:
        turn = msgspec.convert(self, Turn, from_attributes=True)
        turn.processed = self.seq
        return turn


class Summary(SessionSummarised, kw_only=True, omit_defaults=False):
    """What a session came to when it ended last."""

    session: str = ""
    project: str = ""
    status: str = COMPLETED
    at: int = 0


class RecentSessions(msgspec.Struct, kw_only=True):
    """The latest sessions of a project, the newest first."""

    project: str = ""
    recent: list[str] = []
    at: int = 0


class DayActivity(msgspec.Struct, kw_only=True):
    """Sums of one day: project → agent → figure → amount."""

    day: str = ""
    at: int = 0
    by: dict[str, dict[str, dict[str, int]]] = {}


class YearActivity(msgspec.Struct, kw_only=True):
    """Sums of every day of a year: month-day → figure → amount."""

    year: str = ""
    at: int = 0
    days: dict[str, dict[str, int]] = {}


SESSION = DocumentType("session", Session)
TURN = DocumentType("turn", TurnDocument)
SUMMARY = DocumentType("summary", Summary)
RECENT_SESSIONS = DocumentType("recent_sessions", RecentSessions)
DAY = DocumentType("day", DayActivity)
YEAR = DocumentType("year", YearActivity)
DOCUMENTS = (SESSION, TURN, SUMMARY, RECENT_SESSIONS, DAY, YEAR)


def turn_key(session: str, n: int) -> str:
    return f"{session}/{n}"


def one_line(text: object, limit: int = TEXT_LENGTH) -> str:
    """The beginning of a text, on one line."""
    if not text:
        return ""
    # Cut before it is split: the text may be megabytes.
    line = " ".join(str(text)[: limit * 4].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


# The events this feature subscribes to, and how it makes events of its own.

SUBSCRIBED_KINDS = frozenset((*HOOK_KINDS, *SESSION_KINDS, "decision.made", "gates.satisfied", "gates.approved")) - {
    "unknown",
    "message.displayed",
    "model.requested",
}


def session_event(session: Session, payload: Payload, at: int, once: object) -> Event:
    """An event of ours about a session. The same thing found twice (`once`) is one event."""
    return own_event(payload, at, session=session.id, project=session.project, once=once)
