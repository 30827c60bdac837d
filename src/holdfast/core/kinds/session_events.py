"""Kinds of the feature `sessions`: what was found out about a session beyond what its agent reported."""

import msgspec

from holdfast.core.kinds.agent_events import AgentProcess
from holdfast.core.kinds.base import Payload, Record, event_kind


@event_kind("session.process")
class ProcessFound(Payload):
    """The agent's process was found by a job, where the hook itself could not be looked at in time."""

    pid: int = 0
    start: int = 0
    boot: str = ""
    host: str = ""
    machine: str = ""
    name: str = ""

    def process(self) -> AgentProcess:
        return AgentProcess(self.pid, self.start, self.boot, self.machine, self.name, self.host)


@event_kind("agent.unrecorded")
class AgentUnrecorded(Payload):
    """An agent runs, and no hook of it came: what it does is not recorded, and no gate holds it."""

    pid: int = 0
    start: int = 0
    program: str = ""
    cwd: str = ""
    since: int = 0
    why: str = ""


@event_kind("session.lost")
class SessionLost(Payload):
    """The agent's process is gone."""

    pid: int = 0
    start: int = 0


@event_kind("session.stale")
class SessionStale(Payload):
    """Nothing came from a session without a known process for too long; `last` is the time of its last event."""

    last: int = 0


@event_kind("session.left")
class SessionLeft(Payload):
    """The agent went on with another session in the same process."""

    to: str = ""


@event_kind("session.closed")
class SessionClosed(Payload):
    """A person closed a session."""


@event_kind("session.reopened")
class SessionReopened(Payload):
    """A person opened a closed session again."""


@event_kind("session.linked")
class SessionLinked(Payload):
    """A session goes on from another; `parent_seq` is the first event of the parent."""

    parent: str = ""
    reason: str = ""
    parent_seq: int = 0


@event_kind("session.branched")
class SessionBranched(Payload):
    """Another session goes on from this one."""

    child: str = ""
    reason: str = ""


class CommandRun(Record):
    """A shell command of a session: how it ended last, and how often it ran."""

    command: str = ""
    ok: bool | None = None
    exit_code: int | None = None
    times: int = 0
    verdict: str = ""
    """Of a check: passed, failed, did_not_run or unknown."""
    counts: str = ""


class CommitMade(Record):
    branch: str = ""
    sha: str = ""
    subject: str = ""


@event_kind("session.summarised")
class SessionSummarised(Payload):
    """What a session came to, made without a model; `of` is the last event it covers."""

    of: int = 0
    title: str = ""
    text: str = ""
    prompts: int = 0
    tools: int = 0
    failed: int = 0
    denied: int = 0
    edits: int = 0
    ms: int = 0
    files: list[str] = []
    files_seen: int = 0
    commands: list[CommandRun] = []
    commands_seen: int = 0
    tests: list[CommandRun] = []
    commits: list[CommitMade] = []
    open: list[str] = []
    end: str = ""
    outcome: str = ""


@event_kind("permission.granted")
class PermissionGranted(Payload):
    """The command that a permission was asked for runs; `asked` is the time of the question."""

    asked: int = 0


@event_kind("turn.recovered")
class TurnRecovered(Payload):
    """A turn without activity was closed; `last` is the time of the last event seen."""

    n: int = 0
    last: int = 0


@event_kind("turn.escaped")
class TurnEscaped(Payload):
    """The transcript says that the user interrupted the turn, and when."""

    n: int = 0
    when: int = 0


@event_kind("turn.adopted")
class TurnAdopted(Payload):
    """Activities without a prompt were given a turn of their own; `first` is its first event."""

    n: int = 0
    first: int = 0


@event_kind("turn.answer_read")
class TurnAnswerRead(Payload):
    """What the agent answered was read from its transcript; `of` is the event of the turn's end, `n` the turn."""

    of: int = 0
    n: int = 0
    lane: str = ""
    turn: str = ""
    message: str = ""


class TurnFacts(Record):
    """What a turn came to."""

    id: str = ""
    origin: str = ""
    prompt: str = ""
    answer: str = ""
    at: int = 0
    end: int = 0
    how: str = ""
    tools: int = 0
    failed: int = 0
    first: int = 0
    seq: int = 0


@event_kind("turn.processed")
class TurnProcessed(Payload):
    """A closed turn was gone through: `facts` is what it came to, `more` what it adds to its day."""

    n: int = 0
    upto: int = 0
    facts: TurnFacts = msgspec.field(default_factory=TurnFacts)
    more: dict[str, int] = {}
    day: str = ""
    agent: str = ""


@event_kind("tool.exit_read")
class ToolExitRead(Payload):
    """How a command ended was read from the transcript; `of` is the event of its end."""

    of: int = 0
    call: str = ""
    lane: str = ""
    action: str = ""
    command: str = ""
    branch: str = ""
    repo: str = ""
    ok: bool | None = None
    exit_code: int | None = None
