"""Rules in force, pauses, and what needs a person's attention."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.core.event import Event
from holdfast.core.ids import session_alias
from holdfast.core.kinds import JsonObject
from holdfast.core.kinds.engine_events import AnswerUndelivered
from holdfast.core.kinds.gates_events import (
    GatesApproved,
    GatesAttempted,
    GatesBypassed,
    GatesPaused,
    GatesResumed,
    GatesRulesAccepted,
    GatesRulesKept,
    GatesSatisfied,
)
from holdfast.core.kinds.team_events import TeamLeft, TeamRuleArrived, TeamRuleWithdrawn
from holdfast.core.times import DAY
from holdfast.features.gates.state.branches import Document, replace

# The latest ones; older ones are in the log.
MOST_SHOWN = 60


class WaitingRules(Document, frozen=True):
    digest: str = ""
    differences: list[str] = []
    at: int = 0


class AcceptedRules(Document, frozen=True):
    """The rules in force of one project, or (under the empty name) of the user's own files."""

    scope: str = ""
    digest: str = ""
    rules: JsonObject = {}
    """The settings as they are written."""
    by: str = ""
    at: int = 0
    waiting: WaitingRules | None = None

    def waits_for(self, digest: str) -> bool:
        """Whether it is recorded that these settings wait for a person."""
        return self.waiting is not None and self.waiting.digest == digest


def reduce_rules(doc: AcceptedRules | None, event: Event) -> AcceptedRules | None:
    data = event.data
    if isinstance(data, GatesRulesAccepted):
        return AcceptedRules(scope=data.scope, digest=data.digest, rules=data.rules, by=data.by, at=event.at)
    if isinstance(data, TeamRuleArrived | TeamRuleWithdrawn | TeamLeft):
        return _reduce_team_rules(doc or AcceptedRules(scope="team"), event)
    if not isinstance(data, GatesRulesKept):
        return None
    waiting = WaitingRules(digest=data.digest, differences=data.differences, at=event.at)
    return replace(doc or AcceptedRules(scope=data.scope, at=event.at), waiting=waiting)


def _reduce_team_rules(doc: AcceptedRules, event: Event) -> AcceptedRules:
    """Requirements as the team wrote them, by name; the digest tells whether they were read already."""
    data, rules = event.data, dict(doc.rules)
    if isinstance(data, TeamRuleArrived):
        rules[data.name] = data.requirement
    elif isinstance(data, TeamRuleWithdrawn):
        rules.pop(data.name, None)
    else:
        rules = {}
    # The number of the event serves as digest: every change of the team's rules is a new one.
    return replace(doc, rules=rules, digest=f"team/{event.seq}", by="team", at=event.at)


class Pause(Document, frozen=True):
    where: str = ""
    status: str = ""
    at: int = 0
    until: int = 0
    why: str = ""

    def holds(self, now: int) -> bool:
        return self.status == "paused" and (not self.until or now < self.until)


def reduce_pause(_doc: Pause | None, event: Event) -> Pause:
    data = event.data
    if isinstance(data, GatesPaused):
        return Pause(where=data.where, status="paused", at=event.at, until=data.until, why=data.why[:500])
    return Pause(where=data.where if isinstance(data, GatesResumed) else "", at=event.at)


class AttentionEntry(Document, frozen=True):
    at: int
    text: str
    session: str = ""
    project: str = ""
    kind: str = ""


class Attention(Document, frozen=True):
    entries: list[AttentionEntry] = []
    at: int = 0
    running: bool = False
    """A daemon started and has not reported its stop."""
    stopped: bool = False

    def recent(self, now: int) -> list[AttentionEntry]:
        """Of the last day, newest first, each text once."""
        entries = [one for one in self.entries if now - one.at < DAY]
        # A dictionary keeps the latest entry of each text at the place of the first.
        return list({one.text: one for one in entries}.values())[::-1]


def reduce_attention(doc: Attention | None, event: Event) -> Attention | None:
    doc = doc or Attention(at=event.at)
    if event.kind == "daemon.stopped":
        return replace(doc, stopped=True, at=event.at)
    shown = ATTENTION_TEXTS[event.kind](event.data, event) if event.kind in ATTENTION_TEXTS else ""
    if event.kind == "daemon.started":
        # It started without having stopped: it was killed, or the machine was switched off.
        killed = doc.running and not doc.stopped
        shown = "Holdfast's daemon was ended from outside, without being stopped" if killed else ""
        shown = _failing_text(event) or shown
        doc = replace(doc, running=True, stopped=False)
    if not shown:
        return doc if event.kind == "daemon.started" else None
    entry = AttentionEntry(at=event.at, text=shown, session=event.session, project=event.project, kind=event.kind)
    return replace(doc, entries=[*doc.entries, entry][-MOST_SHOWN:], at=event.at)


def _failing_text(event: Event) -> str:
    since = event.data.failing_since
    minutes = (event.at - since) // 60_000
    return f"Holdfast could not start for {minutes} min: hooks were spooled, gates were not asked" if since else ""


def _bypassed_text(data: GatesBypassed, event: Event) -> str:
    return f"{', '.join(data.requirements)}: {data.what} (session {session_alias(event.session)})"


def _attempted_text(data: GatesAttempted, _event: Event) -> str:
    return f"refused to an agent: {data.act} ({data.why})"


def _kept_text(data: GatesRulesKept, _event: Event) -> str:
    return "the settings ask for less, and no person accepted it; kept in force: " + "; ".join(data.differences)


def _accepted_text(data: GatesRulesAccepted, _event: Event) -> str:
    return "settings changed on disk, taken as yours: " + "; ".join(data.differences) if data.by == "files" else ""


def _approved_text(data: GatesApproved, _event: Event) -> str:
    names = ", ".join(one.name for one in data.requirements)
    shown = f"{names} approved without a terminal; if that was not you, see: holdfast event list"
    return "" if data.certain else shown


def _satisfied_text(data: GatesSatisfied, event: Event) -> str:
    names = ", ".join(one.name for one in data.requirements)
    shown = f"{names} satisfied by the agent's own word (session {session_alias(event.session)})"
    return shown if data.method == "agent" else ""


def _undelivered_text(data: AnswerUndelivered, event: Event) -> str:
    what = f"{event.tool or 'the end of a turn'} in session {session_alias(event.session)}"
    if data.instead == "deny":
        return f"not delivered: {what} was refused by the hook alone, the daemon could not be reached"
    shown = f"not delivered: a refusal of {what} did not reach the agent (event {data.of})"
    return shown if data.verdict == "deny" else ""


ATTENTION_TEXTS: Mapping[str, Callable[[Any, Event], str]] = {
    "gates.bypassed": _bypassed_text,
    "gates.attempted": _attempted_text,
    "gates.rules_kept": _kept_text,
    "gates.rules_accepted": _accepted_text,
    "gates.approved": _approved_text,
    "gates.satisfied": _satisfied_text,
    "answer.undelivered": _undelivered_text,
}
