"""Kinds of the feature `project`: what was seen of a repository, tasks of a person's own, leases."""

# Facts are also parts of stored documents, so a text's default is always the empty one: what is encoded must not
# depend on whether a value was decoded or is the default itself.

import msgspec

from holdfast.core.kinds.base import Payload, Record, event_kind

# ── what a look finds ────────────────────────────────────────────────────────────────────────────────────────────────


class ChangedFile(Record):
    path: str = ""
    code: str = ""
    """As `git status` has it; `??` is a file git does not know."""
    modified: int = 0
    changed: int = 0
    """The later of its own time and the inode's: a file that was moved here keeps its own."""
    size: int | None = None
    """Of a file; nothing for a link, and for a file that is gone."""
    blob: str = ""
    """Git's id of its content, where it was read."""

    @property
    def last_change(self) -> int:
        return self.changed or self.modified


class CommitFacts(Record):
    hash: str = ""
    subject: str = ""
    at: int = 0
    author: str = ""


class GitFacts(Record):
    repository: str = ""
    status: str = ""
    """clean, dirty or unknown; empty before the first look."""
    problem: str = ""
    branch: str = ""
    detached: bool = False
    head: str = ""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    count: int = 0
    cut: bool = False
    files: list[ChangedFile] = []
    oldest_change: int = 0
    newest_change: int = 0
    conflicts: list[str] = []
    untracked_sources: list[str] = []
    stashes: int = 0
    doing: str = ""
    """merge, rebase, … while one is in progress."""
    last: CommitFacts | None = None
    unpushed_since: int = 0
    worktree: bool = False
    draft: bool = False
    remote: str = ""
    content: str = ""
    """Fingerprint of the worktree at this look; empty when it could not be taken."""

    @property
    def was_read(self) -> bool:
        return bool(self.status)

    @property
    def current_branch(self) -> str | None:
        """Empty on a detached head, None when it is not known."""
        return None if not self.branch else "" if self.detached else self.branch


class TreeFacts(Record):
    path: str = ""
    modified: int = 0
    size_mb: float = 0
    source: str = ""
    in_sync: bool | None = None
    differing: list[str] = []
    problem: str = ""


class ActivityFacts(Record):
    """What goes on in a project, without what changes at every edit."""

    began: int = 0
    last_edit: int = 0
    sessions: int = 0
    folders: list[str] = []


class TokenFacts(Record):
    used: int = 0
    limit: int = 0
    per_session: float = 0


class HabitFacts(Record):
    pattern: str = ""
    held: int = 0
    seen: int = 0
    last_observed: int = 0
    projects: list[str] = []
    """Those that share it; empty for the project's own."""


class Signal(Record):
    """One vote for what a project is called."""

    project: str = ""
    confidence: float = 0
    reason: str = ""


class Resolution(Record):
    project: str = ""
    confidence: float = 0
    method: str = ""
    signals: dict[str, Signal] = {}
    alternatives: list[Signal] = []
    resolved_at: int = 0


class TodoFacts(Record):
    count: int = 0
    places: list[str] = []


class AreaRules(Record):
    """What the settings say of a named part of the project."""

    paths: list[str] = []
    noun: str = ""
    validate: list[str] = []
    done_when: list[str] = []
    blocks: list[str] = []
    capabilities: list[str] = []
    locks: list[str] = []
    activity: str = ""
    intent: str = ""


class ProjectRules(Record):
    """What reducers need of the settings; in the log, so that a replay needs none."""

    phase: str = ""
    uncommitted_hours: int = 0
    unpushed_hours: int = 0
    off: list[str] = []
    priorities: dict[str, str] = {}
    areas: dict[str, AreaRules] = {}


class ReportRun(Record):
    """A JUnit report that the settings name."""

    name: str = ""
    written: int = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = []


class ProjectFacts(Record):
    """Sections that are there replace what was known."""

    git: GitFacts | None = None
    trees: dict[str, TreeFacts] | None = None
    activity: ActivityFacts | None = None
    resolution: Resolution | None = None
    usage: TokenFacts | None = None
    patterns: list[HabitFacts] | None = None
    todos: TodoFacts | None = None
    rules: ProjectRules | None = None
    junit: list[ReportRun] | None = None
    name: str | None = None
    folder: str | None = None


@event_kind("project.observed")
class ProjectObserved(Payload):
    """Facts about a project changed."""

    facts: ProjectFacts = msgspec.field(default_factory=ProjectFacts)
    sums: dict[str, int] = {}
    pid: int = 0
    fates: dict[str, str] = {}
    """Files that were uncommitted at the look before and are no more, and where their content is now: `committed`,
    `stashed`, `moved` or `discarded`."""


@event_kind("project.look_asked")
class LookAsked(Payload):
    """A person asked for a fresh look at the project; `quick`: at what a look at git shows."""

    quick: bool = False


