"""How every tool answers."""

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.core import fence
from holdfast.core.errors import HoldfastError


def told(ask: Callable[[], Any]) -> str:
    """Stored text is data: it cannot look like a part of the conversation. An error is an answer too."""
    try:
        found = ask()
    except HoldfastError as error:
        return f"holdfast: {error.message}"
    return fence.harmless(msgspec.json.encode(found, enc_hook=str).decode())
