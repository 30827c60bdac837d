"""Messages between machine and team server; unknown fields are ignored, so that either may be newer."""

from typing import Any, Literal

import msgspec

VERSION, OLDEST_VERSION = 1, 1
"""Protocol versions: a server refuses machines below its oldest; a machine refuses such a server."""
VERSION_HEADER = "holdfast-version"
"""Sent with every request. Without it a machine speaks version 1."""
# Events in one batch.
MOST_EVENTS = 500
# Bytes of a request's body, and of a batch after decompression.
MOST_COMPRESSED, MOST_BYTES = 4 << 20, 32 << 20
# Fits into PostgreSQL's bigint.
LARGEST_NUMBER = 1 << 62
LONGEST_NAME = 200

Level = Literal["presence", "facts", "summaries", "full"]
LEVELS: tuple[Level, ...] = ("presence", "facts", "summaries", "full")
Role = Literal["viewer", "member", "lead", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "member", "lead", "admin")
"""Each role includes those before it."""


class Message(msgspec.Struct, omit_defaults=True, kw_only=True, frozen=True):
    """Base of all messages."""


class SharedEvent(Message, frozen=True):
    """An event as it leaves a machine: `data` holds only what the level allows."""

    seq: int
    key: str
    at: int
    kind: str
    session: str = ""
    project: str = ""
    """The project's identity (`team.identity`), never a path."""
    agent: str = ""
    tool: str = ""
    level: str = ""
    """Set if its project has another level than the batch."""
    data: dict[str, Any] = {}


class SharedProject(Message, frozen=True):
    """A project as the team sees it."""

    id: str
    remote: str
    root: str
    """Its first commit."""


class Batch(Message, frozen=True):
    """Everything a machine shares of its log in (`after`, `upto`]."""

    stream: int
    after: int
    upto: int
    restores: tuple[tuple[int, int], ...] = ()
    """(stream, the last number that means the same as in the previous stream), for every replacement of the log."""
    common_event: str = ""
    """The key of the event that the last of `restores` names, for the server to look up."""
    run: str = ""
    """A random id of the sending process. Empty: a machine that sends no keys either."""
    after_event: str = ""
    upto_event: str = ""
    """Keys of the log's events at `after` and `upto`, shared or not: they show the server that it is still the same
    log."""
    sent_at: int = 0
    level: Level = "facts"
    projects: tuple[SharedProject, ...] = ()
    events: tuple[SharedEvent, ...] = ()


class ReceivedEvent(SharedEvent, frozen=True):
    """As the server receives it: `data` is passed on unparsed, because 32 MB of `{}` as objects took 900 MB."""

    data: msgspec.Raw = msgspec.Raw(b"{}")  # type: ignore[assignment]


class ReceivedBatch(Batch, frozen=True):
    events: tuple[ReceivedEvent, ...] = ()


class BatchAnswer(Message, frozen=True):
    """After the commit. `gap`: nothing was accepted, because the batch does not continue what the server has."""

    stream: int
    cursor: int
    key: str = ""
    """The key of the machine's event at `cursor`, as the server knows it; empty if unknown."""
    restores: tuple[tuple[int, int], ...] = ()
    """With `gap`: the streams of this machine, as in `Batch`."""
    copied: bool = False
    """Nothing was accepted: another process sends as this machine, because its state folder was copied."""
    taken: int = 0
    known: int = 0
    gap: bool = False
    feed: int = 0
    """The number of the newest item that may wait for this machine."""


class Health(Message, frozen=True):
    """What a server reports about itself."""

    ok: bool
    version: int
    oldest: int = 1


class EnrolRequest(Message, frozen=True):
    code: str
    machine: str
    label: str = ""
    cursor: int = 0
    """The head of its log: older events are sent only on request."""
    version: int = VERSION
    program: str = ""


class Enrolled(Message, frozen=True):
    """The token is shown this once; the server keeps its hash."""

    token: str
    tenant: str
    person: str
    role: Role
    stream: int = 1
    cursor: int = 0
    feed: int = 0


class FeedItem(Message, frozen=True):
    """A message from the team to a machine. `by` is the person whose words or act it is."""

    id: int
    kind: str
    at: int = 0
    by: str = ""
    project: str = ""
    payload: dict[str, Any] = {}


class FeedPage(Message, frozen=True):
    items: tuple[FeedItem, ...] = ()
    upto: int = 0
    """All items up to here for this machine are in this page or an earlier one."""


class LeaseRequest(Message, frozen=True):
    act: Literal["acquire", "renew", "release"]
    project: str
    name: str
    session: str = ""
    token: int = 0
    ttl_s: int = 300
    paths: tuple[str, ...] = ()
    """Globs of files, relative to the project, that nobody else should edit meanwhile."""
    why: str = ""
    words: str = ""
    """The number under which the machine recorded its words (`ForgetRequest.words`)."""


class LeaseAnswer(Message, frozen=True):
    """`token` grows with every grant of the name: whatever the lease protects can refuse an older one."""

    granted: bool
    token: int = 0
    ttl_s: int = 0
    person: str = ""
    machine: str = ""
    session: str = ""
    why: str = ""


class MemoryProposal(Message, frozen=True):
    id: str
    project: str
    text: str
    type: str = ""


class HandoverRequest(Message, frozen=True):
    project: str
    to: str
    text: str
    session: str = ""
    words: str = ""


class ForgetRequest(Message, frozen=True):
    """Whole sessions and projects, single events of this machine by number, a command's words (a hand-over, lease,
    memory) by id, or everything from this machine."""

    sessions: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    everything: bool = False


class ForgetReceipt(Message, frozen=True):
    id: str
    at: int
    events: int
    rows: int
    words: int | None = None
    """How many hand-overs, leases and memories are gone; None from an older server that cannot do it."""


class CodeRequest(Message, frozen=True):
    person: str
    role: Role = "member"
    hours: int = 24


class CodeIssued(Message, frozen=True):
    code: str
    person: str
    role: Role
    until: int


class RuleRequest(Message, frozen=True):
    """A requirement of the gates, as in a settings file. It applies to every project of the team."""

    name: str
    requirement: dict[str, Any]


class RevokeRequest(Message, frozen=True):
    machine: str = ""
    person: str = ""


class RotateRequest(Message, frozen=True):
    """The SHA-256, in hex, of a token that the machine made. A machine that sends none is given one."""

    token_hash: str = ""


class RotateAnswer(Message, frozen=True):
    """The old token is valid until the new one is first used."""

    token: str = ""


class BudgetRequest(Message, frozen=True):
    """Tokens or dollars a week; an empty person, project or model applies to all."""

    name: str
    person: str = ""
    project: str = ""
    model: str = ""
    tokens: int = 0
    usd: float = 0.0


class Problem(Message, frozen=True):
    """Every refusal: what happened, and what to do."""

    error: str
    fix: str = ""


def role_allows(role: str, needed: Role) -> bool:
    return role in ROLES and ROLES.index(role) >= ROLES.index(needed)
