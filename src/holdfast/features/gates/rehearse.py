"""A rule set over what was recorded: what would it have refused? Pure rules make that a loop (decision 6)."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.core.decision import Decision
from holdfast.core.event import Event
from holdfast.core.ports import Doc, EventQuery, Reader, Ref
from holdfast.features.gates.decide import STEPS as DECIDED
from holdfast.features.gates.decide import decide
from holdfast.features.gates.derive import REVIEWING, derive
from holdfast.features.gates.derive import STEPS as FOLLOWED
from holdfast.features.gates.model import GateSettings
from holdfast.features.gates.reduce import reduce
from holdfast.features.gates.refs import LEAVE_FACTS, LIFE, TOOLS, UAT, keys

KINDS = tuple(sorted(LIFE | TOOLS | UAT | {"tool.started", "prompt.expanded", "gates.measured"}))
"""What the rules look at. What the gates themselves said back then is left out: these rules speak for themselves."""
CALLS = TOOLS | {"tool.started"}
BY_HAND = frozenset({"gates.satisfied", "gates.approved", "gates.cleared"})
JUDGED = frozenset({"tool.started", "turn.ended"})
PAGE = 2_000
MOST_CASES = 500


class Rehearsal:
    """The engine's loop with documents in memory."""

    def __init__(self, settings: GateSettings) -> None:
        self.settings = settings
        self.docs: dict[tuple[str, str], Doc] = {}

    def get(self, kind: str, key: str) -> Doc | None:
        return self.docs.get((kind, key))

    def take(self, event: Event) -> Decision | None:
        if event.kind in CALLS and self._of_no_concern(event):
            return None
        self._reduce(event)
        if event.kind in FOLLOWED or event.kind in REVIEWING:
            for made in derive(self, event, self.settings):
                self._reduce(msgspec.structs.replace(made, seq=event.seq))
        if event.kind not in DECIDED:
            return None
        decision = decide(self, event, self.settings)
        if decision is not None and decision.details:
            self._reduce(made_of(event, decision))
        return decision

    def _of_no_concern(self, event: Event) -> bool:
        """Most calls of most sessions only look; they leave no fact and no rule asks about them."""
        return event.data.get("action") not in LEAVE_FACTS and not self.settings.index.of(event)

    def _reduce(self, event: Event) -> None:
        for ref in keys(event):
            self._put(ref, event)

    def _put(self, ref: Ref, event: Event) -> None:
        at = (ref.kind, ref.key)
        try:
            after = reduce(self.docs.get(at), event, ref)
        except Exception:  # The engine leaves the document alone too.
            return
        if after is not None:
            self.docs[at] = after


def made_of(event: Event, decision: Decision) -> Event:
    data = {"of": event.seq, "of_kind": event.kind, "verdict": decision.verdict, "details": list(decision.details)}
    return Event(key="", kind="decision.made", at=event.at, seq=event.seq, session=event.session,
                 project=event.project, data=data)  # fmt: skip


def rehearse(reader: Reader, settings: GateSettings, *, since: int = 0, project: str = "") -> dict[str, Any]:
    """Cases in full up to a limit, counts of all. A session is judged whole only if it began inside that time."""
    stage = Rehearsal(settings)
    seen, refused, cases = Counter[str](), Counter[str](), list[dict[str, Any]]()
    for event in recorded(reader, since, project):
        decision = stage.take(event)
        if event.kind in JUDGED:
            seen[event.kind] += 1
            if decision is not None and decision.verdict == "deny":
                refused[event.kind] += 1
                if len(cases) < MOST_CASES:
                    cases.append(_case(event, decision))
    return {
        "events": _count(reader), "calls": seen["tool.started"], "stops": seen["turn.ended"],
        "refused_calls": refused["tool.started"], "refused_stops": refused["turn.ended"], "cases": cases,
    }  # fmt: skip


def recorded(reader: Reader, since: int, project: str) -> Iterator[Event]:
    after = 0
    while page := _page(reader, after, since, project):
        yield from (event for event in page if event.kind not in BY_HAND or _by_hand(event))
        after = page[-1].seq


def _page(reader: Reader, after: int, since: int, project: str) -> list[Event]:
    wanted = EventQuery(kinds=(*KINDS, *BY_HAND), after=after, since=since, project=project, limit=PAGE)
    return reader.events(wanted)


def _by_hand(event: Event) -> bool:
    """What people did holds under any rules; what followed from the rules of then does not."""
    return event.data.get("method") in ("person", "agent")


def _count(reader: Reader) -> int:
    return reader.head()


def _case(event: Event, decision: Decision) -> dict[str, Any]:
    what = event.data.get("command") or ", ".join(event.data.get("paths") or ()) or event.data.get("message", "")
    names = [one["name"] for detail in decision.details for one in detail.get("requirements", ())]
    return {"seq": event.seq, "at": event.at, "session": event.session, "kind": event.kind, "tool": event.tool,
            "what": str(what)[:200], "requirements": names, "reason": "\n".join(decision.reasons)}  # fmt: skip
