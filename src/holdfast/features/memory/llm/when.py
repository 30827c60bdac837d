"""Which events set the model's jobs going. Pure."""

from collections.abc import Iterator

from holdfast.core.event import Event
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.feature import State
from holdfast.core.job import Job
from holdfast.features.memory.llm import meter, queue
from holdfast.features.memory.model import settings_or_default

BATCH, ASK = "memory.batch", "memory.ask"
LOOK_EVERY_S = 600.0


def enqueue(state: State, event: Event, given: AnySettings) -> Iterator[Job]:
    if event.kind == "memory.queued":
        wait = settings_or_default(given).model.wait_seconds
        yield Job(kind=BATCH, dedupe="queued", run_at=event.at + wait * 1000)
    elif event.kind == "memory.asked":
        doc = state.get(meter.KIND, meter.REF.key)
        if doc and event.get("id") in doc["open"]:
            yield Job(kind=ASK, dedupe=str(event.get("id")), payload={**event.data, "project": event.project})
    elif event.kind == "memory.answered":
        waiting = state.get(queue.KIND, queue.ref(event.project).key)
        if waiting and waiting["status"] == queue.WAITING:
            at = max(event.at, waiting["next_at"])
            # A name of its own: joined to one that is due earlier, it would find that it is too early, and be gone.
            yield Job(kind=BATCH, dedupe=f"again@{at}", run_at=at)
