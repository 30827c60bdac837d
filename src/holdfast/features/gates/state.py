"""The documents of the gates and how events change them: who is satisfied, what a session did, who is alive, what a person should see."""

from collections.abc import Callable
from typing import Any

from holdfast.core.bounded import mapped, with_newest, without
from holdfast.core.event import Event
from holdfast.core.ids import alias
from holdfast.core.ports import Doc, Ref
from holdfast.features.gates.events import (
    ATTENTION,
    BRANCH,
    CHECK,
    FACTS,
    LIVE,
    PAUSE,
    RULES,
    SESSION,
    SESSION_OVER,
    TOOLS,
    UAT,
    place,
)
from holdfast.features.gates.evidence import with_check, with_look, with_measure, with_tool, with_uat

MOST_REQUIREMENTS, MOST_SESSIONS = 100, 100
SHARED = frozenset({"branch", "permanent"})
BranchEntry = dict[str, Any]


def reduce_branch(doc: Doc | None, event: Event) -> Doc | None:
    doc = doc or _new_branch(event)
    if event.kind == "gates.cleared":
        return _clear_entries(doc, event)
    if event.kind == "gates.pruned":
        return {**doc, "requirements": {}, "status": "pruned", "at": event.at}
    if event.kind in SESSION_OVER:
        return _mark_ended(doc, event)
    requirements = doc["requirements"]
    for one in event.data.get("requirements") or ():
        requirements = _with_requirement(requirements, one, event)
    return {**doc, "requirements": requirements, "status": "", "at": event.at, "project": event.project}


def _new_branch(event: Event) -> Doc:
    repo, branch = event.data.get("repo") or "", event.data.get("branch") or ""
    return {"place": place(event), "repo": repo, "branch": branch, "project": event.project, "created": event.at,
            "requirements": {}}  # fmt: skip


def _with_requirement(requirements: dict[str, Any], one: dict[str, Any], event: Event) -> dict[str, Any]:
    name, scope = str(one["name"]), one.get("scope", "session")
    known = requirements.get(name) or {"sessions": {}}
    entry = _new_entry(one, event)
    if scope in SHARED or event.data.get("everyone") or not event.session:
        known = {**known, "scope": scope, "all": entry}
    else:
        sessions = with_newest(known["sessions"], event.session, entry, MOST_SESSIONS)
        known = {**known, "scope": scope, "sessions": sessions}
    return with_newest(requirements, name, known, MOST_REQUIREMENTS)


def _new_entry(one: dict[str, Any], event: Event) -> BranchEntry:
    entry: BranchEntry = {"at": event.at, "seq": event.seq, "by": event.data.get("method", "")}
    if until := one.get("until"):
        entry["until"] = until
    if event.kind == "gates.approved":
        entry["approved"] = True
    if meta := event.data.get("metadata"):
        entry["metadata"] = meta
    return entry


def _clear_entries(doc: Doc, event: Event) -> Doc:
    """Only the session's own entry (D7), unless everybody's is asked for."""
    named = {str(name) for name in event.data.get("requirements") or ()}
    everyone = bool(event.data.get("everyone"))

    def cut(known: dict[str, Any]) -> dict[str, Any]:
        if everyone:
            return {"scope": known.get("scope", "session"), "sessions": {}}
        return {**known, "sessions": without(known["sessions"], [event.session])}

    requirements = {name: cut(known) if name in named else known for name, known in doc["requirements"].items()}
    return {**doc, "requirements": requirements, "at": event.at}


def _mark_ended(doc: Doc, event: Event) -> Doc | None:
    """When the session ended is what `carry_over` counts from."""
    if not any(event.session in known["sessions"] for known in doc["requirements"].values()):
        return None

    def mark(known: dict[str, Any]) -> dict[str, Any]:
        mine = known["sessions"].get(event.session)
        if mine is None:
            return known
        return {**known, "sessions": {**known["sessions"], event.session: {**mine, "ended": event.at}}}

    return {**doc, "requirements": mapped(doc["requirements"], mark)}


