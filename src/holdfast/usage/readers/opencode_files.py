"""opencode before its database: `~/.local/share/opencode/storage/message/SESSION/MESSAGE.json`, one file per message."""

from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path

import msgspec

from holdfast.usage.reader import Position, Statement, UsageReader, begin_empty, document_reader
from holdfast.usage.readers.opencode_message import decode, statement_of

NAME = "opencode"
STORAGE = ".local/share/opencode/storage"


class SessionFile(msgspec.Struct, rename={"parent": "parentID"}):
    parent: str | None = None


def find_usage_files(home: Path) -> Iterable[Path]:
    return sorted((home / STORAGE / "message").glob("*/*.json"))


def parse_message_file(content: bytes, position: Position) -> Iterator[Statement]:
    message, path = decode(content), Path(position.path)
    session = message.session or path.parent.name
    parent = _parent_of(session, path.parents[2]) if len(path.parents) > 2 else ""
    statement = statement_of(message, message.id or path.stem, parent or session, session if parent else "")
    if statement:
        yield statement


def _parent_of(session: str, storage: Path) -> str:
    for file in (storage / "session").glob(f"*/{escape(session)}.json"):
        try:
            return msgspec.json.decode(file.read_bytes(), type=SessionFile).parent or ""
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            return ""
    return ""


READER = UsageReader(NAME, (".json",), find_usage_files, document_reader(NAME, parse_message_file, begin_empty))
