"""After a compaction: are exact commands used again, and what does recalling them cost (real sessions)?"""

from collections.abc import Iterator
from statistics import median

from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload
from holdfast.core.text import estimate_tokens
from holdfast.features.memory.policy.compaction import recall_text
from holdfast.features.memory.state import session_state
from holdfast.features.memory.state.documents import MemorySession
from tests.bench import real_sessions
from tests.bench.figures import fact, figure, heading

NEXT_CALLS = 60


def main() -> None:
    heading("compaction: exact commands of before that are used in the next 60 calls, and are recalled")
    if not real_sessions.needs_data():
        return
    found = [
        one for sessions in real_sessions.repositories().values() for s in sessions for one in _compactions(s.events)
    ]
    again = [(text, summary, used) for text, summary, used in found if used]
    every = sum(len(used) for *_, used in again)
    recalled = sum(one in text.split("\n  ") or one in summary for text, summary, used in again for one in used)
    fact("compactions; with a command used again", f"{len(found)}; {len(again)}")
    fact("commands used again", str(every))
    fact(
        "in the agent's own summary alone",
        f"{sum(one in summary for _, summary, used in again for one in used) / every:.2f}",
    )
    figure("commands recalled or in the summary", recalled / every, 0.85, unit="", more_is_better=True)
    sizes = [estimate_tokens(text) for text, *_ in found]
    figure("tokens, most", max(sizes), 600, unit="")
    fact("tokens, median", f"{median(sizes):.0f}")


def _compactions(events: list[Event]) -> Iterator[tuple[str, str, set[str]]]:
    """What is recalled, the agent's summary, and the commands of before that follow."""
    doc: MemorySession | None = None
    before: set[str] = set()
    for place, event in enumerate(events):
        doc = session_state.reduce(doc, event)
        if event.kind == "compact.ended" and doc:
            following = [one for one in events[place + 1 :] if _is_call(one)][:NEXT_CALLS]
            used = {command for one in following if (command := _command(one))} & before
            yield recall_text(doc), event.data.summary, used
        elif _is_call(event) and (command := _command(event)):
            before.add(command)


def _is_call(event: Event) -> bool:
    return isinstance(event.data, ToolEndPayload) and not event.data.lane


def _command(event: Event) -> str:
    return event.data.command.strip() if event.data.action == "shell" else ""
