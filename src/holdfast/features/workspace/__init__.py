"""Workspace: every version of an uncommitted file is kept, so that no work is ever lost."""

from functools import partial

from holdfast.core.authority import Authority, Who
from holdfast.core.feature import Feature
from holdfast.core.kinds import TOOL_ENDS
from holdfast.core.lazy import lazy_function
from holdfast.features.workspace import observe, policy
from holdfast.features.workspace.content_store import FOLDER
from holdfast.features.workspace.settings import WorkspaceSettings

_lazy = partial(lazy_function, __name__)
"""Loaded on first use, so that the daemon stays small."""

FEATURE = Feature(
    name="workspace",
    subscribed_kinds=observe.OBSERVED_KINDS,
    enrich=observe.WORKSPACE.enrich,
    enriches=observe.OBSERVED_KINDS,
    before_answer=observe.WORKSPACE.before_answer,
    answers_after=frozenset((*observe.TELLING, *TOOL_ENDS)),
    decide=policy.decide,
    decides_on=observe.TELLING,
    # Only the calls that `before_answer` names: no other waits for the state.
    can_decide=lambda _kind, _settings: False,
    refuses=lambda settings: settings is not None and settings.discards == "refuse",
    erase=observe.WORKSPACE.erase,
    own_folder=FOLDER,
    watch=observe.WORKSPACE.watch,
    commands={name: _lazy("commands", name) for name in ("undo", "rescue")},
    authority={
        "undo": Authority(Who.OWN_SESSION, "undoing what others did", session_of=_lazy("commands", "whose_calls")),
        "rescue": Authority(
            Who.OWN_SESSION, "rescuing what others wrote", session_of=_lazy("commands", "whose_content")
        ),
    },
    views={
        "plan": _lazy("views", "show_plan"),
        "rescue": _lazy("views", "show_rescue"),
        "lost": _lazy("rescues", "list_lost"),
        "diff": _lazy("views", "show_diff"),
        "steps": _lazy("views", "list_steps"),
        "of_session": _lazy("views", "of_session"),
        "status": _lazy("views", "show_status"),
        "losses": _lazy("views", "list_losses"),
    },
    settings=WorkspaceSettings,
)
