"""Background work of memory: finding named files, keeping the index file, asking a model.

A model is asked in two steps, so that no token is spent without a reservation: `memory.batch` selects turns and
reserves tokens by an event, `memory.ask` makes the one call that event allows and reports its cost. An interrupted
call counts as spent.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.event import Event, own_event
from holdfast.core.feature import File, JobCall
from holdfast.core.ids import delivery_key
from holdfast.core.job import delay_s
from holdfast.core.kinds.memory_events import MemoryFilesFound, ModelAsked, ModelCallEnded
from holdfast.core.ports import EventQuery, Reader, Ref
from holdfast.features.memory import llm as model_call
from holdfast.features.memory.index.index_file import TEXTS, index_path, indexed_until, mark_content, mark_path
from holdfast.features.memory.llm import BadAnswer, ModelFailed, Question, Reply, build_question, read_answer
from holdfast.features.memory.policy import observed_events
from holdfast.features.memory.policy.turn_rules import Candidate
from holdfast.features.memory.read_turns import ReadTurn, read_turn
from holdfast.features.memory.settings import CLAUDE, OFF, MemorySettings, settings_or_default
from holdfast.features.memory.state.documents import OBSERVATION, PLACE, PROJECT, Observation
from holdfast.features.memory.state.llm_state import METER, METER_REF, QUEUE, WAITING, Meter, Queue, new_meter

MOST_PROJECTS = 100
BAD_ANSWERS = 3
"""After this many unusable answers the batch is asked turn by turn; after as many again its first turn is given up
(rules read it anyway)."""
WORTH = 10_000
"""A search reads this many events instantly."""
# Seconds of one indexing job, and the pause after each page of the log.
LONGEST_S, PAUSE_S = 30.0, 0.01
LIST_SECONDS = 10


# ── files that a memory names ────────────────────────────────────────────────────────────────────────────────────────


def find_files(call: JobCall) -> Iterable[Event]:
    """Find which named files exist; once all are gone, the memory concerns something that no longer exists."""
    doc = OBSERVATION.load(call.reader, str(call.job.payload["id"]))
    if doc is None or not doc.files or not doc.project:
        return ()
    existing = list(_existing_paths(call, doc))
    if not existing or existing == doc.paths:
        return ()
    payload = MemoryFilesFound(id=doc.id, repo=doc.repo, paths=existing)
    return [own_event(payload, call.now, session=doc.session, project=doc.project)]


def _existing_paths(call: JobCall, doc: Observation) -> Iterator[str]:
    root = Path(doc.project)
    unknown = []
    for name in doc.files:
        if (root / name).exists():
            yield str(root / name)
        else:
            # Named without its folder, or relative to another one: git's list decides.
            unknown.append(name.lstrip("./"))
    if unknown and doc.repo:
        listed = _tracked_files(call, doc.project)
        for name in unknown:
            yield from (str(root / path) for path in listed if path == name or path.endswith(f"/{name}"))


def _tracked_files(call: JobCall, project: str) -> list[str]:
    ran = call.run(["git", "ls-files", "-z"], cwd=project, timeout=LIST_SECONDS)
    # File names are bytes; invalid UTF-8 must survive.
    return ran.out.decode("utf-8", "surrogateescape").split("\0") if ran.code == 0 else []


# ── the index's file, so that the first search after a start is quick ────────────────────────────────────────────────


def keep_index(call: JobCall) -> Iterable[Event]:
    path = index_path(call.state_dir)
    reached = indexed_until(path)
    # The mark file is read first: both checks are cheap, loading numpy is not.
    if call.reader.head() - reached < WORTH or not _any_text(call.reader, reached):
        return ()
    from holdfast.features.memory.index.catalogue import Catalogue

    catalogue = Catalogue(path)  # Not the one that answers: where nobody searches, none stays in memory.
    until = time.monotonic() + LONGEST_S

    def others_first() -> bool:
        """Yield to hooks, which another thread of this process answers."""
        time.sleep(PAUSE_S)
        return time.monotonic() < until and not call.cancelled()

    catalogue.catch_up(call.reader, others_first)
    seq, whole = catalogue.dump()
    call.put(File(path, whole))
    # The mark after the file: `indexed_until` must not name a missing file.
    call.put(File(mark_path(path), mark_content(seq)))
    # Text forgotten meanwhile must not be in the file; another look at the log finds out.
    catalogue.catch_up(call.reader, lambda: False)
    return ()


def _any_text(reader: Reader, after: int) -> bool:
    """Avoids loading numpy for nothing."""
    return bool(reader.events(EventQuery(after=after, kinds=TEXTS, limit=1)))


# ── the model, step one: tokens are set aside ────────────────────────────────────────────────────────────────────────


def batch(call: JobCall) -> Iterator[Event]:
    meter = METER.load(call.reader, METER_REF.key) or new_meter(call.now)
    for _, queue in QUEUE.list(call.reader, status=WAITING, limit=MOST_PROJECTS):
        settings = settings_or_default(call.settings(queue.project))
        # One call per project at a time: a second one would be asked about the same turns.
        if settings.model.use == OFF or queue.next_at > call.now or meter.is_busy(queue.project):
            continue
        yield from _set_aside(call, queue, settings, meter)


def _set_aside(call: JobCall, queue: Queue, settings: MemorySettings, meter: Meter) -> Iterator[Event]:
    """Reserve as many turns as requested and as the day's tokens allow."""
    limit, head = settings.model.daily_tokens, call.reader.head()
    left, beyond = meter.remaining_tokens(call.now, limit), meter.use_of(call.now).beyond
    # After several unusable answers each turn is asked about alone, so that one bad turn blocks no others.
    most = settings.model.turns if queue.bad < BAD_ANSWERS else 1
    query = EventQuery(project=queue.project, kinds=("memory.queued",), after=queue.cursor, limit=most)
    waiting = call.reader.events(query)
    # Fewer turns are tried until the question fits the rest of the day.
    for count in range(len(waiting), 0, -1):
        turns = [read_turn(call.reader, one, head, settings) for one in waiting[:count]]
        # Today's overruns are added, because this call may overrun too.
        tokens = _most_tokens(build_question(turns), settings) + beyond
        if tokens <= left:
            reservation = ModelAsked(
                id=delivery_key(call.now), tokens=tokens, head=head, limit=limit, turns=[t.queued.seq for t in turns],
                bad=queue.bad, failures=queue.failures,
            )  # fmt: skip
            yield own_event(reservation, call.now, project=queue.project)
            return


