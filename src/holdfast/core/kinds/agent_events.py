"""Kinds that come from agents' hooks."""

# The same happening has the same kind and fields in every agent.

import msgspec

from holdfast.core.checks import CommandJudgement, GitLook
from holdfast.core.kinds.base import JsonObject, Payload, Record, event_kind

UNKNOWN_VERB = "?"


class AgentProcess(Record):
    """The process of an agent, identified by its id and start, the boot and the machine."""

    pid: int = 0
    start: int = 0
    boot: str = ""
    machine: str = ""
    name: str = ""
    host: str = ""
    """In older logs instead of `machine`: the host's name."""


class OwnedLines(Record):
    """Uncommitted lines of a file, and who wrote them (`FileChange.owner`)."""

    path: str = ""
    by: str = ""
    lines: str = ""
    """Numbers such as `3-9, 14`; empty for the file as a whole."""


class HookPayload(Payload):
    """What every hook may tell: where it ran, in which process, and in which part of the session."""

    native: str = ""
    """The agent's own name of the hook."""
    cwd: str = ""
    branch: str = ""
    repo: str = ""
    """The common git directory: worktrees of one repository share it."""
    pid: int = 0
    pid_start: int = 0
    process: AgentProcess | None = None
    """The agent above the hook, where the feature `sessions` looked for it."""
    lane: str = ""
    """The subagent it happened in; empty for the session itself."""
    lane_type: str = ""
    lane_untold: bool = False
    """The agent does not say in which subagent it happened: `lane` is what followed from the hooks before it."""
    turn: str = ""
    transcript: str = ""
    mode: str = ""
    model: str = ""
    dedupe_key: str = msgspec.field(default="", name="same")
    """Names the happening, so that two registrations of our hooks do not make two events of it."""
    paused: bool = False
    """Whoever started the agent asked Holdfast to stay out of it."""
    project_name: str = ""
    worktree: str = ""
    """The root of the git worktree of `cwd`, where that is not the event's project."""
    discarded: str = ""
    """Uncommitted lines that calls of the session threw away, and how to restore them: for the person."""
    content: dict[str, str] = {}
    """Fingerprints of the worktree when it came, by what they cover ("" is everything, else `content_key`). Taken by the
    feature `checks` at the end of a check, of a turn, at the start of a session and before a git act; absent: unknown."""
    git: GitLook | None = None
    """What git showed when it came, where the feature `checks` looked."""
    claimed: bool = False
    """The hook was called from below a tool call of the agent, not by the agent: a claim, never evidence."""
    settings_at: int = 0
    """When the settings that count here were last changed on disk, in ms, at the first event that saw the change."""
    left_running: str = ""
    """A process that an agent had left behind and that ran when the settings were changed, as far as is known."""
    imported: str = ""
    """Which importer brought it; empty for what came from a live hook."""


class ToolPayload(HookPayload):
    """A tool call: `action` is the same word in every agent (see `core.agent.ACTIONS`)."""

    call: str = ""
    action: str = ""
    input: JsonObject = {}
    command: str = ""
    paths: list[str] = []
    path: str = ""
    skill: str = ""
    server: str = ""
    ms: float | int | None = None
    meanings: dict[str, str] = {}
    """What names in a shell command stand for on disk (an alias of git, a script), by the names of `core.shell.acts`."""
    written: list[str] = []
    """Files it writes as far as its input shows, links followed, without those that git ignores."""
    lands_on: list[str] = []
    """Protected branches whose files it writes although the session is on another one."""
    touches: list[str] = []
    """What of Holdfast's own it would change or take away (`state`, `settings`, `hooks`, `daemon`)."""
    refs: dict[str, str] = {}
    """Where the protected branches stood."""
    git_verbs: list[str] = []
    """Git acts that the command is about to do, at its start (`commit`, `push`, …): by its parse, not by its text.
    `UNKNOWN_VERB` where the command names git and could not be followed."""
    endangered: list["OwnedLines"] = []
    """Uncommitted lines of others that it may discard."""
    changed_by: dict[str, str] = {}
    """Files that the session used and somebody else changed since its last call, and who did. After `//` comes how HEAD
    moved."""