def own_entry(doc: Doc | None, name: str, session: str, now: int) -> BranchEntry | None:
    known = (doc or {}).get("requirements", {}).get(name)
    entry = known["sessions"].get(session) if known else None
    return entry if _counts(entry, now) else None


def _counts(entry: BranchEntry | None, now: int) -> bool:
    return bool(entry) and not (entry.get("until") and entry["until"] <= now)  # type: ignore[union-attr, index]


def entry_for(doc: Doc | None, name: str, session: str, now: int) -> BranchEntry | None:
    """What counts for this session: its own entry, or the branch's. Expired ones do not (S2-15)."""
    known = (doc or {}).get("requirements", {}).get(name)
    if not known:
        return None
    entries: list[BranchEntry | None] = [known["sessions"].get(session), known.get("all")]
    return next((entry for entry in entries if _counts(entry, now)), None)


def recent_of_others(doc: Doc | None, name: str, session: str, since: int) -> tuple[str, BranchEntry] | None:
    """The newest entry of another session that was satisfied, or ended, since then (`carry_over`)."""
    known = (doc or {}).get("requirements", {}).get(name)
    found = [
        (max(entry["at"], entry.get("ended", 0)), sid, entry)
        for sid, entry in (known["sessions"].items() if known else ())
        if sid != session and not entry.get("approved") and entry["by"] != "carry_over"
    ]
    at, sid, entry = max(found, default=(0, "", {}), key=lambda one: one[:2])
    return (sid, entry) if at and at >= since else None


MOST_LIVE = 200


def reduce_registry(doc: Doc | None, event: Event) -> Doc | None:
    if event.data.get("claimed"):
        return None
    sessions = (doc or {}).get("sessions", {})
    if event.kind in SESSION_OVER:
        return {"sessions": without(sessions, [event.session]), "at": event.at} if event.session in sessions else None
    known = sessions.get(event.session) or {"started": event.at}
    entry = {**known, "agent": event.agent, "active": event.at, "project": event.project, "place": place(event),
             "branch": event.data.get("branch", "")}  # fmt: skip
    entry |= {name: event.data[name] for name in ("pid", "pid_start") if event.data.get(name)}
    if event.session in sessions or len(sessions) < MOST_LIVE:
        return {"sessions": {**sessions, event.session: entry}, "at": event.at}
    return {"sessions": with_newest(sessions, event.session, entry, MOST_LIVE), "at": event.at}


def other_sessions(doc: Doc | None, session: str, project: str) -> list[str]:
    """Other live sessions in this very checkout."""
    live = (doc or {}).get("sessions", {})
    return [sid for sid, one in live.items() if sid != session and one.get("project") == project]


MOST_TRIGGERED, MOST_TOLD, MOST_CALLS = 100, 40, 20
MARGIN_MS = 100


def no_session(event: Event) -> Doc:
    return {
        "session": event.session, "agent": event.agent, "project": event.project, "status": "live", "started": event.at,
        "at": event.at, "place": place(event), "branch": event.data.get("branch", ""), "triggered": {}, "stops": 0,
        "stop_names": [], "refused": 0, "satisfied": 0,
    }  # fmt: skip


def reduce_session(doc: Doc | None, event: Event) -> Doc | None:
    if event.data.get("claimed"):
        return None  # An agent's own word about its session changes nothing.
    doc = doc or no_session(event)
    return _with_content(SESSION_STEPS.get(event.kind, _seen)(doc, event), event)


def _with_content(doc: Doc, event: Event) -> Doc:
    """What the worktree held at the beginning, and when it was last looked at."""
    content = event.data.get("content")
    if not content or event.data.get("claimed"):
        return doc
    began = doc.get("began") or {}
    # A first look after an edit is no baseline: then the session is asked for what it did.
    if not doc.get("triggered") and any(key not in began for key in content):
        doc = {**doc, "began": {**content, **began}}
    before = doc.get("content") or {}
    return {**doc, "content": {**before, **content}, "content_before": before}


