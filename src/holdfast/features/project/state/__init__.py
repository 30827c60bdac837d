"""The documents of this feature: their types, their addresses, and the bounds that keep them small."""

import msgspec

from holdfast.core.checks import CheckKind, Selection
from holdfast.core.document import DocumentType
from holdfast.core.ids import bounded_name
from holdfast.core.kinds.project_events import (
    ActivityFacts,
    CheckRule,
    GitFacts,
    HabitFacts,
    LeaseLock,
    NotionState,
    ProjectRules,
    Resolution,
    TodoFacts,
    TokenFacts,
    TreeFacts,
)
from holdfast.core.ports import Ref

SCHEMA_VERSION = "4.0.0"
MAX_HISTORY = 20
MAX_LISTED_FILES = 100

Document = msgspec.Struct


# ── a project ────────────────────────────────────────────────────────────────────────────────────────────────────────


class CheckRun(Document, frozen=True, kw_only=True):
    """One run of one check, in the folder and on the branch it ran in."""

    kind: str
    runner: str
    suite: str = ""
    """The name that its successors in the same folder keep, whatever started them."""
    dir: str = "."
    branch: str = ""
    commit: str = ""
    content: str = ""
    """Fingerprint of the worktree when it ended; empty when unknown."""
    selection: str = Selection.ALL.value
    operands: list[str] = []
    verdict: str
    could_not_start: bool = False
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    failures: list[str] = []
    why: str = ""
    command: str = ""
    began: int = 0
    at: int = 0

    @property
    def is_test(self) -> bool:
        return self.kind == CheckKind.TEST

    @property
    def is_whole(self) -> bool:
        return self.selection == Selection.ALL

    @property
    def place(self) -> str:
        """`pytest in services/a`."""
        return self.runner if self.dir == "." else f"{self.runner} in {self.dir}"


class Gap(Document, kw_only=True):
    """Something that should be true and is not. `key` tells two gaps of one type apart; it lasts as the gap does."""

    type: str
    key: str = ""
    priority: str
    description: str
    why: str
    done_when: list[str]
    method: str
    blocking: list[str]
    capabilities: list[str]
    resources: list[str]
    complexity: str
    minutes: int
    confidence: float
    basis: str = ""
    """What it was found on, e.g. the fingerprint of the content: a dismissed task returns when this changes."""
    seen_at: int = 0
    """When it was seen; 0 for what the next look at git shows again."""

    @property
    def identity(self) -> str:
        return task_identity(self.type, self.key)


class Task(Gap, kw_only=True):
    """A gap with a number."""

    id: str
    discovered_at: int


class HistoryLine(Document, kw_only=True, frozen=True):
    timestamp: int = 0
    change_type: str = "state_update"
    section: str = ""
    task_id: str = ""
    summary: str = ""
    process: int = 0


class OwnTask(Document, kw_only=True, frozen=True):
    """A task that a person or an importer added."""

    key: str
    description: str
    priority: str
    done_when: list[str] = []
    why: str = ""
    blocks: list[str] = []
    minutes: int = 0


class Dismissal(Document, frozen=True):
    basis: str
    reason: str
    at: int


class RuleOutcome(Document, frozen=True):
    """How a gap rule of the user's own ended last."""

    ok: bool | None
    exit_code: int
    rule: CheckRule


class AreaProof(Document, frozen=True):
    since: int
    command: str


class WaitingGate(Document, frozen=True):
    blocks: str
    session: str
    let_go: bool


class UatRun(Document, frozen=True):
    name: str
    failed_steps: list[str]


class OtherFeatures(Document, kw_only=True, frozen=True):
    """What other features report, by the kinds of their events."""

    gates: dict[str, WaitingGate] = {}
    uat_runs: dict[str, UatRun] = {}
    uat_failed: dict[str, int] = {}
    """Scenario → when its last run failed."""
    index_problem: str = ""


class Project(Document, kw_only=True):
    """What is true of a project and what needs doing. Every list and mapping has a bound where it is filled."""

    project: str
    status: str = "unknown"
    at: int = 0
    name: str = ""
    folder: str = ""
    override: str = ""
    git: GitFacts = msgspec.field(default_factory=GitFacts)
    trees: dict[str, TreeFacts] = {}
    notion: NotionState = msgspec.field(default_factory=NotionState)
    usage: TokenFacts = msgspec.field(default_factory=TokenFacts)
    activity: ActivityFacts = msgspec.field(default_factory=ActivityFacts)
    resolution: Resolution = msgspec.field(default_factory=Resolution)
    patterns: list[HabitFacts] = []
    todos: TodoFacts = msgspec.field(default_factory=TodoFacts)
    rules: ProjectRules = msgspec.field(default_factory=ProjectRules)
    sums: dict[str, int] = {}
    """Of each section as it was reported, so that only news is reported."""
    looked: dict[str, int] = {}
    """When each section was last seen to change."""
    results: list[CheckRun] = []
    commits: list[str] = []
    """Heads that git showed as commits made here, the last few."""
    fates: dict[str, str] = {}
    """As in the last look (`project.observed`)."""
    area_proofs: dict[str, AreaProof] = {}
    own_rules: dict[str, RuleOutcome] = {}
    others: OtherFeatures = msgspec.field(default_factory=OtherFeatures)
    locks: dict[str, LeaseLock] = {}
    own_tasks: list[OwnTask] = []
    dismissed: dict[str, Dismissal] = {}
    tasks: list[Task] = []
    next_task: int = 1
    history: list[HistoryLine] = []
    focus: str = ""
    """From a document that was taken over, until something newer is known."""

    @property
    def shown_name(self) -> str:
        return self.name or self.resolution.project or "unknown"