class ToolEndPayload(ToolPayload):
    ok: bool | None = None
    exit_code: int | None = None
    output: str = ""
    error: str = ""
    interrupted: bool = False
    detached: bool = False
    """It runs on in the background; how it ended is not known."""
    judgement: CommandJudgement | None = None
    """What the shell command did, where the feature `checks` saw something of interest in it."""


class ToolCallRef(Record):
    call: str = ""
    tool: str = ""


@event_kind("session.started")
class SessionStarted(HookPayload):
    """An agent session began, went on or was compacted."""

    source: str = ""
    parent: str = ""
    """The session that started this one, where the agent names it."""
    idle_s: int | float = 0


@event_kind("session.ended")
class SessionEnded(HookPayload):
    """The agent said that the session is over."""

    reason: str = ""
    terminal_closed: bool = False
    """The terminal of the agent's process was gone when it said so."""


@event_kind("session.pull_request")
class SessionPullRequest(HookPayload):
    """The agent says that a pull request belongs to the session."""

    url: str = ""


@event_kind("session.titled")
class SessionTitled(HookPayload):
    """The agent or the person gave the session a title."""

    title: str = ""


PLAN = "plan"
"""The source of a prompt that an agent writes when its plan was approved."""


@event_kind("prompt.submitted")
class PromptSubmitted(HookPayload):
    """A prompt reached the agent; `synthetic` when no person typed it."""

    prompt: str = ""
    source: str = ""
    synthetic: bool = False

    @property
    def is_plan(self) -> bool:
        """The agent's own plan, which the person approved: a goal, but not their words."""
        return self.source == PLAN


@event_kind("prompt.expanded")
class PromptExpanded(HookPayload):
    """A slash command became a prompt."""

    command: str = ""
    args: str = ""
    source: str = ""
    prompt: str = ""


@event_kind("tool.started")
class ToolStarted(ToolPayload):
    """A tool is about to run."""


@event_kind("tool.finished")
class ToolFinished(ToolEndPayload):
    """A tool ran."""


@event_kind("tool.failed")
class ToolFailed(ToolEndPayload):
    """A tool failed or was interrupted."""


@event_kind("tool.batch")
class ToolBatch(HookPayload):
    """All tools of one model turn are through."""

    calls: list[ToolCallRef] = []


@event_kind("permission.requested")
class PermissionRequested(ToolPayload):
    """The agent asks the user for a permission."""

    message: str = ""


@event_kind("permission.denied")
class PermissionDenied(ToolPayload):
    """A permission was refused."""

    reason: str = ""


@event_kind("turn.ended")
class TurnEnded(HookPayload):
    """The agent finished its turn; `again` when a stop was refused before."""

    message: str = ""
    again: bool = False
    background: int = 0
    status: str = ""
    why: str = ""


@event_kind("turn.failed")
class TurnFailed(HookPayload):
    """The turn ended in an error."""

    error: str = ""
    message: str = ""
    where: str = ""


@event_kind("turn.interrupted")
class TurnInterrupted(HookPayload):
    """The user interrupted the turn."""


@event_kind("subagent.started")
class SubagentStarted(HookPayload):
    """A subagent began."""

    source: str = ""


@event_kind("subagent.ended")
class SubagentEnded(HookPayload):
    """A subagent ended; `compaction` marks the end that Claude Code reports for each compaction."""

    message: str = ""
    again: bool = False
    background: int = 0
    lane_transcript: str = ""
    compaction: bool = False
    why: str = ""


@event_kind("compact.started")
class CompactStarted(HookPayload):
    """The context is about to be compacted."""

    trigger: str = ""
    instructions: str = ""
    end_untold: bool = False
    """This agent has no hook for the end: that it began is all there will be."""


