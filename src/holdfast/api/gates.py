"""Seed 002's function for scripts of people (S2-15)."""

import os
from collections.abc import Mapping
from typing import Any

from holdfast import client
from holdfast.core.errors import HoldfastError
from holdfast.core.git_context import locate

__all__ = ["approve_for_session"]

HOUR_S = 3600


def approve_for_session(requirement: str, ttl: int | str = HOUR_S, metadata: Mapping[str, Any] | None = None) -> bool:
    """Allow a requirement for so many seconds in the session of this terminal. False if it is refused: only a person may."""
    around = locate(os.getcwd())  # noqa: PTH109 - as the command line asks
    try:
        client.run_command(
            "gates.approve", names=[requirement], ttl=int(ttl), metadata=dict(metadata or {}), session=client.current_session(),
            branch=around.get("branch", ""), repo=around.get("repo", ""),
        )  # fmt: skip
    except (HoldfastError, ValueError):
        return False
    return True