@event_kind("project.validated")
class AreaValidated(Payload):
    """A command that the settings name as the proof of an area passed."""

    what: list[str] = []
    command: str = ""
    since: int = 0
    pid: int = 0


@event_kind("project.turn_summed")
class TurnSummed(Payload):
    """What a turn changed and ran, for learning."""

    areas: list[str] = []
    commands: list[str] = []


@event_kind("project.commit_seen")
class CommitSeen(Payload):
    """A commit, and what was run before it."""

    commands: list[str] = []
    first_edit: int = 0
    committed_at: int = 0


class CheckRule(Record):
    """A gap rule of the user's own: the gap is open while the command does not end as it should."""

    command: str = ""
    exit_code: int = 0
    priority: str = ""
    description: str = ""
    done_when: list[str] = []
    blocks: list[str] = []
    minutes: int = 0


@event_kind("project.checked")
class RuleChecked(Payload):
    """A gap rule of the user's own ran."""

    name: str = ""
    names: list[str] = []
    """All rules there are now."""
    ok: bool | None = None
    exit_code: int = 0
    rule: CheckRule = msgspec.field(default_factory=CheckRule)


@event_kind("project.time_passed")
class TimePassed(Payload):
    """A gap opened or closed only because time went by."""


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@event_kind("project.task_added")
class TaskAdded(Payload):
    """A person added a task, or an importer found one."""

    description: str = ""
    priority: str = ""
    done_when: list[str] = []
    why: str = ""
    blocks: list[str] = []
    minutes: int = 0
    imported: str = ""


class AdoptedLine(Record):
    at: int = 0
    section: str = ""
    summary: str = ""


DOCUMENT_SOURCE = "session-state"
"""What is taken out of such a document is marked so, whoever takes it: the feature where it lies, or an import."""


@event_kind("project.document_adopted")
class DocumentAdopted(Payload):
    """A SESSION_STATE document that somebody else wrote, or changed by hand, was taken over."""

    path: str = ""
    version: str = ""
    tasks: int = 0
    history: list[AdoptedLine] = []
    focus: str = ""
    left: list[str] = []
    """What could not be taken, each with the reason."""


@event_kind("project.task_done")
class TaskDone(Payload):
    """A person marked their own task as done."""

    id: str = ""
    key: str = ""


@event_kind("project.task_dismissed")
class TaskDismissed(Payload):
    """A person said that a task is none, for what it was found on."""

    id: str = ""
    type: str = ""
    key: str = ""
    basis: str = ""
    reason: str = ""


@event_kind("project.override_set")
class OverrideSet(Payload):
    """A person said which project this is; an empty name takes it back."""

    name: str = ""


class NotionPage(Record):
    page: str = ""
    sum: int = 0
    title: str = ""
    done: bool = False


class NotionState(Record):
    sync_status: str = ""
    """synced, pending or failed."""
    last_synced: int = 0
    pending: list[str] = []
    pending_count: int = 0
    pages: dict[str, NotionPage] = {}
    problem: str = ""


@event_kind("project.notion_pushed")
class NotionPushed(Payload):
    """The task list went to Notion, or could not."""

    status: str = ""
    state: NotionState = msgspec.field(default_factory=NotionState)


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class LeasePayload(Payload):
    name: str = ""
    owner: str = ""
    """pid:start@machine."""
    why: str = ""


@event_kind("project.lease_asked")
class LeaseAsked(LeasePayload):
    """Somebody wants a lease."""

    pid: int = 0
    start: int = 0
    host: str = ""
    """The host's name, in records from before machines had ids."""
    machine: str = ""
    boot: str = ""
    runs: bool = False
    """It is held while a command runs, and what that started is found by its environment."""
    mode: str = ""
    ttl_ms: int = 0
    wait: bool = False
    within: list[str] = []
    """Owners of leases under which the asking command runs: they wait for it."""
    request: str = ""


@event_kind("project.lease_kept")
class LeaseKept(LeasePayload):
    """A lease's owner is still at it."""


@event_kind("project.lease_released")
class LeaseReleased(LeasePayload):
    """An owner gave a lease back, or waits for it no longer."""


@event_kind("project.lease_freed")
class LeaseFreed(LeasePayload):
    """A lease was taken from an owner who is gone."""


class LeaseLock(Record):
    """Who holds a lease now and until when; without a pid it is free."""

    pid: int = 0
    at: int = 0
    until: int = 0
    why: str = ""
    mode: str = ""
    holders: list[int] = []
    waiters: list[int] = []
    token: int = 0

    @property
    def is_held(self) -> bool:
        return bool(self.mode)


@event_kind("project.lease_changed")
class LeaseChanged(Payload):
    """Who holds a lease now."""

    name: str = ""
    lock: LeaseLock = msgspec.field(default_factory=LeaseLock)
    freed: str = ""
    pid: int = 0
