"""The rules that count: what the settings say, with everything kept that they would loosen without a person's word."""

import contextlib
import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.event import Event, derived_event
from holdfast.core.feature import State
from holdfast.core.ids import bounded_name
from holdfast.core.kinds import HookPayload
from holdfast.core.kinds.gates_events import GatesRulesAccepted, GatesRulesKept
from holdfast.core.ports import Reader
from holdfast.features.gates.events import EVERYWHERE, TEAM, TEAM_PREFIX
from holdfast.features.gates.kinds import KINDS
from holdfast.features.gates.state import PAUSES, RULES_OF, SESSIONS, live_sessions
from holdfast.features.gates.state.attention import AcceptedRules, Pause
from holdfast.features.gates.strictness import Comparison, is_at_most, is_lower_limit, is_subset, is_superset, is_wider
from holdfast.paths import default_state_dir

if TYPE_CHECKING:
    from holdfast.features.gates.rules.triggers import Rule
    from holdfast.features.gates.settings import GateSettings, Requirement

NAME = "gates-in-force"
SETTLING_MS = 300
"""So long after a change the settings may be half written."""
_known: dict[str, bool] = {}
"""By state folder."""


def marker_path() -> Path:
    return default_state_dir() / NAME


def any_in_force() -> bool:
    """Asked for every hook: the file is looked at once, later changes are noted here."""
    state = str(default_state_dir())
    known = _known.get(state)
    if known is None:
        known = _known[state] = marker_path().exists()
    return known


def note_in_force() -> None:
    """Rules were accepted that ask for something."""
    if not any_in_force():
        _known[str(default_state_dir())] = True


SCOPES = ("permanent", "branch", "session", "single_use")
"""From the one that is asked for least often to the one asked for most often."""
# Words for people: changing them changes nothing that is refused.
FREE_TEXT = frozenset({"message", "blocking_message", "description", "checklist", "deprecated", "deprecated_message"})


def keep_strict(before: "GateSettings", now: "GateSettings") -> "tuple[GateSettings, list[str]]":
    """The rules now, with everything kept from before that they would loosen; and what that is, for people."""
    requirements = now.requirements if now.enabled else {}
    looser = _loosened_requirements(before, requirements)
    general = _loosened_general(before, now)
    changes: dict[str, Any] = {field: getattr(before, field) for field, _ in general}
    if looser:
        changes["requirements"] = {**requirements, **{rule.name: rule.spec for rule, _ in looser}}
    # The section was switched off as a whole, which would switch off what is kept, too.
    if before.rules and not now.enabled:
        changes["enabled"] = True
    texts = [f"{rule.name}: {why}" for rule, why in looser]
    return (msgspec.structs.replace(now, **changes) if changes else now), texts + [why for _, why in general]


def loosened_reason(old: "Requirement", new: "Requirement | None") -> str:
    """How the new one asks for less; empty when it does not."""
    if new is None:
        return "is gone"
    if not new.enabled:
        return "is disabled"
    for field in old.__struct_fields__:
        was, now = getattr(old, field), getattr(new, field)
        # An unknown field is never taken to be as strict: a new one must be added below first.
        if was != now and field not in FREE_TEXT and not COMPARED.get(field, _never_as_strict)(was, now):
            return f"{field} is {_format_value(now)}, was {_format_value(was)}"
    return ""


def digest_of(rules: "GateSettings") -> str:
    return hashlib.sha256(msgspec.json.encode(rules.plain(), enc_hook=str)).hexdigest()[:24]


def _loosened_requirements(before: "GateSettings", requirements: "dict[str, Requirement]") -> "list[tuple[Rule, str]]":
    reasons = ((rule, loosened_reason(rule.spec, requirements.get(rule.name))) for rule in before.rules)
    return [(rule, why) for rule, why in reasons if why]


def _loosened_general(before: "GateSettings", now: "GateSettings") -> list[tuple[str, str]]:
    """Fields besides the requirements that ask for less, and how."""
    if not before.rules:
        return []
    stop, was = now.hooks.stop, before.hooks.stop
    asked_less = set(was.verify_scopes) - set(stop.verify_scopes) or was.verify_requirements > stop.verify_requirements
    less_code = before.code_without_terminal > now.code_without_terminal
    changes = [
        (asked_less or stop.max_refusals < was.max_refusals, "hooks", "the end of a turn is checked less"),
        (set(now.plan_files) - set(before.plan_files), "plan_files", "more files are never refused"),
        (less_code, "code_without_terminal", "a person without a terminal needs no code"),
        (now.agents_may_approve > before.agents_may_approve, "agents_may_approve", "agents may approve"),
    ]
    return [(field, why) for is_looser, field, why in changes if is_looser]


