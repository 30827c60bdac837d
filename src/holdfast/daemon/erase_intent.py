"""What is to be erased, on disk before the first change and until the last check: a daemon that dies finds it again.

It has to hold the text itself, so it is 0600, lies in `run/`, and is overwritten before it is removed.
"""

import contextlib
from pathlib import Path

import msgspec

from holdfast.core.erase import Quotation
from holdfast.core.event import Event
from holdfast.core.ids import delivery_key
from holdfast.paths import INTENT_SUFFIX, Paths, overwrite_file, sync_folder, write_atomically

SHORTEST_ID = 8
"""A session's id that is shorter is a word like any other: only its events go, not every text that has it."""


class EraseIntent(msgspec.Struct, kw_only=True):
    """`events` are what a command wants to happen with it, e.g. that a memory was forgotten."""

    id: str
    at: int
    texts: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    files: tuple[str, ...] | None = None
    """Files that show documents which are to go; filled in by the first step."""
    attempts: int = 0

    @property
    def what(self) -> str:
        kinds = (("text", self.texts), ("session", self.sessions), ("project", self.projects))
        return ", ".join(name for name, values in kinds if values)

    def quotations(self) -> list[Quotation]:
        """Ids of sessions and folders are looked for as words too: other rows may mention them."""
        named = [one for one in (*self.sessions, *self.projects) if len(one) >= SHORTEST_ID]
        return [Quotation(text) for text in (*self.texts, *named) if text.strip()]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(EraseIntent).decode


def new_intent(at: int, **targets: tuple[str, ...] | tuple[Event, ...]) -> EraseIntent:
    return EraseIntent(id=delivery_key(at)[:16], at=at, **targets)  # type: ignore[arg-type]


def path_of(paths: Paths, intent: EraseIntent) -> Path:
    return paths.run / f"{intent.id}{INTENT_SUFFIX}"


def save_intent(paths: Paths, intent: EraseIntent) -> None:
    write_atomically(path_of(paths, intent), _encode(intent))
    sync_folder(paths.run)


def open_intents(paths: Paths) -> list[EraseIntent]:
    """Oldest first. One that cannot be read was being removed when the daemon died: its work was done."""
    intents: list[EraseIntent] = []
    for path in sorted(paths.run.glob(f"*{INTENT_SUFFIX}")):
        try:
            intents.append(_decode(path.read_bytes()))
        except (OSError, msgspec.MsgspecError):
            path.unlink(missing_ok=True)
    return sorted(intents, key=lambda intent: intent.at)


def remove_intent(paths: Paths, intent: EraseIntent) -> None:
    path = path_of(paths, intent)
    with contextlib.suppress(FileNotFoundError):
        overwrite_file(path)
        path.unlink()
    sync_folder(paths.run)
