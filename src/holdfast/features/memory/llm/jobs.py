"""Two steps, so that no token is spent that was not set aside before: `memory.batch` picks turns and sets tokens aside by an
event, `memory.ask` makes the one call that event allows and reports what it cost. A call that was cut off counts as spent."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ids import delivery_key
from holdfast.core.job import delay_s
from holdfast.core.ports import Doc, EventQuery, Reader, Ref, StateQuery
from holdfast.features.memory import observe
from holdfast.features.memory.llm import endpoint, meter, program, queue
from holdfast.features.memory.llm.answer import BadAnswer, candidates
from holdfast.features.memory.llm.request import ModelFailed, Question, Reply, question
from holdfast.features.memory.llm.settings import CLAUDE, OFF
from holdfast.features.memory.llm.turns import Turn, read
from holdfast.features.memory.model import MemorySettings, said, settings_or_default
from holdfast.features.memory.rules.candidate import Candidate

MOST_PROJECTS = 100
BAD_ANSWERS = 3
"""After so many a batch is asked turn by turn; after as many again its first turn is given up (the rules read it anyway)."""


# ── step one ───────────────────────────────────────────────────────────────────────────────────────────────────────


def batch(call: JobCall) -> Iterator[Event]:
    counted = call.reader.state(meter.REF)
    for _, doc in call.reader.states(StateQuery(kind=queue.KIND, status=queue.WAITING, limit=MOST_PROJECTS)):
        settings = settings_or_default(call.settings(doc["project"]))
        if settings.model.use == OFF or doc["next_at"] > call.now or meter.busy(counted, doc["project"]):
            continue
        yield from _set_aside(call, doc, settings, counted)


def _set_aside(call: JobCall, doc: Doc, settings: MemorySettings, counted: Doc | None) -> Iterator[Event]:
    """As many turns as were asked for and as the day's tokens allow."""
    left, beyond = meter.left(counted, call.now, settings.model.daily_tokens), meter.beyond(counted, call.now)
    most = settings.model.turns if doc["bad"] < BAD_ANSWERS else 1
    query = EventQuery(project=doc["project"], kinds=("memory.queued",), after=doc["cursor"], limit=most)
    waiting, head = call.reader.events(query), call.reader.head()
    for count in range(len(waiting), 0, -1):
        turns = [read(call.reader, one, head, settings) for one in waiting[:count]]
        tokens = _most(question(turns), settings) + beyond
        if tokens <= left:
            yield said(
                "memory.asked", call.now, project=doc["project"], id=delivery_key(call.now), tokens=tokens, head=head,
                limit=settings.model.daily_tokens, turns=[t.queued.seq for t in turns], bad=doc["bad"],
                failures=doc["failures"],
            )  # fmt: skip
            return


def _most(asked: Question, settings: MemorySettings) -> int:
    own = program.OWN_TOKENS if settings.model.use == CLAUDE else 0
    return asked.most(settings.model.output_tokens) + own


# ── step two ───────────────────────────────────────────────────────────────────────────────────────────────────────


def ask(call: JobCall) -> Iterable[Event]:
    payload, project = call.job.payload, str(call.job.payload["project"])
    counted = call.reader.state(meter.REF)
    if not counted or payload["id"] not in counted["open"]:
        return []
    settings = settings_or_default(call.settings(project))
    if call.job.attempts > 1:
        return [_failed(call, "the daemon ended during the call", spent=True)]
    if settings.model.use == OFF:
        return [_failed(call, "switched off", spent=False)]
    turns = [read(call.reader, one, int(payload["head"]), settings) for one in _queued(call.reader, payload["turns"])]
    asked = question(turns)
    try:
        reply = _reply(call, asked, settings)
        found = candidates(reply.text, turns)
    except ModelFailed as error:
        return [_failed(call, str(error), spent=error.spent, wait_s=error.wait_s)]
    except BadAnswer as error:
        return [_failed(call, f"the model's answer: {error}", tokens=_cost(asked, reply), bad=True)]
    observed = list(_observed(call.reader, found))
    return [*observed, _answered(call, ok=True, tokens=_cost(asked, reply), observations=len(observed))]


def _queued(reader: Reader, numbers: Sequence[int]) -> list[Event]:
    return [event for number in numbers if (event := reader.event(number))]


def _reply(call: JobCall, asked: Question, settings: MemorySettings) -> Reply:
    if settings.model.use == CLAUDE:
        return program.ask(asked, settings.model, call.run, call.state_dir)
    return endpoint.ask(asked, settings.model, call.cancelled)


def _cost(asked: Question, reply: Reply) -> int:
    """An endpoint that counts too little, or not at all, is not believed."""
    return max(reply.tokens, asked.likely(reply.text))


class _Known:
    """Documents as a rule sees them, from a reader."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def get(self, kind: str, key: str) -> Doc | None:
        return self._reader.state(Ref(kind, key))


def _observed(reader: Reader, found: Iterable[tuple[Turn, Candidate]]) -> Iterator[Event]:
    for turn, candidate in found:
        for event in observe.made(_Known(reader), turn.queued, [candidate]):
            yield msgspec.structs.replace(event, key=delivery_key(event.at))


def _failed(
    call: JobCall, why: str, *, spent: bool = False, tokens: int = 0, bad: bool = False, wait_s: float = 0.0
) -> Event:
    payload = call.job.payload
    failures = int(payload.get("failures") or 0) + 1
    given_up = bad and len(payload["turns"]) == 1 and int(payload.get("bad") or 0) + 1 >= 2 * BAD_ANSWERS
    return _answered(
        call, ok=False, error=why[:300], tokens=int(payload["tokens"]) if spent else tokens, bad=bad, given_up=given_up,
        next_at=call.now + int(max(wait_s, delay_s(failures)) * 1000),
    )  # fmt: skip


def _answered(call: JobCall, **data: Any) -> Event:
    payload = call.job.payload
    return said(
        "memory.answered", call.now, project=str(payload["project"]), id=payload["id"], turns=len(payload["turns"]),
        until=max(payload["turns"]), **data,
    )  # fmt: skip