@event_kind("compact.ended")
class CompactEnded(HookPayload):
    """The context was compacted."""

    trigger: str = ""
    summary: str = ""


@event_kind("notification")
class Notification(HookPayload):
    """The agent wants attention."""

    message: str = ""
    topic: str = ""


class AgentTaskPayload(HookPayload):
    task: str = ""
    subject: str = ""
    description: str = ""


@event_kind("task.created")
class TaskCreated(AgentTaskPayload):
    """The agent noted a task of its own."""


@event_kind("task.completed")
class TaskCompleted(AgentTaskPayload):
    """The agent finished a task of its own."""


@event_kind("setup.ran")
class SetupRan(HookPayload):
    """The agent's set-up ran."""

    trigger: str = ""


@event_kind("instructions.loaded")
class InstructionsLoaded(HookPayload):
    """An instruction file was read."""

    path: str = ""
    reason: str = ""
    memory: str = ""


@event_kind("message.displayed")
class MessageDisplayed(HookPayload):
    """A part of an answer was shown."""

    message: str = ""
    index: int = 0
    final: bool = False


@event_kind("cwd.changed")
class CwdChanged(HookPayload):
    """The working directory moved."""

    old: str = ""
    new: str = ""


@event_kind("file.changed")
class FileChanged(HookPayload):
    """A watched file changed."""

    path: str = ""
    change: str = ""


@event_kind("config.changed")
class ConfigChanged(HookPayload):
    """The agent's settings changed."""

    path: str = ""
    source: str = ""


@event_kind("directory.added")
class DirectoryAdded(HookPayload):
    """A directory was added to the session."""

    path: str = ""
    source: str = ""


class ModelSwitchPayload(HookPayload):
    old: str = ""
    new: str = ""
    source: str = ""


@event_kind("model.switching")
class ModelSwitching(ModelSwitchPayload):
    """Another model is about to be used."""


@event_kind("model.switched")
class ModelSwitched(ModelSwitchPayload):
    """Another model is in use."""


@event_kind("model.requested")
class ModelRequested(HookPayload):
    """The agent is about to call its model."""

    trigger: str = ""


@event_kind("model.answered")
class ModelAnswered(HookPayload):
    """The model answered; token use by kind, as far as the agent tells it."""

    tokens: dict[str, int] = {}
    """By kind of token (`usage.model.KINDS`); a kind that the agent does not tell is absent."""
    answer: str = ""
    """The agent's own id of the answer."""
    reported: int | None = None
    """Micro-dollars that the agent itself reports."""
    summed: bool = False
    """It adds up many calls, because the agent writes down no single ones."""
    prompt_tokens: int = 0
    """The whole prompt of the call, where `tokens` has only what this record adds."""
    turn_n: int = 0
    """The number of the session's turn that it belongs to; 0 where that is not known."""
    day: str = ""
    """The day it is counted to, in the time zone of the machine that read it."""
    compaction: bool = False
    """It is the summary of a compaction."""
    status: str = ""
    trigger: str = ""


@event_kind("worktree.created")
class WorktreeCreated(HookPayload):
    """A worktree was made."""

    name: str = ""


@event_kind("worktree.removed")
class WorktreeRemoved(HookPayload):
    """A worktree was removed."""

    path: str = ""


@event_kind("elicitation.requested")
class ElicitationRequested(HookPayload):
    """A tool server asks the user something."""

    message: str = ""
    server: str = ""


@event_kind("elicitation.answered")
class ElicitationAnswered(HookPayload):
    """The user answered a tool server."""

    server: str = ""
    action: str = ""


@event_kind("teammate.idle")
class TeammateIdle(HookPayload):
    """A teammate of the agent has nothing to do."""

    teammate: str = ""
    team: str = ""


@event_kind("unknown")
class UnknownHook(HookPayload):
    """A payload that could not be read; kept as it came."""

    problem: str = ""
