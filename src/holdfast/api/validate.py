"""`validate_session_state` is in two seeds: 000 gives it a state, 003 the id of a session. The argument tells them apart."""

from typing import Any

from holdfast.api import uat_session
from holdfast.features.reindex import seed

__all__ = ["validate_session_state"]


def validate_session_state(state: Any) -> bool:
    return uat_session.validate_session_state(state) if isinstance(state, str) else seed.validate_session_state(state)
