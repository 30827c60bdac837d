"""Kind `loop`: says so when the same call failed five times in a row."""

from typing import TYPE_CHECKING

from holdfast.features.gates.fields import Spec
from holdfast.features.gates.kinds.base import Finding, RequirementKind
from holdfast.features.gates.rules.triggers import actions
from holdfast.features.gates.state import LOOP

if TYPE_CHECKING:
    from holdfast.features.gates.rules.checker import Checker
    from holdfast.features.gates.rules.triggers import Rule
    from holdfast.features.gates.settings import Requirement


class Loop(RequirementKind):
    name = "loop"
    summary = "Tells the agent that the same call failed five times in a row; refuses nothing."
    warn_step = 1

    def complete_settings(self, spec: Spec) -> Spec:
        return {"trigger_tools": sorted(actions()), **spec}

    def checked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        return True, False

    def check(self, checker: "Checker", rule: "Rule") -> Finding:
        failing = checker.session.failing
        return Finding(rule, True, f"{failing.what} failed {LOOP} times in a row", failing.loops)

    def warn_from(self, rule: "Rule") -> float:
        return 1

    def warning(self, finding: Finding) -> str:
        return (
            f"{finding.why}, with nothing changed in between. Do not run it again as it is: find out why it fails, "
            "do something else, or ask your user."
        )


KIND = Loop()
