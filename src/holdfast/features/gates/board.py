"""The gates of all places at once: where somebody works or worked lately, and what was refused lately."""

from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ids import alias
from holdfast.core.ports import EventQuery, Ref, StateQuery
from holdfast.features.gates import asking
from holdfast.features.gates.check import rests
from holdfast.features.gates.refs import BRANCH, EVERYWHERE, PAUSE

MOST_PLACES = 30
LOOKED_THROUGH = 500
LATELY = 20_000
"""Events: further back nobody looks for what was refused lately, however rare refusals are."""
MOST_REFUSALS = 100


def places(call: Call) -> dict[str, Any]:
    """Each branch with the sessions that live on it; places with a live session first, then the latest."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for sid, one in sorted(asking.live(call).items(), key=lambda item: -item[1]["active"]):
        place = found.setdefault((one["place"], one["branch"]), _place(call, one, one["active"]))
        known = {
            "id": sid,
            "alias": alias(sid),
            "agent": one["agent"],
            "active": one["active"],
            "started": one["started"],
        }
        place["sessions"].append(known)
    for _, doc in call.reader.states(StateQuery(kind=BRANCH, limit=MOST_PLACES)):
        if doc.get("status") != "pruned":
            found.setdefault((doc["place"], doc["branch"]), _place(call, doc, doc["at"]))
    wanted = str(call.args.get("project") or "")
    shown = [place for place in found.values() if not wanted or place["project"] == wanted]
    return {"places": shown[:MOST_PLACES], "everywhere": _pause(call, EVERYWHERE), "now": call.now}


def _place(call: Call, of: dict[str, Any], at: int) -> dict[str, Any]:
    return {"project": of["project"], "repo": of["place"], "branch": of["branch"], "at": at, "sessions": [],
            "pause": _pause(call, of["place"])}  # fmt: skip


def _pause(call: Call, where: str) -> dict[str, Any] | None:
    doc = call.reader.state(Ref(PAUSE, where))
    return {"until": doc["until"], "why": doc.get("why", "")} if doc and rests(doc, call.now) else None


def refused(call: Call) -> dict[str, Any]:
    """The latest refusals, newest first: what was to be done, which requirements were open, and why."""
    limit = max(1, min(int(call.args.get("limit") or 20), MOST_REFUSALS))
    query = EventQuery(
        kinds=("decision.made",), project=str(call.args.get("project") or ""), limit=LOOKED_THROUGH, newest=True,
        after=max(0, call.reader.head() - LATELY),
    )  # fmt: skip
    denials = [event for event in reversed(call.reader.events(query)) if event.data.get("verdict") == "deny"]
    return {"refused": [_refusal(call, event) for event in denials[:limit]], "now": call.now}


def _refusal(call: Call, event: Event) -> dict[str, Any]:
    asked = call.reader.event(int(event.data.get("of") or 0))
    data = asked.data if asked else {}
    details = [one for one in event.data.get("details") or () if one.get("gate")]
    return {
        "seq": event.seq, "of": event.data.get("of"), "at": event.at, "session": event.session, "agent": event.agent,
        "project": event.project, "branch": event.data.get("branch", ""), "kind": event.data.get("of_kind", ""),
        "tool": event.tool, "reasons": event.data.get("reasons") or [],
        "what": data.get("command") or ", ".join(data.get("paths") or ()) or data.get("message") or "",
        "open": [one for detail in details for one in detail.get("requirements") or ()],
    }  # fmt: skip
