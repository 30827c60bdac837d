"""UAT runs (seed 003): what an agent tested, step by step, with proof."""

from functools import partial

from holdfast.core.authority import ANYONE
from holdfast.core.feature import Feature
from holdfast.core.lazy import lazy_table
from holdfast.features.uat import policy
from holdfast.features.uat.drivers import evidence
from holdfast.features.uat.policy import derive, jobs_for
from holdfast.features.uat.settings import SUBSCRIBED_KINDS, UatSettings
from holdfast.features.uat.state import CATALOGUES, PLANS, RUNS, SESSION_RUNS, reduce, touched

COMMANDS = dict.fromkeys(
    "start step assert check call signal update end report compare recover tend clean init import".split(), ANYONE
)
VIEWS = (
    "list show document context signal signals report compare scenarios validate schema place done active suite".split()
)
_table = partial(lazy_table, __name__)
"""Reports, YAML and HTTP are loaded on first use, so that the first hook does not wait for them."""

FEATURE = Feature(
    name="uat",
    version=3,
    subscribed_kinds=SUBSCRIBED_KINDS,
    keys=touched.keys,
    reduce=reduce.reduce,
    documents=(RUNS, PLANS, SESSION_RUNS, CATALOGUES),
    facets=touched.facets,
    stream=touched.stream,
    decide=policy.decide,
    decides_on=frozenset(policy.TELL),
    can_decide=policy.can_decide,
    enrich=evidence.enrich,
    enriches=evidence.OBSERVED_KINDS,
    redacts=evidence.redacts,
    enqueue=jobs_for.enqueue,
    enqueues_for=jobs_for.ENQUEUED_FOR,
    derive=derive.derive,
    derives_from=frozenset(derive.STEPS),
    commands=_table("commands", "COMMANDS", COMMANDS),
    authority=COMMANDS,
    views=_table("views", "VIEWS", VIEWS),
    jobs=_table("jobs", "JOBS", jobs_for.JOBS),
    schedule={jobs_for.TEND: jobs_for.TEND_EVERY_S},
    settings=UatSettings,
)