def _call_started(doc: Doc, event: Event) -> Doc:
    """While a call is open a file may change because of it."""
    if event.data.get("claimed"):
        return doc
    calls = with_newest(doc.get("calls") or {}, str(event.data.get("call") or event.seq), [event.at, 0], MOST_CALLS)
    refs = event.data.get("refs")
    return {**doc, "calls": calls, "at": event.at, **({"refs": refs} if refs else {})}


def _undelivered(doc: Doc, event: Event) -> Doc:
    """A refusal that did not arrive: the call runs after all. One that the hook refused by itself never ran."""
    call = str(event.data.get("call") or "")
    if event.data.get("instead") == "deny":
        return {**doc, "calls": without(doc.get("calls") or {}, [call])}
    if not call or event.data.get("verdict") != "deny":
        return doc
    return {**doc, "calls": with_newest(doc.get("calls") or {}, call, [event.at, 0], MOST_CALLS)}


def _call_ended(doc: Doc, event: Event) -> Doc:
    calls = doc.get("calls") or {}
    call = str(event.data.get("call") or "")
    if event.data.get("claimed") or call not in calls:
        return doc
    return {**doc, "calls": {**calls, call: [calls[call][0], event.at]}, "at": event.at}


def _bypassed(doc: Doc, event: Event) -> Doc:
    told = {
        "what": event.data.get("what", ""),
        "requirements": list(event.data.get("requirements") or ()),
        "seq": event.seq,
    }
    return {**doc, "bypassed": [*(doc.get("bypassed") or ()), told][-MOST_TOLD:], "at": event.at}


def _pointed_out(doc: Doc, _detail: dict[str, Any], _event: Event) -> Doc:
    return {**doc, "bypassed": []}


def was_busy(doc: Doc | None, at: int) -> bool:
    """Whether a tool call of this session was running then."""
    calls = ((doc or {}).get("calls") or {}).values()
    return any(began - MARGIN_MS <= at and (not ended or at <= ended + MARGIN_MS) for began, ended in calls)


def is_busy(doc: Doc | None) -> bool:
    return any(not ended for _, ended in ((doc or {}).get("calls") or {}).values())


def _seen(doc: Doc, event: Event) -> Doc:
    where = {"place": place(event), "branch": event.data.get("branch", ""), "project": event.project}
    status = "ended" if event.kind in SESSION_OVER else "live"
    return {**doc, **(where if event.project else {}), "status": status, "at": event.at}


def _prompted(doc: Doc, event: Event) -> Doc:
    """A person spoke: what was refused before is a new matter."""
    doc = _without_open_calls(_seen(doc, event), event.at)
    return doc if event.data.get("synthetic") else {**doc, "stops": 0, "stop_names": []}


def _turned(doc: Doc, event: Event) -> Doc:
    """Refusals are in a row only if the turn before this one was refused (or let go) too."""
    in_a_row = doc.get("held") is not None and doc.get("held") == doc.get("turn")
    fresh = {} if in_a_row else {"stops": 0, "stop_names": []}
    return {**_without_open_calls(_seen(doc, event), event.at), **fresh, "turn": event.seq}


def _triggered(doc: Doc, event: Event) -> Doc:
    known = doc["triggered"]
    for name in event.data.get("requirements") or ():
        known = with_newest(known, str(name), event.at, MOST_TRIGGERED)
    return {**doc, "triggered": known, "at": event.at}


def _satisfied(doc: Doc, event: Event) -> Doc:
    return {**doc, "satisfied": doc["satisfied"] + len(event.data.get("requirements") or ()), "at": event.at}


def _cleared(doc: Doc, event: Event) -> Doc:
    """A fact that was used for one action is no proof for the next one."""
    if event.data.get("method") != "used":
        return {**doc, "at": event.at}
    used = doc.get("used") or {}
    for name in event.data.get("requirements") or ():
        used = with_newest(used, str(name), event.seq, MOST_TRIGGERED)
    return {**doc, "used": used, "at": event.at}