def _never_as_strict(_was: Any, _now: Any) -> bool:
    """Whether it asks for as much is not known."""
    return False


def _format_value(value: Any) -> str:
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return re.sub(r"\s+", " ", text)[:80]


COMPARED: dict[str, Comparison] = {
    "enabled": lambda was, now: now or not was,
    "scope": lambda was, now: SCOPES.index(now) >= SCOPES.index(was),
    "trigger_tools": is_superset,
    "paths": is_wider,
    "except_paths": is_subset,
    "auto_resolve_skill": is_subset,
    "satisfied_by_skill": is_subset,
    "manual": lambda was, now: was or not now,
    "agent_may_satisfy": lambda was, now: was or not now,
    # Asked at both moments is at least as strict as any other choice.
    "check": lambda was, now: now == "both",
    "ttl": is_lower_limit,
    "carry_over": is_at_most,
    "approval_ttl": is_at_most,
    "when_unsure": lambda was, now: now == "deny" or was == "allow",
} | {field: compare for kind in KINDS.values() for field, compare in kind.comparisons.items()}
"""Field → whether the new value asks for at least as much. A field that is not here may not change at all."""


USER = ""


def rules_in_force(state: State, project: str, settings: "GateSettings") -> "GateSettings":
    """What decides. Found once per settings and accepted rules, not once per hook."""
    accepted = _accepted_in_force(state, project, settings)
    team = RULES_OF.get(state, TEAM)
    return _with_team_rules(accepted, team) if team and team.rules else accepted


def _with_team_rules(settings: "GateSettings", team: AcceptedRules) -> "GateSettings":
    """Beside the settings' own, under names of their own: so they can add to them, and never replace one."""
    # On the settings object, so that the cache ends with the settings it was made from.
    cache: dict[str, GateSettings] = settings.__dict__.setdefault("with_team", {})
    if team.digest not in cache:
        rules = {f"{TEAM_PREFIX}{name}": one for name, one in _team_requirements(team).items()}
        own = settings.requirements if settings.enabled else {}
        combined = msgspec.structs.replace(settings, enabled=True, requirements={**own, **rules})
        combined.__dict__.update({name: value for name, value in settings.__dict__.items() if name in HANDED_ON})
        combined.__dict__["foreign"] = settings.foreign | rules.keys()
        # Only the latest rules of the team are asked for again.
        cache.clear()
        cache[team.digest] = combined
    return cache[team.digest]


HANDED_ON = frozenset(("notices", "changed_at", "user", "waiting"))


def _team_requirements(team: AcceptedRules) -> "dict[str, Requirement]":
    """Each read by itself: one that this version cannot read does not take the others with it."""
    from holdfast.core.section import Unfit
    from holdfast.features.gates.settings import GateSettings

    requirements = {}
    for name, requirement in team.rules.items():
        with contextlib.suppress(Unfit, ValueError):
            requirements.update(GateSettings.of({"requirements": {name: requirement}}).requirements)
    return requirements


def _accepted_in_force(state: State, project: str, settings: "GateSettings") -> "GateSettings":
    docs = (RULES_OF.get(state, USER), RULES_OF.get(state, bounded_name(project)))
    # Rules that were accepted as they are written now change nothing.
    current = (settings.digest, settings.user.digest)
    outdated = [doc for doc in docs if doc and doc.rules and doc.digest not in current]
    if not outdated:
        return settings
    key = tuple(doc.digest for doc in outdated)
    cache: dict[tuple[str, ...], GateSettings] = settings.__dict__.setdefault("held", {})
    if key not in cache:
        cache[key], looser = settings.in_force(*map(settings_of_rules, outdated))
        if cache[key] is not settings:
            cache[key].__dict__["waiting"] = tuple(looser)
    return cache[key]


def loosened_rules(state: State, scope: str, settings: "GateSettings") -> list[str]:
    """What of the rules in force the settings would loosen."""
    doc = RULES_OF.get(state, bounded_name(scope))
    if not doc or doc.digest == settings.digest:
        return []
    return settings.in_force(settings_of_rules(doc))[1]


