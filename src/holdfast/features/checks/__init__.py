"""Checks: what a command really did."""

# The one place that says which tests, linters and builds ran, and how they ended.

from holdfast.core.feature import Feature
from holdfast.features.checks import jobs, observe, policy, state, views
from holdfast.features.checks.settings import ChecksSettings

FEATURE = Feature(
    name="checks",
    version=3,
    subscribed_kinds=policy.SUBSCRIBED_KINDS,
    keys=state.keys,
    reduce=state.reduce,
    documents=(state.CHECKS, state.GIT_SEEN),
    enrich=observe.OBSERVER.enrich,
    enriches=observe.OBSERVED_KINDS,
    enrich_history=observe.judge_imported,
    derive=policy.derive,
    derives_history=True,
    enqueue=policy.enqueue,
    enqueues_for=frozenset((policy.EXIT_READ,)),
    views={"list": views.list_runs, "show": views.show_run, "explain_last": views.explain_last},
    jobs={policy.JUDGE_LATE: jobs.judge_late},
    quick=frozenset((policy.JUDGE_LATE,)),
    watch=jobs.watch_worktrees,
    settings=ChecksSettings,
)
