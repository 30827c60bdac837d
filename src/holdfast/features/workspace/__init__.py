"""Workspace: every version of an uncommitted file is kept, so that no work is ever lost."""

from holdfast.core.feature import Feature
from holdfast.features.workspace import observe
from holdfast.features.workspace.settings import WorkspaceSettings

FEATURE = Feature(
    name="workspace",
    subscribed_kinds=observe.OBSERVED_KINDS,
    enrich=observe.WORKSPACE.enrich,
    enriches=observe.OBSERVED_KINDS,
    before_answer=observe.WORKSPACE.before_answer,
    answers_after=frozenset(("tool.started",)),
    watch=observe.WORKSPACE.watch,
    settings=WorkspaceSettings,
)