def settings_of_rules(doc: AcceptedRules) -> "GateSettings":
    return _settings_of(doc.digest, msgspec.json.encode(doc.rules))


@lru_cache(200)
def _settings_of(_digest: str, packed: bytes) -> "GateSettings":
    from holdfast.core.section import Unfit
    from holdfast.features.gates.settings import GateSettings

    try:
        return GateSettings.of(msgspec.json.decode(packed))
    except Unfit:
        return GateSettings()


def review_rules(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """Changed settings: in force at once where they ask for no less, or where a person changed the files."""
    for scope, rules in ((USER, settings.user), (event.project, settings)):
        doc = RULES_OF.get(state, bounded_name(scope)) or AcceptedRules()
        if doc.digest == rules.digest or not (doc.digest or rules.rules):
            continue
        looser = loosened_rules(state, scope, rules)
        if not looser:
            yield accepted_event(event, scope, rules, "settings", [])
        elif doc.waits_for(rules.digest) or _is_settling(event, settings):
            continue
        elif _changed_by_person(state, event):
            yield accepted_event(event, scope, rules, "files", looser)
        else:
            yield derived_event(event, GatesRulesKept(scope=scope, digest=rules.digest, differences=looser[:20]))


def _is_settling(event: Event, settings: "GateSettings") -> bool:
    """An editor empties a file before it writes it: what seems to be gone is looked at again with a later event. So are
    settings that were read again since the event: it says when the previous ones were changed."""
    changed = event.data.settings_at if isinstance(event.data, HookPayload) else 0
    return 0 <= event.at - changed < SETTLING_MS or changed not in (0, settings.changed_at)


def accepted_event(event: Event, scope: str, rules: "GateSettings", by: str, looser: list[str]) -> Event:
    note_in_force()
    payload = GatesRulesAccepted(scope=scope, digest=rules.digest, rules=rules.plain(), by=by, differences=looser[:20])
    return derived_event(event, payload)


def _changed_by_person(state: State, event: Event) -> bool:
    """No tool call of any session was running when the files changed, also of none that is over since, and nothing
    that an agent had left behind."""
    data = event.data
    changed = data.settings_at if isinstance(data, HookPayload) else 0
    # Without a time, or by a hook that an agent called, nothing says that it was a person.
    if not changed or (isinstance(data, HookPayload) and (data.claimed or data.left_running)):
        return False
    registry = live_sessions(state)
    # Recently ended sessions count: their last change is seen only afterwards.
    sessions = (SESSIONS.get(state, sid) for sid in {*registry.sessions, *registry.over, event.session})
    return not any(session.was_busy(changed) for session in sessions if session)


# ── for hooks that cannot reach the daemon ───────────────────────────────────────────────────────────────────────────


class StandIn(msgspec.Struct, frozen=True):
    """What hooks refuse below a folder while the daemon is unreachable; without rules: nothing."""

    folder: str
    rules: "tuple[Rule, ...]" = ()
    until: int = 0
    """In ms; 0: always."""


MOST_SCOPES = 500


def list_stand_ins(reader: Reader) -> list[StandIn]:
    """Pauses first, because they also hold without the daemon."""
    pauses = [_pause_stand_in(pause) for _, pause in PAUSES.list(reader, limit=MOST_SCOPES) if pause.status]
    stand_ins = []
    for _, doc in RULES_OF.list(reader, limit=MOST_SCOPES):
        # At the daemon's start rules are in force even without the marker file.
        note_in_force()
        denying = tuple(rule for rule in _rules_of(doc) if rule.spec.when_unsure == "deny")
        if denying:
            stand_ins.append(StandIn("" if doc.scope == TEAM else doc.scope, denying))
    # The rules of the innermost folder are asked first.
    stand_ins.sort(key=lambda one: -len(one.folder))
    # Without rules there is nothing to pause.
    return [*filter(None, pauses), *stand_ins] if stand_ins else []


def _rules_of(doc: AcceptedRules) -> "tuple[Rule, ...]":
    from holdfast.features.gates.settings import GateSettings

    return _with_team_rules(GateSettings(), doc).rules if doc.scope == TEAM else settings_of_rules(doc).rules


def _pause_stand_in(pause: Pause) -> StandIn | None:
    where = "" if pause.where == EVERYWHERE else pause.where.removesuffix("/.git")
    return None if where.startswith("session:") else StandIn(where, until=pause.until)
