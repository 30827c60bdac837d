"""Commands of the team: joining, leaving, and items of the feed."""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.core.event import Event, own_event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.kinds import Payload, team_events
from holdfast.core.kinds.memory_events import MemoryDropped, MemoryObserved
from holdfast.core.machine import machine_id
from holdfast.features.team.policy import FOLDER, LEASES_FILE, Markers
from holdfast.features.team.state import LOCAL_PROJECT, MEMBERSHIP, SHARED, THE_TEAM, Membership, SharedState
from holdfast.paths import private_folder, write_atomically

MOST_ITEMS = 200
MOST_PROJECTS = 500


class Item(msgspec.Struct, kw_only=True):
    """A feed item as the forwarder delivers it."""

    id: int
    kind: str
    at: int = 0
    by: str = ""
    project: str = ""
    payload: dict[str, Any] = {}


def join_team(call: Call) -> CommandResult:
    """Recorded once the server has accepted this machine."""
    # Not strict: values come from a command line.
    joined = msgspec.convert(dict(call.args), team_events.TeamJoined, strict=False)
    Markers.forget()
    return CommandResult((own_event(joined, call.now),), answer={"joined": joined.tenant})


def leave_team(call: Call) -> CommandResult:
    """Team rules no longer apply."""
    Markers.forget()
    return CommandResult((own_event(team_events.TeamLeft(), call.now),), answer={"left": True})


def record_local_projects(call: Call) -> CommandResult:
    """The identities of local projects, as the forwarder found them."""
    events = []
    for path, fields in list(dict(call.args.get("projects") or {}).items())[:MOST_PROJECTS]:
        project = msgspec.convert(fields, team_events.TeamProjectKnown)
        # The same identity again is the same event.
        events.append(own_event(project, call.now, project=str(path), once=f"{project.id}"))
    return CommandResult(tuple(events), answer={"known": len(events)})


def receive_feed_items(call: Call) -> CommandResult:
    """Turn feed items into events. A repeated item is the same event, under the same key."""
    items = msgspec.convert(list(call.args.get("items") or ())[:MOST_ITEMS], list[Item])
    tenant = (MEMBERSHIP.load(call.reader, THE_TEAM) or Membership()).tenant
    events = tuple(event for item in items for event in _events_of(item, tenant, call))
    # The marker file makes later tool calls check leases; without it they cost nothing.
    if any(isinstance(event.data, team_events.TeamLeaseHeld) and event.data.paths for event in events):
        write_atomically(private_folder(call.state_dir / FOLDER) / LEASES_FILE, b"Leases of the team are in force.\n")
        Markers.forget()
    return CommandResult(events, answer={"received": len(events)})


def _events_of(item: Item, tenant: str, call: Call) -> list[Event]:
    payload = _payload_of(item, call)
    if payload is None:
        return []
    # Item numbers are unique within one tenant only.
    project, once = _project_of(item, call), f"{tenant}/{item.id}"
    if isinstance(payload, team_events.TeamWordsWithdrawn):
        # A person here may have kept the memory; then it is theirs and stays.
        dropped = (MemoryDropped(id=f"team-{one}", repo=_repo_of(item, call)) for one in payload.memories)
        words = [own_event(one, call.now, project=project, once=f"{once}/{one.id}") for one in dropped]
        local = _shared_projects(call)
        return [
            *words,
            *(
                own_event(msgspec.structs.replace(payload, project_id=one), call.now, once=f"{once}/{one}")
                for one in local
            ),
        ]
    return [own_event(payload, call.now, project=project, once=once)]


def _shared_projects(call: Call) -> list[str]:
    """Ids of local projects; a number may belong to any of them."""
    return sorted({one.id for _, one in LOCAL_PROJECT.list(call.reader, limit=MOST_PROJECTS) if one.id})


def _payload_of(item: Item, call: Call) -> Payload | None:
    """None for a kind unknown to this version, from a newer server."""
    fields: Mapping[str, Any] = {**item.payload, "item": item.id, "by": item.by, "project_id": item.project}
    if item.kind == "memory":
        return _memory_of(item, _repo_of(item, call))
    if item.kind == "lease":
        fields = {**fields, "mine": item.payload.get("machine") == _team_machine(call)}
    if item.kind == "handover":
        fields = {**fields, "origin": item.payload.get("session", "")}
    kind = ITEM_KINDS.get(item.kind)
    return msgspec.convert(fields, kind, strict=False) if kind else None


ITEM_KINDS: Mapping[str, type[Payload]] = {
    "rule": team_events.TeamRuleArrived,
    "rule_withdrawn": team_events.TeamRuleWithdrawn,
    "lease": team_events.TeamLeaseHeld,
    "lease_ended": team_events.TeamLeaseEnded,
    "handover": team_events.TeamHandoverArrived,
    "revoked": team_events.TeamRevoked,
    "budget": team_events.TeamBudgetReached,
    "withdrawn": team_events.TeamWordsWithdrawn,
}


def _team_machine(call: Call) -> str:
    """The id under which this machine joined; differs from its own if the state folder was copied."""
    try:
        return (call.state_dir / FOLDER / "machine-id").read_text("ascii").strip() or machine_id()
    except (OSError, ValueError):
        return machine_id()


def _memory_of(item: Item, repo: str) -> MemoryObserved:
    """Foreign words: injected nowhere until a person here vouches for them."""
    words = item.payload
    detail = f"Shared by {words.get('words_of', '')}, promoted by {item.by}."
    return MemoryObserved(
        id=f"team-{words.get('id', item.id)}", type=str(words.get("type") or "fact"), text=str(words.get("text") or ""),
        detail=detail, origin="outside", repo=repo, status="candidate", words_of=str(words.get("words_of") or ""),
    )  # fmt: skip


def _project_of(item: Item, call: Call) -> str:
    """A local folder of that identity, if any."""
    if not item.project:
        return ""
    local_projects = LOCAL_PROJECT.list(call.reader, limit=MOST_PROJECTS)
    return next((key for key, one in local_projects if one.id == item.project), "")


def _repo_of(item: Item, call: Call) -> str:
    project = _project_of(item, call)
    return f"{project}/.git" if project else ""


def _held_leases(project: str, doc: SharedState, now: int) -> list[dict[str, Any]]:
    held = ((name, one) for name, one in doc.leases.items() if one.until > now)
    return [{"project": project, "name": name, **msgspec.to_builtins(one)} for name, one in held]


def show_status(call: Call) -> dict[str, Any]:
    membership = MEMBERSHIP.load(call.reader, THE_TEAM) or Membership()
    known = LOCAL_PROJECT.list(call.reader, limit=MOST_PROJECTS)
    projects = [{"path": key, "id": one.id, "remote": one.remote} for key, one in known]
    shared = [(one.id, SHARED.load(call.reader, one.id) or SharedState()) for _, one in known if one.id]
    return {
        **msgspec.to_builtins(membership),
        "projects": projects,
        "leases": [lease for id_, doc in shared for lease in _held_leases(id_, doc, call.now)],
        "handovers": [handover for id_, doc in shared for handover in _handovers(id_, doc)],
    }


def _handovers(project: str, doc: SharedState) -> list[dict[str, Any]]:
    return [{"project": project, **msgspec.to_builtins(one)} for one in doc.handovers]


COMMANDS = {"join": join_team, "leave": leave_team, "locate": record_local_projects, "receive": receive_feed_items}
VIEWS = {"status": show_status}
