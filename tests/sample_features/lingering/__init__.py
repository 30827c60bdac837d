"""A room whose job would run for ever, with a child of its own: whoever ends the daemon must end both."""

from holdfast.core.event import Event
from holdfast.core.feature import Feature, JobCall, State
from holdfast.core.job import Job

SCRIPT = 'sleep 1000 & echo "$$ $!" > "$0.part"; mv "$0.part" "$0"; wait'


def enqueue(_state: State, event: Event, _settings: object) -> list[Job]:
    return [Job(kind="lingering.wait", payload={"file": event.session})] if event.kind == "turn.ended" else []


def wait(call: JobCall) -> list[Event]:
    call.run(["sh", "-c", SCRIPT, call.job.payload["file"]], timeout=900)
    return []


FEATURE = Feature(name="lingering", enqueue=enqueue, jobs={"lingering.wait": wait})