def task_identity(type_: str, key: str) -> str:
    return f"{type_} {key}"


# ── what goes on in it ───────────────────────────────────────────────────────────────────────────────────────────────


class TurnWork(Document, frozen=True):
    """What the turn going on changed and ran. `over` is the event that ended it."""

    areas: list[str] = []
    commands: list[str] = []
    over: int = 0


class OpenSession(Document, kw_only=True, frozen=True):
    began: int
    at: int = 0
    tokens: int = 0
    pid: int = 0
    start: int = 0
    project_name: str = ""
    agent: str = ""
    doing: str = ""
    """The first words of the person's last prompt."""
    turn: TurnWork = TurnWork()


class Edit(Document, frozen=True, array_like=True):
    path: str
    session: str
    at: int


class CommitWork(Document, kw_only=True, frozen=True):
    """What was run and edited before a commit. `over` is the end of the turn it was made in."""

    at: int
    commands: list[str]
    first_edit: int
    over: int = 0


class Activity(Document, kw_only=True):
    project: str
    at: int = 0
    edits: list[Edit] = []
    sessions: dict[str, OpenSession] = {}
    tokens_by_day: dict[str, int] = {}
    ended: list[int] = []
    """Tokens of the sessions that ended, the last few."""
    last_edit: int = 0
    work_began: int = 0
    first_edit: int = 0
    """Of those that are not committed."""
    since_commit: list[str] = []
    commits: list[CommitWork] = []
    """Of the turn going on, and of the one that ended last."""


class Habit(Document, frozen=True):
    """Its last outcomes, `1` where it held, and when it held last."""

    outcomes: str = ""
    at: int = 0


HabitTable = dict[str, Habit]


class Habits(Document, kw_only=True):
    project: str
    at: int = 0
    after: dict[str, HabitTable] = {}
    """Folder → command → how often it was run after changes there."""
    before_commit: HabitTable = {}
    waits: HabitTable = {}
    """Hours → how often changes were committed within them."""


# ── what holds across projects ───────────────────────────────────────────────────────────────────────────────────────


class LeaseEntry(Document, kw_only=True, frozen=True):
    """A process that holds a lease or waits for it."""

    owner: str
    pid: int
    start: int
    host: str
    boot: str
    mode: str
    at: int
    until: int
    ttl: int
    request: str
    project: str
    within: list[str]
    why: str
    token: int = 0
    machine: str = ""
    runs: bool = False


class Lease(Document, frozen=True):
    holders: list[LeaseEntry] = []
    waiters: list[LeaseEntry] = []


class LeaseAnswer(Document, kw_only=True, frozen=True):
    request: str
    answer: str
    token: int
    until: int
    why: str


class LeaseTable(Document, kw_only=True):
    """All leases in one document, so that a circle of waiting shows."""

    at: int = 0
    seq: int = 0
    touched: str = ""
    leases: dict[str, Lease] = {}
    answers: list[LeaseAnswer] = []


class CommitOrigin(Document, kw_only=True, frozen=True):
    """The session that made a commit; empty where none did. `seq` is the call that made it."""

    sha: str
    project: str = ""
    at: int = 0
    seq: int = 0
    verb: str = ""
    session: str = ""
    branch: str = ""


class KnownProject(Document, frozen=True):
    name: str = ""
    folder: str = ""
    status: str = ""
    habits: list[HabitFacts] = []


class GlobalState(Document, kw_only=True):
    at: int = 0
    status: str = ""
    projects: dict[str, KnownProject] = {}
    locks: dict[str, LeaseLock] = {}


PROJECT = DocumentType("project", Project)
ACTIVITY = DocumentType("project.activity", Activity)
HABITS = DocumentType("project.habits", Habits)
LEASES = DocumentType("project.leases", LeaseTable)
GLOBAL = DocumentType("project.global", GlobalState)
COMMIT = DocumentType("project.commit", CommitOrigin)
DOCUMENTS = (PROJECT, ACTIVITY, HABITS, LEASES, GLOBAL, COMMIT)
ALL = "all"
"""The key of the documents there is one of."""


def project_key(root: str) -> str:
    return bounded_name(root)


def project_ref(root: str) -> Ref:
    return PROJECT.ref(project_key(root))
