"""Finished turns as a model reads them, from the log. What a tool said is cut short; what is excluded is left out."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from holdfast.core.event import Event
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.memory.model import MemorySettings, excluded, line, strings

KINDS = ("prompt.submitted", "tool.finished", "tool.failed", "turn.ended", "turn.interrupted", "turn.failed")
MOST_EVENTS, MOST_COMMANDS, MOST_FILES = 500, 15, 10
PROMPT, MESSAGE, COMMAND, HEARD = 3_000, 3_000, 160, 160


class Turn(msgspec.Struct, frozen=True):
    """`queued` is its place in the queue; `prompt_seq` and `message_seq` are what an observation rests on."""

    queued: Event
    prompt: str
    prompt_seq: int
    message: str
    message_seq: int
    commands: tuple[str, ...]
    files: tuple[str, ...]

    def text(self, number: int) -> str:
        lines = [f"## turn {number}", f"user: {self.prompt}"]
        lines += ["commands:", *(f"- {one}" for one in self.commands)] if self.commands else []
        lines += [f"files changed: {', '.join(self.files)}"] if self.files else []
        return "\n".join([*lines, f"agent: {self.message}"])


def read(reader: Reader, queued: Event, head: int, settings: MemorySettings) -> Turn:
    """Up to `head`, so that what is sent is what the tokens were set aside for."""
    events = list(_of_turn(reader, queued, head))
    ends = [e for e in events if e.kind.startswith("turn.")]
    prompt = next((e for e in events if e.kind == "prompt.submitted"), None)
    acts = [e for e in events if e.kind.startswith("tool.") and not excluded(_paths(e), _command(e), settings)]
    return Turn(
        queued=queued,
        prompt=str(prompt.get("prompt") or "")[:PROMPT] if prompt else "",
        prompt_seq=prompt.seq if prompt else 0,
        message=str(ends[-1].get("message") or "")[:MESSAGE] if ends else "",
        message_seq=ends[-1].seq if ends else 0,
        commands=tuple(_commands(acts))[-MOST_COMMANDS:],
        files=tuple(dict.fromkeys(p for e in acts if e.get("action") == "edit" for p in _paths(e)))[-MOST_FILES:],
    )


def _of_turn(reader: Reader, queued: Event, head: int) -> Iterator[Event]:
    begin = int(queued.get("turn") or 0)
    query = EventQuery(session=queued.session, kinds=KINDS, after=begin - 1, before=head + 1, limit=MOST_EVENTS)
    for event in reader.events(query):
        if event.get("lane") or event.get("synthetic"):
            continue
        if event.kind == "prompt.submitted" and event.seq > begin:
            return
        yield event


def _commands(acts: Sequence[Event]) -> Iterable[str]:
    for event in acts:
        if event.get("action") == "shell" and (command := _command(event)):
            failed = event.kind == "tool.failed" or event.get("ok") is False
            heard = f" → {line(event.get('error') or event.get('output'), HEARD)}" if failed else ""
            yield f"{'failed' if failed else 'ok'}: `{line(command, COMMAND)}`{heard}"


def _command(event: Event) -> str:
    return str(event.get("command") or "")


def _paths(event: Event) -> list[str]:
    return strings(event.get("paths"), 5)
