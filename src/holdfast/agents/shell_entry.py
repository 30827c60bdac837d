"""Hook entries of agents that run one line of shell."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.core.agent import Hook


def shell_line(command: Sequence[str]) -> str:
    """`exec` spares the shell that would otherwise wait, and makes the agent our parent."""
    return "exec " + shlex.join(command)


def entry_in_seconds(hook: Hook, command: Sequence[str]) -> dict[str, Any]:
    return {"type": "command", "command": shell_line(command), "timeout": int(hook.timeout)}


def entry_in_milliseconds(**more: Any) -> Callable[[Hook, Sequence[str]], dict[str, Any]]:
    def entry(hook: Hook, command: Sequence[str]) -> dict[str, Any]:
        return {"type": "command", "command": shell_line(command), "timeout": int(hook.timeout * 1000), **more}

    return entry
