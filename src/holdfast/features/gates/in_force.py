"""The rules that count: what the settings say, with everything kept that they would loosen without a person's word."""

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core.event import Event, derived_event
from holdfast.core.feature import State
from holdfast.core.ids import bounded
from holdfast.core.kinds import HookPayload
from holdfast.core.kinds.gates_events import GatesRulesAccepted, GatesRulesKept
from holdfast.features.gates.refs import LIVE, REGISTRY, RULES, SESSION
from holdfast.features.gates.sessions import was_busy

if TYPE_CHECKING:
    from holdfast.features.gates.model import GateSettings

USER = ""


def rules_in_force(state: State, project: str, settings: "GateSettings") -> "GateSettings":
    """What decides. Found once per settings and accepted rules, not once per hook."""
    docs = [doc for scope in (USER, project) if (doc := state.get(RULES, bounded(scope)))]
    outdated = [doc for doc in docs if doc["digest"] not in (settings.digest, settings.user.digest) and doc["rules"]]
    if not outdated:
        return settings
    key = tuple(doc["digest"] for doc in outdated)
    known: dict[tuple[str, ...], GateSettings] = settings.__dict__.setdefault("held", {})
    if key not in known:
        known[key] = settings.in_force(*(accepted_rules(doc["digest"], _packed(doc["rules"])) for doc in outdated))[0]
    return known[key]


def differences(state: State, scope: str, settings: "GateSettings") -> list[str]:
    """What of the rules in force the settings would loosen."""
    doc = state.get(RULES, bounded(scope))
    if not doc or doc["digest"] == settings.digest:
        return []
    return settings.in_force(accepted_rules(doc["digest"], _packed(doc["rules"])))[1]


def _packed(rules: dict[str, Any]) -> bytes:
    return msgspec.json.encode(rules)


@lru_cache(200)
def accepted_rules(_digest: str, packed: bytes) -> "GateSettings":
    from holdfast.features.gates.model import GateSettings, Unfit

    try:
        return GateSettings.of(msgspec.json.decode(packed))
    except Unfit:
        return GateSettings()


def review_rules(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    """Changed settings: in force at once where they ask for no less, or where a person changed the files."""
    for scope, rules in ((USER, settings.user), (event.project, settings)):
        doc = state.get(RULES, bounded(scope))
        if (doc is None and not rules.rules) or (doc is not None and doc["digest"] == rules.digest):
            continue
        looser = differences(state, scope, rules)
        if not looser:
            yield accepted_event(event, scope, rules, "settings", [])
        elif doc and (doc.get("waiting") or {}).get("digest") == rules.digest:
            continue
        elif _changed_by_person(state, event):
            yield accepted_event(event, scope, rules, "files", looser)
        else:
            yield derived_event(event, GatesRulesKept(scope=scope, digest=rules.digest, differences=looser[:20]))


def accepted_event(event: Event, scope: str, rules: "GateSettings", by: str, looser: list[str]) -> Event:
    payload = GatesRulesAccepted(scope=scope, digest=rules.digest, rules=rules.plain(), by=by, differences=looser[:20])
    return derived_event(event, payload)


def _changed_by_person(state: State, event: Event) -> bool:
    """No tool call of any live session was running when the files changed."""
    data = event.data
    changed = data.settings_at if isinstance(data, HookPayload) else 0
    if not changed or (isinstance(data, HookPayload) and data.claimed):
        return False
    live = (state.get(LIVE, REGISTRY.key) or {}).get("sessions", {})
    return not any(was_busy(state.get(SESSION, sid), changed) for sid in {*live, event.session})
