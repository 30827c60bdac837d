"""The features. To add one: a folder beside this file, its page in docs/features/, and one line here."""

import os
from importlib import import_module

from holdfast.core.feature import Feature
from holdfast.features import checks, cost, gates, log, memory, project, reindex, sessions, team, uat

FEATURES: tuple[Feature, ...] = (
    log.FEATURE,
    checks.FEATURE,
    cost.FEATURE,
    gates.FEATURE,
    sessions.FEATURE,
    uat.FEATURE,
    reindex.FEATURE,
    project.FEATURE,
    memory.FEATURE,
    team.FEATURE,
)


def features_on_trial() -> tuple[Feature, ...]:
    """Features named in HOLDFAST_FEATURES (`package.module package.other`): for trying one before it is registered."""
    return tuple(import_module(name).FEATURE for name in os.environ.get("HOLDFAST_FEATURES", "").split())
