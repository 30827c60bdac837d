"""`validate_session_state` is in two seeds: 000 gives it a state, 003 the id of a session. The argument tells them apart."""

from typing import Any

from holdfast.api import uat
from holdfast.features.reindex import state_file

__all__ = ["validate_session_state"]


def validate_session_state(state: Any) -> bool:
    return uat.validate_session_state(state) if isinstance(state, str) else state_file.validate_session_state(state)
