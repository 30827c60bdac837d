"""The requirement kinds."""

# A new kind is one module here and one word in this tuple.

from holdfast.features.gates.kinds import ask, blocking, branch_size, budget, evidence, guard, loop, stop_only
from holdfast.features.gates.kinds.base import RequirementKind

KINDS: dict[str, RequirementKind] = {
    module.KIND.name: module.KIND for module in (blocking, stop_only, evidence, guard, branch_size, budget, ask, loop)
}
