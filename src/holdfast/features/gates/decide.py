"""Allow, refuse or tell. Pure; with no requirement there is no opinion, and a fault means: no opinion."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.core.decision import Context, Decision, deny
from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.fingerprint import content_key
from holdfast.features.gates import memory, registry, texts
from holdfast.features.gates.check import Checker, Finding, Here
from holdfast.features.gates.in_force import rules_in_force
from holdfast.features.gates.refs import LIVE, REGISTRY
from holdfast.features.gates.rules import Rule
from holdfast.features.gates.self_protection import self_protection
from holdfast.features.gates.triggers import triggered

if TYPE_CHECKING:
    from holdfast.features.gates.model import GateSettings

SAME_MOMENT_MS = 5_000
MOST_NOTICES = 10
WARN_STEP = 50
"""Lines by which a branch must have grown before it is warned about once more."""


def can_decide(kind: str, settings: "GateSettings | None") -> bool:
    return kind in STEPS and settings is not None and (bool(settings.rules or settings.notices) or memory.any_in_force())


def decide(state: State, event: Event, settings: "GateSettings | None") -> Decision | None:
    if settings is None or not can_decide(event.kind, settings) or event.data.get("paused"):
        return None
    settings = rules_in_force(state, event.project, settings)
    if event.kind == "tool.started" and not settings.rules:
        return None
    if event.kind == "tool.started" and (refusal := self_protection(event, settings)):
        return refusal
    checker = Checker(state, Here.of(event))
    if event.kind == "tool.started" and not triggered(settings, event) and not checker.session.get("bypassed"):
        return None
    return None if checker.paused() else STEPS[event.kind](checker, event, settings)


def _tool(checker: Checker, event: Event, settings: "GateSettings") -> Decision | None:
    if seen := [one for one in checker.session.get("bypassed") or () if "unknown" not in one["what"]]:
        return deny(texts.bypassed(seen), details=({"gate": "bypass"},))
    findings = [checker.find(rule) for rule in triggered(settings, event) if rule.at_tool]
    refused = [one for one in findings if not one.ok]
    return _refuse(checker, event, refused) if refused else _warn(checker, findings)


def _refuse(checker: Checker, event: Event, refused: Sequence[Finding]) -> Decision:
    before = checker.session.get("denied") or {"at": 0, "names": []}
    names = sorted(one.rule.name for one in refused)
    same = before["names"] == names and 0 <= event.at - before["at"] < SAME_MOMENT_MS
    text = texts.again(refused) if same else texts.refusal(refused, checker.here, event.tool)
    return deny(text, details=(_detail("refused", refused),))


def _warn(checker: Checker, findings: Sequence[Finding]) -> Decision | None:
    warned = checker.session.get("warned") or {}
    large = [
        one for one in findings
        if one.lines >= one.rule.spec.thresholds.warn and one.lines >= warned.get(one.rule.name, -WARN_STEP) + WARN_STEP
    ]  # fmt: skip
    if not large:
        return None
    details = tuple({"gate": "warned", "name": one.rule.name, "lines": one.lines} for one in large)
    return Decision(contexts=(Context("gates", "\n".join(map(texts.warning, large))),), details=details)


def _stop(checker: Checker, event: Event, settings: "GateSettings") -> Decision | None:
    stop = settings.hooks.stop
    doc = checker.session
    if not stop.verify_requirements or (event.data.get("again") and not doc.get("stops")):
        return None  # The second: somebody else's hook refused, and we do not add to their loop.
    checked = [
        rule for rule in settings.rules if rule.asked_at_stop(stop.verify_scopes) and _concerns(rule, checker, event)
    ]  # fmt: skip
    refused = [one for one in map(checker.find, checked) if not one.ok]
    if not refused:
        return None
    times = 0 if set(doc.get("stop_names", ())) - {one.rule.name for one in refused} else doc.get("stops", 0)
    if times >= stop.max_refusals:
        return _let_go(refused, times)
    text = texts.not_done(refused, checker.here, stop.max_refusals - times - 1)
    return deny(text, details=(_detail("stop", refused),))


def _concerns(rule: Rule, checker: Checker, event: Event) -> bool:
    """A session is asked for what it did: by its tool calls, or by the content that it leaves. What was undone again
    needs no proof."""
    used = rule.name in (checker.session.get("triggered") or {})
    if rule.type != "evidence" or any(not one.command for one in rule.spec.evidence):
        return used
    began, now = checker.session.get("began") or {}, checker.here.content
    keys = [content_key(rule.spec.paths)] if rule.spec.paths else ["" if one.after_edit == ("**",) else content_key(one.after_edit) for one in rule.spec.evidence]
    known = [key for key in keys if began.get(key) and now.get(key)]
    if len(known) < len(keys):
        return used
    changed = any(began[key] != now[key] for key in known) or checker.proved_other_content(rule)
    alone = not registry.others(checker.state.get(LIVE, REGISTRY.key), event.session, event.project)
    return changed and (used or alone)


def _let_go(refused: Sequence[Finding], times: int) -> Decision:
    return Decision(notices=(texts.let_go(refused, times),), details=(_detail("let_go", refused),))


def _start(checker: Checker, event: Event, settings: "GateSettings") -> Decision:
    told = _notices(checker, event, settings) or Decision()
    if not settings.rules or not settings.hooks.session_start.inject_context:
        return told
    others = registry.others(checker.state.get(LIVE, REGISTRY.key), event.session, event.project)
    found = [checker.find(rule) for rule in settings.rules]
    text = texts.at_start(found, others, settings.hooks.stop.verify_scopes)
    return Decision(contexts=(Context("gates", text, 70),), notices=told.notices, details=told.details)


def _notices(checker: Checker, _event: Event, settings: "GateSettings") -> Decision | None:
    """What is wrong with the settings, to the person, once per session and change."""
    missing = [f"Gates: no skill named {skill} was found." for skill in checker.facts.get("missing", ())]
    told = checker.session.get("told", ())
    seen = [f"Gates: {texts.bypass_line(one)}" for one in checker.session.get("bypassed") or ()]
    said = {texts.digest(text): text for text in [*(f"Gates: {notice}" for notice in settings.notices), *missing, *seen]}
    fresh = {digest: text for digest, text in list(said.items())[:MOST_NOTICES] if digest not in told}
    return (
        Decision(notices=tuple(fresh.values()), details=({"gate": "told", "digests": list(fresh)},)) if fresh else None
    )


def _detail(gate: str, findings: Sequence[Finding]) -> dict:
    return {"gate": gate, "requirements": [one.as_detail() for one in findings]}


STEPS = {"tool.started": _tool, "turn.ended": _stop, "session.started": _start, "prompt.submitted": _notices}
