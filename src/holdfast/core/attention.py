"""One notion of what needs a person: shared by every view, door and notification."""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.core.document import DocumentType

ASKS = ("permission", "question")
"""Kinds that an agent waits for."""
KINDS: Mapping[str, str] = {
    "permission": "asks for permission",
    "question": "asks you something",
    "finished": "has finished its turn",
    "refused": "was refused for good",
    "failed": "stopped with an error",
    "budget": "has used up its budget",
    "uat": "has a failed UAT run",
    "discarded": "discarded uncommitted work",
    "unrecorded": "runs unrecorded",
}
"""Every kind of need, in words; the more urgent first."""
OPEN = "open"


class Need(msgspec.Struct, kw_only=True):
    """Something that waits for a person."""

    id: str
    kind: str
    text: str
    """What exactly is asked: the command, the files, the question."""
    since: int
    seq: int = 0
    key: str = ""
    """The key of the event that asked."""
    agent: str = ""
    tool: str = ""
    call: str = ""
    lane: str = ""
    session: str = ""
    project: str = ""
    task: str = ""
    """The person's own words of the task."""
    input: dict[str, Any] = {}
    """The tool's input as far as it is shown: what would run, or the questions with their options."""
    sent: list[str] = []
    """Channels that were used for it."""

    @property
    def asks(self) -> bool:
        return self.kind in ASKS


class Attention(msgspec.Struct, kw_only=True):
    """What needs a person in one session; without a session, in one project."""

    session: str = ""
    project: str = ""
    task: str = ""
    needs: list[Need] = []
    denials: dict[str, int] = {}
    """Refusals in this turn, by what was refused."""
    typed_at: int = 0
    """When its person typed the last prompt."""
    at: int = 0


class Muted(msgspec.Struct, kw_only=True):
    until: int = 0
    at: int = 0


ATTENTION = DocumentType("attention", Attention)
MUTED = DocumentType("attention_mute", Muted)
MUTED_KEY = "notifications"
VIEWING = "viewing"
"""In `run/`: the web server touches it while a page of the dashboard is visible."""


def urgency(need: Need) -> tuple[int, int]:
    return list(KINDS).index(need.kind), need.since
