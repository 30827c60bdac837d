"""Which of two sets of rules asks for more. Tightening takes effect at once; loosening needs a person (decision 16)."""

import hashlib
import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from holdfast.features.gates.model import GateSettings, Requirement

SCOPES = ("permanent", "branch", "session", "single_use")
"""From the one that is asked for least often to the one asked for most often."""
FREE_TEXT = frozenset({"message", "blocking_message", "description", "checklist"})
Comparison = Callable[[Any, Any], bool]


def keep_strict(before: "GateSettings", now: "GateSettings") -> "tuple[GateSettings, list[str]]":
    """The rules now, with everything kept from before that they would loosen; and what that is, for people."""
    differences: list[str] = []
    kept = {}
    for name, old in before.requirements.items() if before.enabled else ():
        why = loosened(old, now.requirements.get(name) if now.enabled else None) if old.enabled else ""
        if why:
            kept[name] = old
            differences.append(f"{name}: {why}")
    changes: dict[str, Any] = {"requirements": {**(now.requirements if now.enabled else {}), **kept}} if kept else {}
    if before.enabled and before.rules and not now.enabled:
        changes["enabled"] = True
    for field, why in _general(before, now):
        changes[field] = getattr(before, field)
        differences.append(why)
    return (msgspec.structs.replace(now, **changes) if changes else now), differences


def loosened(old: "Requirement", new: "Requirement | None") -> str:
    """How the new one asks for less; empty when it does not."""
    if new is None:
        return "is gone"
    if not new.enabled:
        return "is disabled"
    for field in old.__struct_fields__:
        was, now = getattr(old, field), getattr(new, field)
        if was != now and field not in FREE_TEXT and not COMPARED.get(field, _never)(was, now):
            return f"{field} is {_shown(now)}, was {_shown(was)}"
    return ""


def digest_of(rules: "GateSettings") -> str:
    return hashlib.sha256(msgspec.json.encode(rules.plain(), enc_hook=str)).hexdigest()[:24]


def _general(before: "GateSettings", now: "GateSettings") -> list[tuple[str, str]]:
    if not before.rules:
        return []
    found = []
    stop, was = now.hooks.stop, before.hooks.stop
    looser = stop.max_refusals < was.max_refusals or set(was.verify_scopes) - set(stop.verify_scopes)
    if looser or (was.verify_requirements and not stop.verify_requirements):
        found.append(("hooks", "the end of a turn is checked less"))
    if set(now.plan_files) - set(before.plan_files):
        found.append(("plan_files", "more files are never refused"))
    if now.agents_may_approve and not before.agents_may_approve:
        found.append(("agents_may_approve", "agents may approve"))
    return found


def _never(_was: Any, _now: Any) -> bool:
    """Whether it asks for as much cannot be told."""
    return False


def _superset(was: Collection[Any], now: Collection[Any]) -> bool:
    return set(map(_hashable, was)) <= set(map(_hashable, now))


def _subset(was: Collection[Any], now: Collection[Any]) -> bool:
    return _superset(now, was)


def _hashable(value: Any) -> Any:
    return msgspec.json.encode(value) if isinstance(value, msgspec.Struct) else value


def _wider_paths(was: Collection[str], now: Collection[str]) -> bool:
    """No paths at all means every file."""
    return not now or (bool(was) and _superset(was, now))


def _shorter(was: int, now: int) -> bool:
    return bool(now) and (not was or now <= was)


def _more_evidence(was: Collection[Any], now: Collection[Any]) -> bool:
    return _superset(was, now)


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return re.sub(r"\s+", " ", text)[:80]


COMPARED: dict[str, Comparison] = {
    "enabled": lambda was, now: now or not was,
    "scope": lambda was, now: SCOPES.index(now) >= SCOPES.index(was),
    "trigger_tools": _superset,
    "paths": _wider_paths,
    "except_paths": _subset,
    "auto_resolve_skill": _subset,
    "satisfied_by_skill": _subset,
    "manual": lambda was, now: was or not now,
    "agent_may_satisfy": lambda was, now: was or not now,
    "check": lambda was, now: now == "both",
    "ttl": _shorter,
    "evidence": _more_evidence,
    "carry_over": lambda was, now: now <= was,
    "protected_branches": _superset,
    "thresholds": lambda was, now: now.block <= was.block and now.warn <= was.warn,
    "cache_ttl": lambda was, now: now <= was,
    "approval_ttl": lambda was, now: now <= was,
    "when_unsure": lambda was, now: now == "deny",
}
"""Field → whether the new value asks for at least as much. A field that is not here may not change at all."""
