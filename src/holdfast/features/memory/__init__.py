"""Memory (seed 004): what was decided, fixed, tried and learned is found again, and told when it fits."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from holdfast.core.feature import Feature
from holdfast.features.memory import commands
from holdfast.features.memory.decide import decide
from holdfast.features.memory.model import KINDS, MemorySettings
from holdfast.features.memory.observe import follow
from holdfast.features.memory.reduce import LISTENS, facets, keys, reduce


def _later(name: str) -> Callable[[Any], Any]:
    """The index needs numpy: it is loaded when somebody asks, not when the daemon starts."""

    def call(given: Any) -> Any:
        return getattr(import_module(f"{__name__}.views"), name)(given)

    return call


FEATURE = Feature(
    name="memory",
    version=1,
    kinds=KINDS,
    listens=LISTENS,
    keys=keys,
    reduce=reduce,
    facets=facets,
    decide=decide,
    follow=follow,
    commands={
        "add": commands.add,
        "pin": commands.pin,
        "promote": commands.promote,
        "forget": commands.forget,
        "handoff": commands.hand_over,
    },
    views={name: _later(name) for name in ("search", "around", "show", "listed", "injected")},
    settings=MemorySettings,
)
