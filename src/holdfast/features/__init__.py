"""The registered features; add a folder here, its page in docs/features/ and one line."""

import os
from importlib import import_module

from holdfast.core.feature import Feature
from holdfast.features import (
    attention,
    checks,
    cost,
    gates,
    log,
    memory,
    project,
    reindex,
    sessions,
    team,
    uat,
    workspace,
)

FEATURES: tuple[Feature, ...] = (
    log.FEATURE,
    workspace.FEATURE,
    attention.FEATURE,
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
    """Features named in HOLDFAST_FEATURES (`package.module package.other`), to try one before registering it."""
    return tuple(import_module(name).FEATURE for name in os.environ.get("HOLDFAST_FEATURES", "").split())
