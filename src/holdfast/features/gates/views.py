"""What people ask the gates: how it stands, what is asked for, why, and what other rules would have done."""

import time
from collections.abc import Callable
from typing import Any

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.ids import alias
from holdfast.core.ports import EventQuery, StateQuery
from holdfast.features.gates import asking, board
from holdfast.features.gates.attention import recent
from holdfast.features.gates.builtin import BUILT_IN, PRESETS
from holdfast.features.gates.check import Checker, Finding, Here, resolve, rests
from holdfast.features.gates.in_force import USER, differences
from holdfast.features.gates.model import GateSettings
from holdfast.features.gates.refs import EVERYWHERE, PAUSE, SHOWN
from holdfast.features.gates.rehearse import rehearse
from holdfast.features.gates.rules import Rule
from holdfast.features.gates.skills import missing_skills
from holdfast.features.gates.then import state_before
from holdfast.features.gates.triggers import triggered

LOOK_AHEAD = 200


def attention(call: Call) -> dict[str, Any]:
    """What a person should see: pauses, rules that wait, ways round a requirement, attempts. For `status` too."""
    state = asking.Stored(call.reader)
    lines = [f"gates are paused {_pause_text(doc)}" for doc in _pauses(call)]
    now = asking.settings(call)
    for scope, rules in ((USER, now.user), (call.project, now)):
        waiting = differences(state, scope, rules)
        lines += [f"the settings would loosen what is in force: {text}. Accept it with: holdfast gate accept" for text in waiting]
    lines += [one["text"] for one in recent(call.reader.state(SHOWN), call.now)]
    return {"lines": list(dict.fromkeys(lines))[:30]}


def _changed_tests(checker: Checker, settings: GateSettings) -> list[str]:
    found = {rule.name: checker.changed_tests(rule) for rule in settings.rules if checker.find(rule).ok}
    return [f"{name}: proven with tests that were changed before: {', '.join(files[:3])}" for name, files in found.items() if files]


def _pauses(call: Call) -> list[dict[str, Any]]:
    found = [doc for _, doc in call.reader.states(StateQuery(kind=PAUSE, limit=50))]
    return [doc for doc in found if rests(doc, call.now)]


def _pause_text(doc: dict[str, Any]) -> str:
    where = "in all projects" if doc["where"] == EVERYWHERE else f"in {doc['where']}"
    until = f"until {time.strftime('%H:%M', time.localtime(doc['until'] / 1000))}" if doc["until"] else "until resumed"
    return f"{where}, {until}" + (f" ({doc['why']})" if doc.get("why") else "")


def status(call: Call) -> dict[str, Any]:
    settings = asking.in_force(call)
    session = asking.whose(call, needed=False)
    checker = asking.checker(call, session)
    doc = checker.session if session else {}
    used = doc.get("triggered", {})
    return {
        "session": session, "agent": doc.get("agent", ""), "project": call.project, "branch": checker.here.branch,
        "paused": checker.paused(), "stops": doc.get("stops", 0), "refused": doc.get("refused", 0),
        "requirements": [_standing(checker, rule, used, settings) for rule in settings.rules],
        "sessions": [_live(sid, one) for sid, one in asking.live(call).items() if one["place"] == checker.here.place],
        "attention": [*attention(call)["lines"], *_changed_tests(checker, settings)],
        "notices": [*settings.notices, *(f"no skill named {s} was found" for s in checker.facts.get("missing", ()))],
    }  # fmt: skip


def _standing(checker: Checker, rule: Rule, used: dict[str, int], settings: GateSettings) -> dict[str, Any]:
    found = checker.find(rule)
    entry = checker.entry(rule) or {}
    return {**_shown(rule, settings), "ok": found.ok, "why": found.why, "triggered": rule.name in used,
            "until": entry.get("until", 0), "entry": entry, "facts": checker.facts_for(rule)}  # fmt: skip


