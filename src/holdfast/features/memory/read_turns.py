"""Finished turns as the model reads them."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload
from holdfast.core.kinds.agent_events import HookPayload, PromptSubmitted, TurnEnded, TurnFailed
from holdfast.core.kinds.memory_events import TurnQueued
from holdfast.core.kinds.session_events import TurnAnswerRead
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.memory.settings import MemorySettings, is_excluded
from holdfast.features.memory.state.documents import one_line, shorten_strings

KINDS = (
    "prompt.submitted", "tool.finished", "tool.failed", "turn.ended", "turn.answer_read", "turn.interrupted", "turn.failed",
)  # fmt: skip
MOST_EVENTS, MOST_COMMANDS, MOST_FILES = 500, 15, 10
# The most characters of a prompt, an answer, a command line, and the output of a failed command.
PROMPT, MESSAGE, COMMAND, HEARD = 3_000, 3_000, 160, 160


class ReadTurn(msgspec.Struct, frozen=True):
    """`queued` is its place in the queue; an observation rests on `prompt_seq` and `message_seq`."""

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


def read_turn(reader: Reader, queued: Event, head: int, settings: MemorySettings) -> ReadTurn:
    """Up to `head`, so that exactly what was reserved is sent."""
    events = list(_of_turn(reader, queued, head))
    end = next((e for e in reversed(events) if e.kind.startswith("turn.")), None)
    prompt = next((e for e in events if e.kind == "prompt.submitted"), None)
    acts = [e for e in events if _is_readable(e, settings)]
    return ReadTurn(
        queued=queued,
        prompt=prompt.data.prompt[:PROMPT] if prompt else "",
        prompt_seq=prompt.seq if prompt else 0,
        message=_turn_message(end)[:MESSAGE],
        message_seq=end.seq if end else 0,
        commands=tuple(_command_lines(acts))[-MOST_COMMANDS:],
        files=_edited_files(acts)[-MOST_FILES:],
    )


def _edited_files(acts: Sequence[Event]) -> tuple[str, ...]:
    edited = itertools.chain.from_iterable(_touched_paths(e) for e in acts if e.data.action == "edit")
    return tuple(dict.fromkeys(edited))


def _of_turn(reader: Reader, queued: Event, head: int) -> Iterator[Event]:
    queued_turn: TurnQueued = queued.data
    begin = queued_turn.turn
    # `before` is exclusive, `head` is included.
    query = EventQuery(session=queued.session, kinds=KINDS, after=begin - 1, before=head + 1, limit=MOST_EVENTS)
    for event in reader.events(query):
        data: HookPayload = event.data
        if data.lane or (isinstance(data, PromptSubmitted) and data.synthetic):
            continue
        if event.kind == "prompt.submitted" and event.seq > begin:
            return
        yield event


def _turn_message(end: Event | None) -> str:
    return end.data.message if end and isinstance(end.data, TurnEnded | TurnAnswerRead | TurnFailed) else ""


def _command_lines(acts: Sequence[Event]) -> Iterable[str]:
    for event in acts:
        data: ToolEndPayload = event.data
        if data.action == "shell" and data.command:
            failed = event.kind == "tool.failed" or data.ok is False
            heard = f" → {one_line(data.error or data.output, HEARD)}" if failed else ""
            yield f"{'failed' if failed else 'ok'}: `{one_line(data.command, COMMAND)}`{heard}"


def _is_readable(event: Event, settings: MemorySettings) -> bool:
    if not event.kind.startswith("tool."):
        return False
    data: ToolEndPayload = event.data
    return not is_excluded(_touched_paths(event), data.command, settings)


def _touched_paths(event: Event) -> list[str]:
    data: ToolEndPayload = event.data
    return shorten_strings(data.paths, 5)