def _without_open_calls(doc: Doc, at: int) -> Doc:
    """When a turn is over no call runs any more."""
    calls = doc.get("calls") or {}
    return {**doc, "calls": {call: [began, end or at] for call, (began, end) in calls.items()}} if calls else doc


def _decided(doc: Doc, event: Event) -> Doc:
    if event.data.get("verdict") == "deny" and event.data.get("call"):
        doc = {**doc, "calls": without(doc.get("calls") or {}, [str(event.data["call"])])}  # it never ran
    for detail in event.data.get("details") or ():
        if step := DECISION_STEPS.get(detail.get("gate")):
            doc = step(doc, detail, event)
    return doc


def _refused(doc: Doc, detail: dict[str, Any], event: Event) -> Doc:
    return {**doc, "refused": doc["refused"] + 1, "denied": {"at": event.at, "names": _names(detail)}}


def _held(doc: Doc, detail: dict[str, Any], event: Event) -> Doc:
    """Progress is that something refused before is not refused now; a tool that ran is none (H2)."""
    names = _names(detail)
    progress = bool(set(doc["stop_names"]) - set(names))
    stops = 1 if progress else doc["stops"] + 1
    return {**doc, "refused": doc["refused"] + 1, "stops": stops, "stop_names": names, "held": event.data.get("of")}


def _let_go(doc: Doc, _detail: dict[str, Any], event: Event) -> Doc:
    return {**doc, "let_go": event.at, "held": event.data.get("of")}


def _warned(doc: Doc, detail: dict[str, Any], _event: Event) -> Doc:
    warned = with_newest(doc.get("warned") or {}, str(detail.get("name")), detail.get("lines", 0), MOST_TRIGGERED)
    return {**doc, "warned": warned}


def _told(doc: Doc, detail: dict[str, Any], _event: Event) -> Doc:
    return {**doc, "told": [*doc.get("told", ()), *(detail.get("digests") or ())][-MOST_TOLD:]}


def _names(detail: dict[str, Any]) -> list[str]:
    return sorted(str(one.get("name")) for one in detail.get("requirements") or ())


SESSION_STEPS = {
    "tool.started": _call_started,
    "tool.finished": _call_ended,
    "tool.failed": _call_ended,
    "gates.bypassed": _bypassed,
    "answer.undelivered": _undelivered,
    "prompt.submitted": _prompted,
    "turn.ended": _turned,
    "gates.triggered": _triggered,
    "gates.satisfied": _satisfied,
    "gates.approved": _satisfied,
    "gates.cleared": _cleared,
    "decision.made": _decided,
}
DECISION_STEPS = {
    "refused": _refused,
    "stop": _held,
    "let_go": _let_go,
    "warned": _warned,
    "told": _told,
    "bypass": _pointed_out,
}


MOST_SHOWN = 60
DAY_MS = 86_400_000
Shown = dict[str, Any]


def reduce_rules(doc: Doc | None, event: Event) -> Doc:
    """The rules in force of one project, or (under the empty name) of the user's own files."""
    data = event.data
    if event.kind == "gates.rules_accepted":
        return {"scope": data.get("scope", ""), "digest": data.get("digest", ""), "rules": data.get("rules") or {},
                "by": data.get("by", ""), "at": event.at}  # fmt: skip
    waiting = {"digest": data.get("digest", ""), "differences": list(data.get("differences") or ()), "at": event.at}
    return {
        **(doc or {"scope": data.get("scope", ""), "digest": "", "rules": {}, "by": "", "at": event.at}),
        "waiting": waiting,
    }


