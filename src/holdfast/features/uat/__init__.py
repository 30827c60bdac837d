"""UAT runs (seed 003): what an agent tested, step by step, with proof."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from holdfast.core.feature import Feature
from holdfast.features.uat import derive, evidence, policy, reduce
from holdfast.features.uat.settings import SUBSCRIBED_KINDS, UatSettings
from holdfast.features.uat.state import RUNS, SESSION_RUNS

COMMANDS = (
    *("start", "step", "assert", "check", "call", "signal", "update", "end"),
    *("report", "compare", "recover", "tend", "clean", "init", "import"),
)
VIEWS = (
    *("list", "show", "document", "context", "signal", "signals", "report", "compare"),
    *("scenarios", "validate", "schema", "place", "done", "active", "suite"),
)


def _later(module: str, table: str, names: tuple[str, ...]) -> Mapping[str, Callable[[Any], Any]]:
    """Reports, YAML and HTTP are loaded when somebody asks for them: the first hook does not wait for that."""

    def opened(name: str) -> Callable[[Any], Any]:
        return lambda call: getattr(import_module(f"{__name__}.{module}"), table)[name](call)

    return {name: opened(name) for name in names}


FEATURE = Feature(
    name="uat",
    version=2,
    subscribed_kinds=SUBSCRIBED_KINDS,
    keys=reduce.keys,
    reduce=reduce.reduce,
    documents=(RUNS, SESSION_RUNS),
    facets=reduce.facets,
    stream=reduce.stream,
    decide=policy.decide,
    can_decide=policy.can_decide,
    enrich=evidence.enrich,
    enriches=evidence.OBSERVED_KINDS,
    enqueue=policy.enqueue,
    derive=derive.derive,
    commands=_later("commands", "COMMANDS", COMMANDS),
    views=_later("views", "VIEWS", VIEWS),
    jobs=_later("jobs", "JOBS", policy.JOBS),
    schedule={policy.TEND: policy.TEND_EVERY_S},
    settings=UatSettings,
)
