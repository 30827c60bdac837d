"""Workspace: every version of an uncommitted file is kept, so that no work is ever lost."""

from holdfast.core.authority import Authority, Who
from holdfast.core.feature import Feature
from holdfast.core.kinds import TOOL_ENDS
from holdfast.features.workspace import commands, observe, policy, rescues, views
from holdfast.features.workspace.content_store import FOLDER
from holdfast.features.workspace.settings import WorkspaceSettings

FEATURE = Feature(
    name="workspace",
    subscribed_kinds=observe.OBSERVED_KINDS,
    enrich=observe.WORKSPACE.enrich,
    enriches=observe.OBSERVED_KINDS,
    before_answer=observe.WORKSPACE.before_answer,
    answers_after=frozenset(("tool.started", *TOOL_ENDS)),
    decide=policy.decide,
    decides_on=frozenset(("tool.started",)),
    # Only the calls that `before_answer` names: no other waits for the state.
    can_decide=lambda _kind, _settings: False,
    refuses=lambda settings: settings is not None and settings.discards == "refuse",
    erase=observe.WORKSPACE.erase,
    own_folder=FOLDER,
    watch=observe.WORKSPACE.watch,
    commands={"undo": commands.undo, "rescue": commands.rescue},
    authority={
        "undo": Authority(Who.OWN_SESSION, "undoing what others did", session_of=commands.whose_calls),
        "rescue": Authority(Who.OWN_SESSION, "rescuing what others wrote", session_of=commands.whose_content),
    },
    views={
        "plan": views.show_plan,
        "rescue": views.show_rescue,
        "lost": rescues.list_lost,
        "diff": views.show_diff,
        "steps": views.list_steps,
        "of_session": views.of_session,
        "status": views.show_status,
    },
    settings=WorkspaceSettings,
)
