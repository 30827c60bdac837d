"""Who may perform an act: declarations of commands, and the check of a call against them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.core.caller import (
    AgentProcess,
    Caller,
    has_session_variable,
    is_forwarder,
    judge_caller,
    list_ancestors,
)
from holdfast.core.errors import HoldfastError
from holdfast.core.event import Event, own_event
from holdfast.core.kinds.gates_events import GatesAttempted
from holdfast.core.person_codes import CODES

if TYPE_CHECKING:
    from holdfast.core.feature import Call, Feature


class Who(StrEnum):
    ANYONE = "anyone"
    OWN_SESSION = "a person; an agent for its own session"
    PERSON = "a person"
    OWNER = "the owner: a person whose account owns the state folder"
    FORWARDER = "a person; Holdfast's own forwarder"


@dataclass(frozen=True)
class Authority:
    who: Who
    act: str = ""
    """Completes "… is a person's to do"."""
    act_of: "Callable[[Call], str] | None" = None
    """Returns the act in words; empty if anyone may perform it."""
    session_of: "Callable[[Call], str] | None" = None
    """Returns the session that an act with OWN_SESSION concerns."""
    delegable: bool = False
    """Whether the setting `agents_may_approve` opens it to agents."""


ANYONE = Authority(Who.ANYONE)


def person(act: str, act_of: "Callable[[Call], str] | None" = None, *, delegable: bool = False) -> Authority:
    return Authority(Who.PERSON, act, act_of, delegable=delegable)


@dataclass(frozen=True)
class Surroundings:
    """What the judgement of a caller depends on, besides its parent processes."""

    agents: tuple[AgentProcess, ...] = ()
    code_without_terminal: bool = False
    agents_may_approve: bool = False


@dataclass(frozen=True)
class Refusal:
    text: str
    event: Event
    """The record of the refused attempt."""


class UndeclaredAuthority(HoldfastError):
    """A command does not declare who may use it."""


def check_declared(features: "tuple[Feature, ...]") -> None:
    undeclared = [
        f"{feature.name}.{verb}"
        for feature in features
        for verb in sorted(feature.commands.keys() ^ feature.authority.keys())
    ]
    if undeclared:
        raise UndeclaredAuthority(", ".join(undeclared), fix="Declare it in `Feature.authority`.")


def judge_call(call: "Call") -> Caller:
    """Judge the caller by its processes. Calls from this process (tests, jobs) are judged by the session they name."""
    if not call.caller:
        return Caller("agent" if call.session or call.args.get("by") == "agent" else "person", "as it says")
    caller = judge_caller(call.caller, call.surroundings().agents)
    # A process outside any agent whose environment names a session was started by one.
    if caller.is_agent or not call.session or not has_session_variable(call.caller):
        return caller
    return Caller("agent", "its environment names an agent's session")


def authorise(authority: Authority, call: "Call") -> Caller | Refusal | None:
    """Return the judged caller, a refusal, or None if nobody had to be judged."""
    if authority.who is Who.ANYONE:
        return None
    act = authority.act_of(call) if authority.act_of else authority.act
    if not act or _is_exempt(authority, call):
        return None
    surroundings = call.surroundings()
    barred = call.who.is_agent or (not call.who.certain and surroundings.code_without_terminal)
    if not barred or (authority.delegable and surroundings.agents_may_approve):
        return call.who
    return _refuse_agent(call, act) if call.who.certain else _ask_for_code(call, act)


def _is_exempt(authority: Authority, call: "Call") -> bool:
    if authority.who is Who.FORWARDER:
        return bool(call.caller) and is_forwarder(call.caller)
    if authority.session_of is None or not call.caller:
        return False
    session, chain = authority.session_of(call), {process.pid for process in list_ancestors(call.caller)}
    return any(one.session == session and one.pid in chain for one in call.surroundings().agents)


def _refuse_agent(call: "Call", act: str) -> Refusal:
    how = "Run it in a terminal of your own, or use the dashboard."
    return Refusal(f"{act} is a person's to do: {call.who.why}. {how}", _attempt(call, act))


def _ask_for_code(call: "Call", act: str) -> Caller | Refusal:
    if CODES.redeem(act, call.code or str(call.args.get("code") or ""), call.now):
        return Caller("person", "with the code of the dashboard")
    CODES.require_code(act, call.who.why, call.now)
    how = (
        "Type the code that the dashboard's gates page shows (or `holdfast gate codes` in a terminal):"
        " --code CODE, or HOLDFAST_CODE=CODE before the command"
    )
    why = f"whether a person asks for {act} cannot be seen: {call.who.why}."
    return Refusal(f"{why} {how}", _attempt(call, act))


def _attempt(call: "Call", act: str) -> Event:
    return own_event(GatesAttempted(act=act, why=call.who.why), call.now, session=call.session, project=call.project)


OWN_PROCESS: Mapping[str, Authority] = {
    "restore": Authority(Who.OWNER, "restoring a backup"),
    "erase-everything": Authority(Who.OWNER, "erasing everything"),
    "uninstall": person("taking Holdfast out of the agents' settings"),
    "import": person("importing history"),
    "config": person("changing the settings", delegable=True),
    "trust": person("trusting a project's settings", delegable=True),
    "team": person("an act in the team"),
    "permissions": person("changing what an agent may do without asking"),
    "git-hooks": person("changing what git asks Holdfast"),
}
"""Acts that the command line performs in its own process after asking."""
