"""Who asks, from where, and which session they mean: the same for every command and view."""

from dataclasses import dataclass
from typing import Any

from holdfast.core.caller import AgentProcess, Caller, judge_caller
from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.ids import alias
from holdfast.core.ports import Doc, Reader, Ref
from holdfast.features.gates.check import Checker, Here
from holdfast.features.gates.in_force import rules_in_force
from holdfast.features.gates.model import GateSettings
from holdfast.features.gates.refs import REGISTRY, SESSION
from holdfast.features.gates.rules import Rule
from holdfast.features.gates.sessions import is_busy


@dataclass(frozen=True)
class Stored:
    """The committed documents, in the shape that `decide` reads them."""

    reader: Reader

    def get(self, kind: str, key: str) -> Doc | None:
        return self.reader.state(Ref(kind, key))


def settings(call: Call) -> GateSettings:
    return call.settings or GateSettings()


def in_force(call: Call) -> GateSettings:
    """What decides here: the settings, with what they may not loosen by themselves."""
    return rules_in_force(Stored(call.reader), call.project, settings(call))


def caller(call: Call) -> Caller:
    """Who asks, by the processes above. Inside of our own process (tests, jobs) it is whoever the arguments say."""
    if not call.caller:
        return Caller("agent" if call.args.get("by") == "agent" else "person", "as it says")
    found = judge_caller(call.caller, _agents(call))
    if found.is_agent or not call.session:
        return found
    return Caller("agent", "its environment names an agent's session")


def _agents(call: Call) -> list[AgentProcess]:
    """One program may run many sessions: only those that the command is about make it busy."""
    named = str(call.args.get("session") or "")
    found = []
    for sid, one in live(call).items():
        concerned = one["project"] == call.project or bool(named and sid.startswith(named))
        busy = concerned and is_busy(call.reader.state(Ref(SESSION, sid)))
        if one.get("pid"):
            found.append(AgentProcess(one["pid"], one.get("pid_start", 0), busy))
    return found


def live(call: Call) -> dict[str, Any]:
    return (call.reader.state(REGISTRY) or {}).get("sessions", {})


def whose(call: Call, *, needed: bool = True) -> str:
    """The one named, else the one whose shell this is, else the only one alive here. Nothing is guessed beyond that."""
    if named := str(call.args.get("session") or ""):
        return _named(call, named)
    if call.session:
        return call.session
    here = [sid for sid, one in live(call).items() if _is_here(call, one)]
    if len(here) == 1:
        return here[0]
    if needed:
        which = f"{len(here)} sessions are alive here: {', '.join(map(alias, here))}" if here else "none is alive here"
        raise CommandRefused(f"which session? {which}", fix="Name one with --session.")
    return ""


def _is_here(call: Call, one: dict[str, Any]) -> bool:
    """Started in this folder, or working on this branch of this repository."""
    same_branch = one["place"] == call.args.get("repo") and one["branch"] == call.args.get("branch")
    return one["project"] == call.project or same_branch


def _named(call: Call, named: str) -> str:
    """In full, or as far as it is the only one (`alias`, D5: never a key)."""
    if call.reader.state(Ref(SESSION, named)):
        return named
    found = [sid for sid in live(call) if sid.startswith(named) or alias(sid) == named]
    if len(found) > 1:
        raise CommandRefused(f"{named} is the beginning of {len(found)} sessions", fix="Give the full id.")
    return found[0] if found else named


def here(call: Call, session: str) -> Here:
    """Where the shell stands; a session's facts are filed under the folder that its agent was started in."""
    doc = call.reader.state(Ref(SESSION, session)) or {} if session else {}
    repo, branch = str(call.args.get("repo") or ""), str(call.args.get("branch") or "")
    place = repo or call.project
    project = doc.get("project", call.project) if doc.get("place") == place else call.project
    return Here(session, project, place, branch, call.now, doc.get("content") or {})


def checker(call: Call, session: str) -> Checker:
    return Checker(Stored(call.reader), here(call, session))


def rule(call: Call, name: str) -> Rule:
    known = in_force(call).by_name
    if name in known:
        return known[name]
    if name in settings(call).requirements:
        raise CommandRefused(f"{name} is not enabled here", fix="Enable it in the settings first.")
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    fix = f"Did you mean {near[0]}?" if near else f"Here are: {', '.join(sorted(known)) or 'none'}."
    raise CommandRefused(f"there is no requirement {name!r}", fix=fix)
