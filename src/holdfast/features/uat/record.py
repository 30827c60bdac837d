"""One UAT run with its document, plan and events."""

from collections.abc import Iterator
from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.kinds.uat_events import HealthChecked, JudgedCheck, Plan
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.uat.state import NO_PLAN, PLANS, RUNS, Run

PAGE = 1_000
MOST_CALLS = 20_000
KINDS = ("uat.call_ended", "uat.asserted", "uat.checked", "uat.shot", "uat.problem")


class Record:
    """Lists in the order they happened, as the log has them."""

    def __init__(self, doc: Run, plan: Plan, events: Iterator[Event]) -> None:
        self.doc, self.plan = doc, plan
        self.calls: list[Event] = []
        self.asserted: list[Event] = []
        self.checks: list[tuple[Event, JudgedCheck | HealthChecked]] = []
        self.shots: list[Event] = []
        self.problems: list[dict[str, Any]] = []
        for event in events:
            # More calls than this say nothing more to a reader, and would fill the memory.
            if event.data.uat == doc.id and len(self.calls) < MOST_CALLS:
                self._add_event(event)

    def _add_event(self, event: Event) -> None:
        if event.kind == "uat.call_ended":
            self.calls.append(event)
            self.checks += [(event, check) for check in event.data.health]
            self._problems_of(event)
        elif event.kind == "uat.asserted":
            self.asserted.append(event)
        elif event.kind == "uat.checked":
            self.checks.append((event, event.data))
        elif event.kind == "uat.shot" and event.data.success:
            self.shots.append(event)
        elif event.kind == "uat.shot":
            self._note(event, "warning", "screenshot", event.data.problem)
        else:
            self._note(event, event.data.level or "warning", event.data.type, event.data.message)

    def _problems_of(self, event: Event) -> None:
        if not event.data.ok:
            self._note(event, "error", "tool", event.data.error or "failed")
        for page_problem in event.data.problems:
            self._note(event, "warning", page_problem.type, page_problem.message)

    def _note(self, event: Event, level: str, kind: str, message: Any) -> None:
        data = event.data
        entry = {"level": level, "type": kind, "message": message, "at": event.at, "step": data.step, "call": data.n}
        self.problems.append(entry)

    def errors(self) -> list[dict[str, Any]]:
        return [p for p in self.problems if p["level"] == "error"]

    def warnings(self) -> list[dict[str, Any]]:
        return [p for p in self.problems if p["level"] != "error"]


def load_record(reader: Reader, run: str) -> Record:
    doc = RUNS.load(reader, run)
    if doc is None:
        raise CommandRefused(f"there is no UAT run {run!r}", fix="See: holdfast uat list")
    return Record(doc, PLANS.load(reader, run) or NO_PLAN, events_of(reader, doc))


def events_of(reader: Reader, doc: Run) -> Iterator[Event]:
    """Up to the moment of the document, so that both say the same."""
    after, last = doc.first_seq - 1, doc.last_seq
    while True:
        query = EventQuery(session=doc.session, kinds=KINDS, after=after, before=last + 1, limit=PAGE)
        page = reader.events(query)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].seq
