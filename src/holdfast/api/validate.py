"""`validate_session_state` is in two documents: 000 gives it a state, 003 the id of a session. The argument tells them apart."""

from typing import Any

from holdfast.api import uat_session
from holdfast.features.reindex.files import validate_session_state as validate_state_file

__all__ = ["validate_session_state"]


def validate_session_state(state: Any) -> bool:
    if isinstance(state, str):
        return uat_session.validate_session_state(state)
    return validate_state_file(state)
