"""Factory droid's sessions as the events that its hooks would have been."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from holdfast.agents import normalise
from holdfast.agents.droid.hooks import STATUS_LINE, TABLES
from holdfast.agents.droid.transcript import SPEECH, SUFFIX, Line, Message, decode, failures, find_files, spoken
from holdfast.agents.droid.usage import READER
from holdfast.agents.history import History, read_lines, text_of
from holdfast.agents.source import LONGEST_LINE, group_by_session, merge_by_time
from holdfast.analysis.transcripts import Found, Importer, ImportLocation, Transcripts
from holdfast.analysis.usage.events import usage_event
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.analysis.usage.reader import PARSE_ERRORS, records_of
from holdfast.core.event import Event
from holdfast.paths import open_regular

NAME = "droid"
NOT_TYPED = "task-completion:"


def find_sessions(location: ImportLocation) -> Iterable[Path]:
    """A subagent's file is read with that of its session; alone only where that is gone."""
    folders = {path.parent for path in find_files(location.home)}
    return [path for folder in sorted(folders) for path in _sessions_in(folder)]


def read_session(path: Path, _place: ImportLocation) -> Iterator[Found]:
    return merge_by_time(map(_read_file, (path, *_sessions_in(path.parent).get(path, ()))))


def _sessions_in(folder: Path) -> Mapping[Path, list[Path]]:
    return group_by_session(folder, folder.stat().st_mtime_ns, "*.jsonl", _ids_of)


def _ids_of(path: Path) -> tuple[str, str]:
    try:
        with open(path, "rb", opener=open_regular) as file:
            record = decode(file.readline(LONGEST_LINE))
    except (OSError, *PARSE_ERRORS):
        return "", ""
    return record.calling_session_id or record.id, record.id


def _read_file(path: Path) -> Iterator[Found]:
    session = _Session(path)
    yield from read_lines(path, session.read_entry, session.close)


class _Session:
    def __init__(self, path: Path) -> None:
        self.history = History(NAME, path, TABLES)

    def read_entry(self, line: bytes, _number: int) -> Iterator[Event]:
        record, history = decode(line), self.history
        if record.type == "session_start":
            # A subagent's file names the session that called it.
            history.session, history.project = record.calling_session_id or record.id, record.cwd or ""
            history.lane = record.id if record.calling_session_id else ""
        message, at = record.message, parse_milliseconds(record.timestamp)
        if message is None or not at:
            return
        yield from history.begin(at)
        if message.visibility == "user_only" or record.id.startswith("context-"):
            return
        if message.role == "assistant":
            yield from self._answer(message, at)
        else:
            yield from self._user(record, message, at)

    def _answer(self, message: Message, at: int) -> Iterator[Event]:
        self.history.model = (message.model_id or "").removeprefix("custom:") or self.history.model
        self.history.answered(at, text_of(message.content))
        for part in message.parts("tool_use"):
            yield from self.history.call(at, str(part.get("id")), str(part.get("name") or ""), part.get("input"))

    def _user(self, record: Line, message: Message, at: int) -> Iterator[Event]:
        results = message.parts("tool_result")
        for part in results:
            output = text_of(part.get("content"))
            code = normalise.exit_code_at_end(output, STATUS_LINE)
            yield self.history.result(
                at, str(part.get("tool_use_id")), output, failed=part.get("is_error") is True, code=code
            )
        if not results:
            synthetic = bool(self.history.lane) or record.id.startswith(NOT_TYPED)
            yield from self.history.prompt(at, record.id, text_of(message.content), synthetic=synthetic)

    def close(self) -> Iterator[Event]:
        """The sums have no time of their own: they belong to the end."""
        path = self.history.path
        for record in records_of(READER, path.with_name(path.stem + SUFFIX)):
            more = {"at": self.history.last or record.at, "project": self.history.project}
            yield usage_event(msgspec.structs.replace(record, **more), imported=NAME)
        yield from self.history.close()


TRANSCRIPTS = Transcripts(
    importer=Importer(NAME, "Factory droid sessions", find_sessions, read_session, whole_sessions=True),
    usage=(READER,),
    speech=SPEECH,
    spoken=spoken,
    failures=failures,
)
