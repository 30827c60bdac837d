"""Kind `blocking`: a task that a skill, or somebody by hand, marks as done."""

from typing import TYPE_CHECKING

from holdfast.features.gates.kinds.base import PERSON_CAN, Finding, RequirementKind, by_hand_too, satisfied_by

if TYPE_CHECKING:
    from holdfast.features.gates.rules.checker import Checker
    from holdfast.features.gates.rules.triggers import Rule


class Blocking(RequirementKind):
    name = "blocking"
    summary = "A task: refuses until its skill ran or somebody marked it as done."
    is_task = True

    def check(self, checker: "Checker", rule: "Rule") -> Finding:
        entry = checker.entry(rule)
        return Finding(rule, bool(entry), satisfied_by(entry) if entry else "not satisfied")

    def remedy(self, rule: "Rule") -> str:
        named = (*rule.spec.auto_resolve_skill, *rule.spec.satisfied_by_skill)
        skills = dict.fromkeys([f"/{skill.lstrip('/')}" for skill in named])
        return " or ".join(skills) if skills or by_hand_too(rule) else PERSON_CAN

    def why_not_by_hand(self, rule: "Rule") -> str:
        return "" if rule.spec.manual else f"{rule.name} cannot be satisfied by hand"


KIND = Blocking()