def _most_tokens(question: Question, settings: MemorySettings) -> int:
    own = model_call.OWN_TOKENS if settings.model.use == CLAUDE else 0
    return question.most(settings.model.output_tokens) + own


# ── step two: the one call ───────────────────────────────────────────────────────────────────────────────────────────


class ModelRequest(ModelAsked):
    project: str = ""


def ask_model(call: JobCall) -> Iterable[Event]:
    request = msgspec.convert(call.job.payload, ModelRequest)
    meter = METER.load(call.reader, METER_REF.key)
    # Not granted, or settled: this job ran before and its result is in the log.
    if meter is None or request.id not in meter.open:
        return []
    settings = settings_or_default(call.settings(request.project))
    # A second attempt means the first was interrupted; its cost is unknown.
    if call.job.attempts > 1:
        return [_failed_call(call, request, "the daemon ended during the call", spent=True)]
    if settings.model.use == OFF:
        return [_failed_call(call, request, "switched off")]
    turns = [read_turn(call.reader, one, request.head, settings) for one in _queued_turns(call.reader, request.turns)]
    return _ask_about(call, request, turns, settings)


def _ask_about(
    call: JobCall, request: ModelRequest, turns: Sequence[ReadTurn], settings: MemorySettings
) -> list[Event]:
    question = build_question(turns)
    try:
        reply = _ask_model(call, question, settings)
        candidates = read_answer(reply.text, turns)
    except ModelFailed as error:
        return [_failed_call(call, request, str(error), spent=error.spent, wait_s=error.wait_s)]
    except BadAnswer as error:
        return [
            _failed_call(call, request, f"the model's answer: {error}", tokens=_token_cost(question, reply), bad=True)
        ]
    observed = list(_observed_candidates(call.reader, candidates))
    ended = ModelCallEnded(ok=True, tokens=_token_cost(question, reply), observations=len(observed))
    return [*observed, _call_ended(call, request, ended)]


def _queued_turns(reader: Reader, numbers: Sequence[int]) -> list[Event]:
    return [event for number in numbers if (event := reader.event(number))]


def _ask_model(call: JobCall, question: Question, settings: MemorySettings) -> Reply:
    if settings.model.use == CLAUDE:
        return model_call.ask_claude(question, settings.model, call.run, call.state_dir)
    return model_call.ask_endpoint(question, settings.model, call.cancelled)


def _token_cost(question: Question, reply: Reply) -> int:
    """An endpoint that reports too little, or nothing, is not believed."""
    return max(reply.tokens, question.likely(reply.text))


class _Committed:
    """Committed documents, read as a rule sees them."""

    types = {one.kind: one for one in (OBSERVATION, PROJECT, PLACE)}

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def get(self, kind: str, key: str) -> Any:
        raw = self._reader.document(Ref(kind, key))
        return None if raw is None else self.types[kind].decode(raw)


def _observed_candidates(reader: Reader, candidates: Iterable[tuple[ReadTurn, Candidate]]) -> Iterator[Event]:
    for turn, candidate in candidates:
        for event in observed_events(_Committed(reader), turn.queued, [candidate]):
            # A derived event's key comes from the turn and the kind, which candidates of one turn share.
            yield msgspec.structs.replace(event, key=delivery_key(event.at))


def _failed_call(
    call: JobCall,
    request: ModelRequest,
    why: str,
    *,
    spent: bool = False,
    tokens: int = 0,
    bad: bool = False,
    wait_s: float = 0.0,
) -> Event:
    # Only a turn asked about alone is known to be the bad one.
    given_up = bad and len(request.turns) == 1 and request.bad + 1 >= 2 * BAD_ANSWERS
    # `next_at` is the later of what the endpoint requests and our own backoff.
    ended = ModelCallEnded(
        ok=False, error=why[:300], tokens=request.tokens if spent else tokens, bad=bad, given_up=given_up,
        next_at=call.now + int(max(wait_s, delay_s(request.failures + 1)) * 1000),
    )  # fmt: skip
    return _call_ended(call, request, ended)


def _call_ended(call: JobCall, request: ModelRequest, ended: ModelCallEnded) -> Event:
    # The queue continues after the last of these turns.
    whole = msgspec.structs.replace(ended, id=request.id, turns=len(request.turns), until=max(request.turns))
    return own_event(whole, call.now, project=request.project)