def reduce_attention(doc: Doc | None, event: Event) -> Doc | None:
    doc = doc or {"entries": [], "at": event.at}
    shown = ATTENTION_TEXTS[event.kind](event) if event.kind in ATTENTION_TEXTS else ""
    if event.kind == "daemon.stopped":
        return {**doc, "stopped": True, "at": event.at}
    if event.kind == "daemon.started":
        killed = doc.get("running") and not doc.get("stopped")
        shown = "Holdfast's daemon was ended from outside, without being stopped" if killed else ""
        doc = {**doc, "running": True, "stopped": False}
    if not shown:
        return doc if event.kind.startswith("daemon.") else None
    entry = {"at": event.at, "text": shown, "session": event.session, "project": event.project, "kind": event.kind}
    return {**doc, "entries": [*doc["entries"], entry][-MOST_SHOWN:], "at": event.at}


def recent_attention(doc: Doc | None, now: int) -> list[Shown]:
    """Of the last day, newest first, each text once."""
    entries = [one for one in (doc or {}).get("entries", ()) if now - one["at"] < DAY_MS]
    return list({one["text"]: one for one in entries}.values())[::-1]


def _bypassed_text(event: Event) -> str:
    return f"{', '.join(event.data.get('requirements') or ())}: {event.data.get('what', '')} (session {alias(event.session)})"


def _attempted_text(event: Event) -> str:
    return f"refused to an agent: {event.data.get('act', '')} ({event.data.get('why', '')})"


def _kept_text(event: Event) -> str:
    return "settings changed by an agent or unknown, and would loosen: " + "; ".join(
        event.data.get("differences") or ()
    )


def _accepted_text(event: Event) -> str:
    if event.data.get("by") != "files":
        return ""
    return "settings changed on disk, taken as yours: " + "; ".join(event.data.get("differences") or ())


def _approved_text(event: Event) -> str:
    if event.data.get("certain") is not False:
        return ""
    names = ", ".join(str(one.get("name")) for one in event.data.get("requirements") or ())
    return f"{names} approved without a terminal; if that was not you, see: holdfast events list"


def _satisfied_text(event: Event) -> str:
    if event.data.get("method") != "agent":
        return ""
    names = ", ".join(str(one.get("name")) for one in event.data.get("requirements") or ())
    return f"{names} satisfied by the agent's own word (session {alias(event.session)})"


def _undelivered_text(event: Event) -> str:
    if event.data.get("verdict") != "deny" and event.data.get("instead") != "deny":
        return ""
    what = f"{event.tool or 'the end of a turn'} in session {alias(event.session)}"
    if event.data.get("instead") == "deny":
        return f"not delivered: {what} was refused by the hook alone, the daemon could not be reached"
    return f"not delivered: a refusal of {what} did not reach the agent (event {event.data.get('of')})"


ATTENTION_TEXTS: dict[str, Callable[[Event], str]] = {
    "gates.bypassed": _bypassed_text,
    "gates.attempted": _attempted_text,
    "gates.rules_kept": _kept_text,
    "gates.rules_accepted": _accepted_text,
    "gates.approved": _approved_text,
    "gates.satisfied": _satisfied_text,
    "answer.undelivered": _undelivered_text,
}


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    return REDUCERS[ref.kind](doc, event)


def _reduce_facts(doc: Doc | None, event: Event) -> Doc | None:
    if event.kind in TOOLS:
        return with_tool(doc, event)
    if event.kind == CHECK:
        return with_check(doc, event)
    if event.kind in UAT:
        return with_uat(doc, event)
    return with_measure(doc, event) if event.kind == "gates.measured" else with_look(doc, event)


def _reduce_pause(_doc: Doc | None, event: Event) -> Doc:
    paused = event.kind == "gates.paused"
    until = event.data.get("until", 0) if paused else -1
    return {
        "where": event.data.get("where", ""), "status": "paused" if paused else "", "at": event.at, "until": until,
        "why": str(event.data.get("why", ""))[:500],
    }  # fmt: skip


REDUCERS = {
    BRANCH: reduce_branch,
    SESSION: reduce_session,
    FACTS: _reduce_facts,
    LIVE: reduce_registry,
    PAUSE: _reduce_pause,
    RULES: reduce_rules,
    ATTENTION: reduce_attention,
}