def _shown(rule: Rule, settings: GateSettings) -> dict[str, Any]:
    at_stop = rule.asked_at_stop(settings.hooks.stop.verify_scopes)
    return {"name": rule.name, "type": rule.type, "scope": rule.scope, "resolve": resolve(rule),
            "at_tool": rule.at_tool, "at_stop": at_stop, "description": rule.spec.description}  # fmt: skip


def _live(sid: str, one: dict[str, Any]) -> dict[str, Any]:
    return {"id": sid, "alias": alias(sid), "agent": one["agent"], "branch": one["branch"], "active": one["active"]}


def listed(call: Call) -> dict[str, Any]:
    """Everything the settings name, and what could be switched on."""
    settings = asking.settings(call)
    on = [_shown(rule, settings) for rule in settings.rules]
    off = sorted(set(settings.requirements) - set(settings.by_name))
    return {"requirements": on, "disabled": off, "built_in": sorted(set(BUILT_IN) - set(settings.requirements)),
            "presets": {name: sorted(preset) for name, preset in PRESETS.items()}}  # fmt: skip


def presets(_call: Call) -> dict[str, Any]:
    return {"presets": PRESETS, "built_in": BUILT_IN}


def verify(call: Call) -> dict[str, Any]:
    """Would it all work? What is wrong with the settings, and skills that nobody has."""
    settings = asking.settings(call)
    problems = [*settings.notices]
    problems += [f"no skill named {skill} was found" for skill in missing_skills(settings, call.project)]
    return {"good": not problems, "requirements": len(settings.rules), "problems": problems}


def explain(call: Call) -> dict[str, Any]:
    """Why a call was refused or allowed: what was said then, and how each rule of today sees what was known then."""
    event = _asked_about(call)
    made = _answer_to(call, event)
    settings = asking.settings(call)
    found = _as_then(call, event, settings)
    said = made.data if made else {}
    return {
        "seq": event.seq, "at": event.at, "kind": event.kind, "session": event.session, "tool": event.tool,
        "what": event.data.get("command") or event.data.get("paths") or event.data.get("message", ""),
        "verdict": said.get("verdict", "allow"), "reasons": said.get("reasons", []), "notices": said.get("notices", []),
        "recorded": [detail for detail in said.get("details", ()) if "gate" in detail],
        "requirements": found,
    }  # fmt: skip


def _asked_about(call: Call) -> Event:
    event = call.reader.event(int(call.args["seq"]))
    if event and event.kind == "decision.made":
        event = call.reader.event(int(event.data["of"]))
    if not event:
        raise CommandRefused(f"there is no event {call.args['seq']}")
    return event


def _answer_to(call: Call, event: Event) -> Event | None:
    query = EventQuery(session=event.session, kinds=("decision.made",), after=event.seq, limit=LOOK_AHEAD)
    return next((one for one in call.reader.events(query) if one.data.get("of") == event.seq), None)


def _as_then(call: Call, event: Event, settings: GateSettings) -> list[dict[str, Any]]:
    state = state_before(call.reader, event)
    checker = Checker(state, Here.of(event))
    about = {rule.name for rule in triggered(settings, event)} if event.kind.startswith("tool.") else set()
    return [
        {**_shown(rule, settings), **_seen(checker.find(rule)), "about": rule.name in about} for rule in settings.rules
    ]


def _seen(found: Finding) -> dict[str, Any]:
    return {"ok": found.ok, "why": found.why}


def replay(call: Call) -> dict[str, Any]:
    given = call.args.get("settings")
    settings = GateSettings.of(given) if given is not None else asking.settings(call)
    since = call.now - int(call.args.get("seconds") or 0) * 1000 if call.args.get("seconds") else 0
    began = time.perf_counter()
    told = rehearse(call.reader, settings, since=since, project="" if call.args.get("everywhere") else call.project)
    return {**told, "rules": [rule.name for rule in settings.rules], "seconds": time.perf_counter() - began}


VIEWS: dict[str, Callable[[Call], Any]] = {
    "attention": attention,
    "status": status,
    "list": listed,
    "presets": presets,
    "verify": verify,
    "explain": explain,
    "replay": replay,
    "places": board.places,
    "refused": board.refused,
}
