"""Why a call was refused or let through: what was said then, and how each rule saw what was known then."""

from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.web.screen import Screen, Visit


def why_page(visit: Visit) -> dict[str, Any]:
    seq = visit.path["seq"]
    if not seq.isdecimal() or len(seq) > 15:
        raise CommandRefused(f"{seq[:40]!r} is no number of an event")
    event = visit.reader.event(int(seq))
    explanation = visit.view("gates.explain", of=event.project if event else "", seq=int(seq))
    return {"told": explanation, "event": event, "of_project": event.project if event else ""}


SCREEN = Screen(name="why", title="Why", path="/gates/why/{seq}", page=why_page)
