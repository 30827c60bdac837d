"""Kind `guard`: a condition of the moment (protected branch, single session), evaluated each time and never stored."""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from holdfast.core.section import ALONE
from holdfast.features.gates.fields import Part, Spec, Words
from holdfast.features.gates.kinds.base import BASES, PERSON_CAN, Finding, RequirementKind, settings_of
from holdfast.features.gates.state import live_sessions
from holdfast.features.gates.strictness import is_superset

if TYPE_CHECKING:
    from holdfast.features.gates.rules.checker import Checker
    from holdfast.features.gates.rules.triggers import Rule
    from holdfast.features.gates.settings import Requirement

Branches = Annotated[tuple[Words, ...], Meta(max_length=50), ALONE]


class GuardSettings(Part):
    guard_type: Literal["", "protected_branch", "single_session"] = ""
    protected_branches: Branches = BASES
    branches: Annotated[Branches, Meta(description="The original framework's name of protected_branches.")] = ()


class Guard(RequirementKind):
    name = "guard"
    summary = "A condition of the moment (`guard_type: protected_branch` or `single_session`)."
    settings = GuardSettings
    comparisons = {"protected_branches": is_superset}

    def complete_settings(self, spec: Spec) -> Spec:
        if spec.get("branches"):
            spec = {"protected_branches": spec["branches"], **spec}
        return {"guard_type": "protected_branch", **spec} if spec.get("protected_branches") else spec

    def check_settings(self, spec: "Requirement") -> None:
        if not settings_of(GuardSettings, spec).guard_type:
            raise ValueError("type guard needs `guard_type:` protected_branch or single_session")

    def checked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        return True, False

    def check(self, checker: "Checker", rule: "Rule") -> Finding:
        branches = self.protected_branches(rule.spec)
        why = _on_protected(checker, branches) if branches else _other_sessions(checker)
        return checker.approved(rule) or Finding(rule, False, why) if why else Finding(rule, True, "holds")

    def lets_through(self, checker: "Checker", rule: "Rule") -> bool:
        return checker.approved(rule) is not None

    def protected_branches(self, spec: "Requirement") -> tuple[str, ...]:
        settings = settings_of(GuardSettings, spec)
        return settings.protected_branches if settings.guard_type == "protected_branch" else ()

    def remedy(self, rule: "Rule") -> str:
        return f"git switch -c NAME, or {PERSON_CAN}" if self.protected_branches(rule.spec) else PERSON_CAN


def _on_protected(checker: "Checker", globs: tuple[str, ...]) -> str:
    for branch in filter(None, (checker.context.branch, checker.context.ends_on, *checker.context.lands_on)):
        if any(fnmatchcase(branch, glob) for glob in globs):
            return f"this is the protected branch {branch}"
    return ""


def _other_sessions(checker: "Checker") -> str:
    context = checker.context
    others = live_sessions(checker.state).others(context.session, context.project)
    return f"another session works here: {', '.join(sorted(others)[:3])}" if others else ""


KIND = Guard()
