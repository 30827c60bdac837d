"""Kind `dynamic`: the number of changed lines on a branch."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from holdfast.core.times import SECOND
from holdfast.features.gates.fields import YEAR_S, Part, Spec, Words
from holdfast.features.gates.kinds.base import Finding, RequirementKind, settings_of
from holdfast.features.gates.strictness import is_at_most

if TYPE_CHECKING:
    from holdfast.features.gates.rules.checker import Checker
    from holdfast.features.gates.rules.triggers import Rule
    from holdfast.features.gates.settings import Requirement


OLD_S = 60
"""From this age on the age is shown."""


class Thresholds(Part):
    warn: Annotated[int, Meta(ge=1)] = 250
    block: Annotated[int, Meta(ge=1)] = 400


class BranchSizeSettings(Part):
    thresholds: Thresholds = Thresholds()
    base: Annotated[Words, Meta(description="The branch that sizes are measured from; empty = main or master.")] = ""
    calculator: Words = "branch_size_calculator"
    cache_ttl: Annotated[
        int, Meta(ge=1, le=YEAR_S, description="Seconds until it is measured again although no call changed anything.")
    ] = 60
    threshold: Annotated[int | None, Meta(description="The original framework's name of thresholds.block.")] = None
    calculation_cache_ttl: Annotated[int | None, Meta(description="Its name of cache_ttl.")] = None


def branch_size_settings(spec: "Requirement") -> BranchSizeSettings:
    return settings_of(BranchSizeSettings, spec)


class BranchSize(RequirementKind):
    name = "dynamic"
    summary = "The size of the branch in changed lines (`thresholds`)."
    settings = BranchSizeSettings
    comparisons = {
        "thresholds": lambda was, now: now.block <= was.block and now.warn <= was.warn,
        "cache_ttl": is_at_most,
    }
    is_measured = True

    def complete_settings(self, spec: Spec) -> Spec:
        if isinstance(limit := spec.get("threshold"), int):
            # The original framework has one number; the warning keeps the ratio of our defaults.
            limits = {"block": limit, "warn": max(1, limit * 5 // 8), **(spec.get("thresholds") or {})}
            spec = {**spec, "thresholds": limits}
        if spec.get("calculation_cache_ttl") is not None:
            spec = {"cache_ttl": spec["calculation_cache_ttl"], **spec}
        return spec

    def checked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        return True, False

    def check(self, checker: "Checker", rule: "Rule") -> Finding:
        size = checker.facts.sizes.get(checker.context.branch)
        if not size:
            return Finding(rule, True, "not measured yet")
        lines, limit = size.lines, branch_size_settings(rule.spec).thresholds.block
        age = (checker.context.now - size.at) // SECOND
        old = f", measured {age} s ago" if age >= OLD_S else ""
        why = f"{lines} changed lines since {size.base or 'the base'}{old}"
        if lines >= limit:
            return checker.approved(rule) or Finding(rule, False, f"{why} (limit {limit})", lines)
        return Finding(rule, True, why, lines)

    def warn_from(self, rule: "Rule") -> float:
        return branch_size_settings(rule.spec).thresholds.warn

    def warning(self, finding: Finding) -> str:
        limit = branch_size_settings(finding.rule.spec).thresholds.block
        return f"{finding.rule.name}: {finding.why}; refused from {limit} on."

    def placeholders(self, rule: "Rule") -> dict[str, int]:
        thresholds = branch_size_settings(rule.spec).thresholds
        return {"block_threshold": thresholds.block, "warn_threshold": thresholds.warn}


KIND = BranchSize()
