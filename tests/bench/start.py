"""The first prompt of a session: are the files of its first 20 calls foreseen, and are plans linked (real sessions)?"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import perf_counter_ns

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload
from holdfast.core.text import estimate_tokens
from holdfast.features.memory.policy.earlier_work import ABOUT_FILES, LikelyFiles, plan_session
from holdfast.features.memory.state import session_state
from holdfast.features.memory.state.documents import MemorySession
from holdfast.features.memory.state.reducer import MOST_RECENT
from tests.bench import real_sessions
from tests.bench.figures import fact, figure, heading, p50, p99

FIRST_CALLS = 20
PLAN = "implement the following plan"


class Start(msgspec.Struct):
    """`needed`: files of the first calls that the prompt does not name."""

    repository: str
    prompt: Event
    branch: str
    earlier: list[MemorySession]
    needed: set[str]


def main() -> None:
    heading("start: files of the first 20 calls that the prompt does not name, by what was recorded before")
    if not real_sessions.needs_data():
        return
    starts = [start for name, sessions in real_sessions.repositories().items() for start in _starts(name, sessions)]
    asked = [start for start in starts if start.needed and start.earlier]
    fact("sessions with earlier ones and unnamed files", str(len(asked)))
    touched = {depth: _hits(asked, _most_touched, depth) for depth in (3, 10)}
    for depth, target in ((3, 0.45), (10, 0.67)):
        figure(f"hit@{depth}", _hits(asked, _foreseen, depth), target, unit="", more_is_better=True,
               note=f"most touched: {touched[depth]:.2f}")  # fmt: skip
    by_repository = Counter(start.repository for start in asked)
    for name, count in by_repository.most_common(6):
        own = [start for start in asked if start.repository == name]
        fact(f"hit@3, hit@10 of {name} ({count})", f"{_hits(own, _foreseen, 3):.2f} {_hits(own, _foreseen, 10):.2f}")
    told = [estimate_tokens("\n- ".join([ABOUT_FILES, *_foreseen(start, 5)])) for start in asked]
    figure("tokens of the list, median", median(told), 120, unit="")
    took = [_timed(start) / 1e6 for start in asked]
    figure("finding them, p50", p50(took), 10, unit="ms", note=f"p99 {p99(took):.1f} ms")
    _plans(starts)


def _starts(name: str, sessions: Sequence[real_sessions.RealSession]) -> Iterator[Start]:
    """In the order of time over all sessions, as the daemon sees them; those that prompted last are known."""
    docs: dict[str, MemorySession] = {}
    of_session: dict[str, list[Event]] = defaultdict(list)
    for event in sorted((one for session in sessions for one in session.events), key=lambda one: one.at):
        of_session[event.session].append(event)
    for event in sorted((one for events in of_session.values() for one in events), key=lambda one: one.at):
        doc = session_state.reduce(docs.get(event.session), event)
        if doc is None:
            continue
        if _is_typed(event):
            earlier = [one for one in docs.values() if one.id != doc.id and one.prompts]
            docs.pop(event.session, None)  # Added again, so that the last is the one that prompted last.
            if doc.prompts == 1:
                needed = _needed(of_session[event.session], event)
                yield Start(name, event, event.data.branch, earlier[-MOST_RECENT:], needed)
        docs[event.session] = doc


def _is_typed(event: Event) -> bool:
    return event.kind == "prompt.submitted" and not event.data.synthetic and not event.data.lane


def _needed(events: Sequence[Event], prompt: Event) -> set[str]:
    calls = [one for one in events if isinstance(one.data, ToolEndPayload) and not one.data.lane][:FIRST_CALLS]
    worked = [one for one in calls if one.kind == "tool.finished" and one.data.action in ("read", "edit")]
    names = {session_state.file_name(path, one.project) for one in worked for path in one.data.paths[:5]}
    return {name for name in names if name and name.rpartition("/")[2] not in prompt.data.prompt}


def _hits(starts: Sequence[Start], find: Callable[[Start, int], list[str]], depth: int) -> float:
    return sum(bool(start.needed.intersection(find(start, depth))) for start in starts) / len(starts)


def _foreseen(start: Start, depth: int) -> list[str]:
    return LikelyFiles(start.prompt.data.prompt, start.prompt.at, start.branch, start.earlier).best(depth)


def _most_touched(start: Start, depth: int) -> list[str]:
    uses: Counter[str] = Counter()
    for doc in start.earlier:
        uses.update(doc.files)
    return [name for name, _ in uses.most_common(depth)]


def _timed(start: Start) -> int:
    began = perf_counter_ns()
    _foreseen(start, 5)
    return perf_counter_ns() - began


def _plans(starts: Sequence[Start]) -> None:
    heading("start: prompts that hand over a plan, linked to the session that made it")
    given = [start for start in starts if PLAN in start.prompt.data.prompt[:100].lower()]
    made = [(start, maker) for start in given if (maker := _maker(start))]
    fact("such first prompts; with their plan's session in the data", f"{len(given)}; {len(made)}")
    linked = sum((found := plan_session(start.earlier, start.prompt.data.prompt)) is not None and found.id == maker
                 for start, maker in made)  # fmt: skip
    if made:
        figure("linked", linked / len(made), 0.95, unit="", more_is_better=True)
    wrong = sum(plan_session(start.earlier, start.prompt.data.prompt) is not None for start in given) - linked
    fact("linked without that session in the data (wrong)", str(wrong))


def _maker(start: Start) -> str:
    """Read from the transcripts, independently of what memory keeps: who showed or wrote a text with this title."""
    title = next((line.strip() for line in start.prompt.data.prompt.split("\n") if line.startswith("# ")), "")
    known = {one.id for one in start.earlier}
    named = [one for one in known if f"{one}.jsonl" in start.prompt.data.prompt]
    makers = [one.session for one in _plan_texts(start.repository) if title and title in str(one.data.input)]
    return next(iter(named or [one for one in reversed(makers) if one in known]), "")


def _plan_texts(repository: str) -> Iterator[Event]:
    for session in real_sessions.repositories()[repository]:
        for event in session.events:
            if event.kind == "tool.started" and (
                event.data.action == "plan" or any("/plans/" in p for p in event.data.paths)
            ):
                yield event
