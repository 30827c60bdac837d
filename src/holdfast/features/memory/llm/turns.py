"""Finished turns as a model reads them, from the log; and what it said about them, as candidates.

What a tool said is cut short; what is excluded is left out. The model's answer is data: every field is checked, capped and
tied to the turn it came from. Its own words are told to nobody until a person promoted them. Where it quotes the user word
for word, the quotation itself is what is remembered, and that is the user's.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload
from holdfast.core.kinds.agent_events import HookPayload, PromptSubmitted, TurnEnded, TurnFailed
from holdfast.core.kinds.memory_events import TurnQueued
from holdfast.core.kinds.session_events import TurnAnswerRead
from holdfast.core.ports import EventQuery, Reader
from holdfast.core.text import sanitise
from holdfast.features.memory.documents import MODEL, MOST_PER_TURN, TYPES, USER, one_line, shorten_strings, string_list
from holdfast.features.memory.settings import MemorySettings, is_excluded
from holdfast.features.memory.turn_rules import Candidate, split_sentences

KINDS = (
    "prompt.submitted", "tool.finished", "tool.failed", "turn.ended", "turn.answer_read", "turn.interrupted", "turn.failed",
)  # fmt: skip
MOST_EVENTS, MOST_COMMANDS, MOST_FILES = 500, 15, 10
# Most characters of a prompt, an answer, a command line, and of what a failed command said.
PROMPT, MESSAGE, COMMAND, HEARD = 3_000, 3_000, 160, 160


class ReadTurn(msgspec.Struct, frozen=True):
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


def read_turn(reader: Reader, queued: Event, head: int, settings: MemorySettings) -> ReadTurn:
    """Up to `head`, so that what is sent is what the tokens were set aside for."""
    events = list(_of_turn(reader, queued, head))
    ends = [e for e in events if e.kind.startswith("turn.")]
    prompt = next((e for e in events if e.kind == "prompt.submitted"), None)
    acts = [
        e for e in events if e.kind.startswith("tool.") and not is_excluded(_touched_paths(e), _command_of(e), settings)
    ]
    return ReadTurn(
        queued=queued,
        prompt=prompt.data.prompt[:PROMPT] if prompt else "",
        prompt_seq=prompt.seq if prompt else 0,
        message=_turn_message(ends[-1])[:MESSAGE] if ends else "",
        message_seq=ends[-1].seq if ends else 0,
        commands=tuple(_command_lines(acts))[-MOST_COMMANDS:],
        files=tuple(dict.fromkeys(p for e in acts if e.data.action == "edit" for p in _touched_paths(e)))[-MOST_FILES:],
    )


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


def _turn_message(end: Event) -> str:
    return end.data.message if isinstance(end.data, TurnEnded | TurnAnswerRead | TurnFailed) else ""


def _command_lines(acts: Sequence[Event]) -> Iterable[str]:
    for event in acts:
        data: ToolEndPayload = event.data
        if data.action == "shell" and data.command:
            failed = event.kind == "tool.failed" or data.ok is False
            heard = f" → {one_line(data.error or data.output, HEARD)}" if failed else ""
            yield f"{'failed' if failed else 'ok'}: `{one_line(data.command, COMMAND)}`{heard}"


def _command_of(event: Event) -> str:
    data: ToolEndPayload = event.data
    return data.command


def _touched_paths(event: Event) -> list[str]:
    data: ToolEndPayload = event.data
    return shorten_strings(data.paths, 5)


# ── what a model said → candidates ───────────────────────────────────────────────────────────────────────────────────

LARGEST = 256 * 1024
# In characters and, for a quotation, in words: shorter ones fit too many sentences.
SHORTEST, LONGEST, FEWEST_WORDS = 12, 400, 3
# Below what a decision or rule of the user weighs (8).
HEAVIEST = 7
OWN_WORDS = ("decision", "preference", "gotcha", "trade_off", "discovery")


class BadAnswer(Exception):
    """It is not what was asked for."""


def read_answer(answer: str, turns: Sequence[ReadTurn]) -> list[tuple[ReadTurn, Candidate]]:
    entries = _parse_object(answer).get("observations")
    if not isinstance(entries, list):
        raise BadAnswer("there is no list `observations` in it")
    count_by_turn: dict[int, int] = {}
    candidates = []
    # Cut before anything is read: the answer may hold any number of entries.
    for one in (entry for entry in entries[: MOST_PER_TURN * len(turns)] if isinstance(entry, dict)):
        # With one turn only, its number may be left out.
        number = _number_or_default(one.get("turn"), 1 if len(turns) == 1 else 0)
        if 1 <= number <= len(turns) and count_by_turn.get(number, 0) < MOST_PER_TURN:
            turn = turns[number - 1]
            for candidate in _read_candidate(one, turn):
                count_by_turn[number] = count_by_turn.get(number, 0) + 1
                candidates.append((turn, candidate))
    return candidates


def _parse_object(answer: str) -> dict[str, Any]:
    """Models like to talk around their JSON."""
    begin, end = answer.find("{"), answer.rfind("}")
    if begin < 0 or end < begin or len(answer) > LARGEST:
        raise BadAnswer("there is no JSON object in it" if len(answer) <= LARGEST else "it is too long")
    try:
        decoded = msgspec.json.decode(answer[begin : end + 1].encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        raise BadAnswer("its JSON cannot be read") from None
    if not isinstance(decoded, dict):
        raise BadAnswer("its JSON is not an object")
    return decoded


def _read_candidate(one: dict[str, Any], turn: ReadTurn) -> Iterator[Candidate]:
    type_, text = str(one.get("type") or ""), _clean_words(one.get("text"))
    if type_ not in TYPES or len(text) < SHORTEST:
        return
    quoted = _quoted_sentence(one.get("quote"), turn) if type_ in OWN_WORDS else ""
    evidence = tuple(seq for seq in (turn.prompt_seq, turn.message_seq) if seq)
    # `evidence`: a quotation rests on the prompt alone, not on what the agent answered.
    yield Candidate(
        type=type_, text=quoted or text, detail=text if quoted else "", origin=USER if quoted else MODEL,
        importance=max(1, min(_number_or_default(one.get("importance"), 4), HEAVIEST)), files=_touched_files(one, turn),
        evidence=evidence[:1] if quoted else evidence,
    )  # fmt: skip


def _clean_words(value: Any) -> str:
    return one_line(sanitise(value), LONGEST) if isinstance(value, str) else ""


def _quoted_sentence(value: Any, turn: ReadTurn) -> str:
    """The user's own sentence that holds these words; pasted text is not his (`sentences`)."""
    words = one_line(value, LONGEST).lower() if isinstance(value, str) else ""
    if len(words) < SHORTEST or len(words.split()) < FEWEST_WORDS:
        return ""
    return next((own for own in split_sentences(turn.prompt) if words.rstrip(".!") in own.lower()), "")


def _touched_files(one: dict[str, Any], turn: ReadTurn) -> tuple[str, ...]:
    """Only files that this turn really touched."""
    named = string_list(one.get("files"))
    return tuple(f for f in turn.files if any(f == n or f.endswith(f"/{n.lstrip('./')}") for n in named if n))[:5]


def _number_or_default(value: Any, default: int) -> int:
    # In Python `True` is an int.
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1000 else default
