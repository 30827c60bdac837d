"""The shape of a usage reader: where an agent keeps its figures, and how one of its files is read on from a position."""

from collections.abc import Callable, Iterable
from glob import escape
from pathlib import Path

import msgspec

from holdfast.usage.model import NOTHING, Usage, UsageRecord

REMEMBERED = 512
"""Messages of one file whose figures may still grow. Agents write the lines of one message close together."""


class FileContext(msgspec.Struct, omit_defaults=True):
    """What earlier lines of a file said about the later ones."""

    session: str = ""
    lane: str = ""
    model: str = ""
    turn: str = ""
    project: str = ""
    branch: str = ""
    thread: str = ""
    """Whose running total it goes on with."""
    detailed: bool = False
    """The file has the agent's finer record, so its coarser one is passed over."""
    epoch: int = 0
    """How often a running total began again at 0."""
    count: int = 0
    """Records of a rewritten file that are read already."""


class Position(msgspec.Struct, omit_defaults=True):
    """How far a file was read. Small and JSON: it is kept between runs."""

    path: str
    inode: int = 0
    offset: int = 0
    tail: int = 0
    """Checksum of the bytes before the offset: a file that was written anew is recognised by it."""
    stamp: int = 0
    """Time of the last change, for files that are read whole."""
    skipping: bool = False
    """Inside a line that is too long to be kept."""
    context: FileContext = msgspec.field(default_factory=FileContext)
    known: dict[str, Usage] = msgspec.field(default_factory=dict)


class Statement(msgspec.Struct, kw_only=True):
    """What a file says of one message: its figures so far."""

    id: str
    said: Usage
    at: int = 0
    model: str = ""
    session: str = ""
    lane: str = ""
    turn: str = ""
    project: str = ""
    branch: str = ""
    reported: int | None = None
    summed: bool = False


class Reading(msgspec.Struct):
    position: Position
    records: list[UsageRecord]
    more: bool = False
    """There is more in the file; read again from the position."""
    bad: int = 0
    """Lines that were no records."""


class LiveSession(msgspec.Struct, frozen=True):
    """What is known of a session whose figures are read while it runs."""

    id: str
    home: Path
    transcript: str = ""
    """The file that the agent's hooks name; empty where they name none."""
    lane_transcripts: tuple[str, ...] = ()
    """Files of its subagents, as hooks named them."""
    began: int = 0

    @property
    def file_name(self) -> str:
        """Its id as part of a pattern for files; empty for an id that is no plain name."""
        return "" if not self.id or "/" in self.id or self.id.startswith(".") else escape(self.id)


def named_files(session: LiveSession) -> Iterable[Path]:
    return [Path(path) for path in (session.transcript, *session.lane_transcripts) if path]


class UsageReader(msgspec.Struct, frozen=True):
    name: str
    endings: tuple[str, ...]
    find: Callable[[Path], Iterable[Path]]
    """The files below a home folder."""
    read: Callable[[Position], Reading]
    """On from a position; never raises for what a file may hold."""
    session_files: Callable[[LiveSession], Iterable[Path]] = named_files
    """The files of one session while it runs, its subagents' too. They need not exist."""
    shared: bool = False
    """A file holds many sessions: `stamp` of a new position is when the session began."""

    def accepts(self, path: str) -> bool:
        return path.endswith(self.endings) and "\0" not in path


def record_of(agent: str, statement: Statement, position: Position) -> UsageRecord | None:
    """What the statement adds to what was known of its message; None when it adds nothing."""
    before = position.known.pop(statement.id, NOTHING)
    position.known[statement.id] = statement.said.at_least(before)
    while len(position.known) > REMEMBERED:
        position.known.pop(next(iter(position.known)))
    spent = statement.said.beyond(before)
    if spent.is_empty:
        return None
    context = position.context
    return UsageRecord(
        agent=agent,
        id=statement.id,
        at=statement.at,
        spent=spent,
        said=statement.said,
        model=statement.model or context.model,
        session=statement.session or context.session,
        lane=statement.lane or context.lane,
        turn=statement.turn or context.turn,
        project=statement.project or context.project,
        branch=statement.branch or context.branch,
        reported=statement.reported,
        summed=statement.summed,
    )
