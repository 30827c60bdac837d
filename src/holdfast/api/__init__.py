"""The seeds' functions under their original names, for hook scripts of people."""

from collections.abc import Callable
from typing import Any

from holdfast.api import gates, reindex, uat_session
from holdfast.api.gates import *  # noqa: F403 - the same names under this package's
from holdfast.api.reindex import *  # noqa: F403 - the same names under this package's
from holdfast.api.uat_session import *  # noqa: F403 - the same
from holdfast.features.project.document.old_formats import (  # noqa: F401 - the same: seed 001's state files of version 3 and 4
    convert_next_actions_to_tasks,
    decode_text,
    derive_state_from_v3,
    migrate_v3_to_v4,
    parsed,
    read_state,
)
from holdfast.features.project.document.schema import check  # noqa: F401 - the same
from holdfast.features.reindex.files import validate_session_state as validate_state_file


def validate_session_state(state: Any) -> bool:  # type: ignore[no-redef]
    """Two seeds use this name: 000 passes a state, 003 a session id. The argument decides."""
    return uat_session.validate_session_state(state) if isinstance(state, str) else validate_state_file(state)


_NAMES = (
    *reindex.__all__, *uat_session.__all__, *gates.__all__, "read_state", "migrate_v3_to_v4", "derive_state_from_v3",
    "convert_next_actions_to_tasks",
)  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {name: globals()[name] for name in sorted(set(_NAMES))}
"""By name, for `holdfast api NAME`."""
