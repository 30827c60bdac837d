"""opencode's messages: in `~/.local/share/opencode/opencode.db`, before 1.2 in a file each below `storage/`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

FOLDER = ".local/share/opencode"
STORAGE = f"{FOLDER}/storage"
IDS = "ses_"
"""How ids of sessions begin."""
BUSY_MS = 2_000
"""opencode may be writing: it is waited for."""


class Cache(msgspec.Struct):
    read: Any = None
    write: Any = None


class Tokens(msgspec.Struct):
    input: Any = None
    output: Any = None
    reasoning: Any = None
    cache: Cache | None = None


class Time(msgspec.Struct):
    created: Any = None


class Folder(msgspec.Struct):
    root: str | None = None
    cwd: str | None = None


class Message(msgspec.Struct, rename={"parent": "parentID", "model": "modelID", "session": "sessionID"}):
    role: str = ""
    id: str = ""
    session: str = ""
    parent: str | None = None
    model: str | None = None
    time: Time | None = None
    path: Folder | None = None
    cost: Any = None
    tokens: Tokens | None = None


decode = msgspec.json.Decoder(Message).decode


class SessionFile(msgspec.Struct, rename={"parent": "parentID"}):
    parent: str | None = None


class ExportInfo(msgspec.Struct, rename={"parent": "parentID"}):
    id: str = ""
    parent: str | None = None
    directory: str = ""
    title: str = ""


class ExportedMessage(msgspec.Struct):
    info: msgspec.Raw = msgspec.Raw(b"{}")
    parts: list[Any] = []


class ExportHead(msgspec.Struct):
    info: ExportInfo


class Export(ExportHead):
    """What `opencode export SESSION` writes."""

    messages: list[ExportedMessage] = []


decode_export = msgspec.json.Decoder(Export).decode
decode_head = msgspec.json.Decoder(ExportHead).decode
EXPORTS = f"{IDS}*.json"


def find_exports(home: Path) -> Iterable[Path]:
    return sorted((home / FOLDER).glob(EXPORTS))


def find_databases(home: Path) -> Iterable[Path]:
    return sorted((home / FOLDER).glob("opencode*.db"))


def find_message_files(home: Path) -> Iterable[Path]:
    return sorted((home / STORAGE / "message").glob("*/*.json"))
